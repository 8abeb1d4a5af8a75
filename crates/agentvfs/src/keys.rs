//! API keys: credentials of clients on the network.

use crate::avfs::Avfs;
use crate::error::Result;
use avfs_api::wire::{KeyCreate, KeyItem, KeyList, KeyMade, KeyRevoke, KeyRotate};

impl Avfs {
    /// Creates an API key. Only this answer contains its secret.
    pub fn create_key(&self, key: &KeyCreate) -> Result<KeyMade> {
        self.ask(key)
    }

    /// The API keys in the order in which they were created, without their secrets.
    pub fn keys(&self) -> Result<Vec<KeyItem>> {
        Ok(self.ask(&KeyList {})?.keys)
    }

    /// Revokes an API key and closes its connections.
    pub fn revoke_key(&self, name: &str) -> Result<KeyItem> {
        self.ask(&KeyRevoke {
            name: name.to_owned(),
        })
    }

    /// Replaces the secret of an API key. The old secret is refused at once.
    pub fn rotate_key(&self, key: &KeyRotate) -> Result<KeyMade> {
        self.ask(key)
    }
}
