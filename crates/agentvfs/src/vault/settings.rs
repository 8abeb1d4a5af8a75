//! What the owner says about a vault: settings, quotas, rules.

use super::Vault;
use crate::error::Result;
use avfs_api::wire::{
    PolicyChanged, PolicyList, PolicyListing, PolicySet, PolicyTest, PolicyTested, QuotaItem,
    QuotaSet, QuotaShow, VaultSet, VaultUnset,
};
use std::collections::BTreeMap;

impl Vault {
    /// What it says about every command that runs in it.
    pub fn settings(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.info()?.settings)
    }

    /// Changes settings, all of them or none: `env.NAME`, `memory`, `cpus`, `pids`, `disk`, `nofile`, `profile`,
    /// `timeout`, `network`, `mode`. Gives all settings.
    pub fn set<K: Into<String>, V: Into<String>>(
        &self,
        settings: impl IntoIterator<Item = (K, V)>,
    ) -> Result<BTreeMap<String, String>> {
        let settings = settings.into_iter();
        let settings = settings.map(|(key, value)| (key.into(), value.into()));
        let request = VaultSet {
            settings: settings.collect(),
        };
        Ok(self.ask(&request)?.settings)
    }

    /// Removes settings. Gives those that are left.
    pub fn unset<K: Into<String>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<BTreeMap<String, String>> {
        let request = VaultUnset {
            keys: keys.into_iter().map(Into::into).collect(),
        };
        Ok(self.ask(&request)?.settings)
    }

    /// The limits on its size, and what it uses.
    pub fn quota(&self) -> Result<QuotaItem> {
        self.ask(&QuotaShow {})
    }

    /// Sets `max_size_mb`, `max_files` or `max_file_size_mb`; none lifts the limit.
    pub fn set_quota(&self, key: impl Into<String>, value: Option<u64>) -> Result<()> {
        self.ask(&QuotaSet {
            key: key.into(),
            value,
        })?;
        Ok(())
    }

    /// The rules in force in it, and where they are written.
    pub fn policy(&self) -> Result<PolicyListing> {
        self.ask(&PolicyList {})
    }

    /// Replaces its own rules; none removes them. `seen` is what they were when the new ones were written; if they have
    /// changed since, that is a conflict.
    pub fn set_policy(&self, seen: Option<&str>, text: Option<&str>) -> Result<PolicyChanged> {
        self.ask(&PolicySet {
            seen: seen.map(str::to_owned),
            text: text.map(str::to_owned),
        })
    }

    /// Tries the examples in its rules.
    pub fn test_policy(&self) -> Result<PolicyTested> {
        self.ask(&PolicyTest {})
    }
}
