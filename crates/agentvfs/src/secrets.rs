//! Secrets: values that requests of commands get on their way out.

use crate::avfs::Avfs;
use crate::error::Result;
use avfs_api::wire::{SecretItem, SecretList, SecretRemove, SecretSet};

impl Avfs {
    /// Sets a secret, or replaces it. Commands never have its value, and no answer contains it.
    pub fn set_secret(&self, secret: &SecretSet) -> Result<SecretItem> {
        self.ask(secret)
    }

    /// The secrets in the order of their names, without their values.
    pub fn secrets(&self) -> Result<Vec<SecretItem>> {
        Ok(self.ask(&SecretList {})?.secrets)
    }

    /// Removes a secret. Requests of commands that run do not get it any more.
    pub fn remove_secret(&self, name: &str) -> Result<SecretItem> {
        self.ask(&SecretRemove {
            name: name.to_owned(),
        })
    }
}
