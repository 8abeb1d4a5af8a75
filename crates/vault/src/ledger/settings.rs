//! What is said about a vault, by key: text that whoever reads it understands.

use avfs_store::Durability;
use avfs_store::ledger::{Rows, Transaction};
use serde_json::{Value, json};

use super::journal;
use super::vaults::{by_id, event};
use crate::{Error, JournalEvent, NewJournalEntry, Principal, Quota, Result, VaultId, Vaults};

/// Keys with which new vaults begin, and those of them that are no settings but limits of size.
const DEFAULT_PREFIX: &str = "default.";
const QUOTA_PREFIX: &str = "default.quota.";
/// Keys that belong to one vault and not to what is forked from it.
const OWN_PREFIX: &str = "own.";
/// Values of these may be secrets, so that the journal names only the keys.
const SECRET_PREFIX: &str = "env.";

impl Vaults {
    /// Key and value, sorted by key.
    pub fn settings(&self, vault: VaultId) -> Result<Vec<(String, String)>> {
        Ok(self.store().read(|rows| rows.settings(vault.as_bytes()))?)
    }

    /// Sets each key to its value, or removes it, in one step.
    pub fn change_settings(
        &self,
        vault: VaultId,
        changes: &[(String, Option<String>)],
        by: &Principal,
    ) -> Result<()> {
        self.store().write(Durability::Relaxed, |transaction| {
            let vault = by_id(transaction, vault)?;
            for (key, value) in changes {
                transaction.set_setting(vault.id.as_bytes(), key, value.as_deref())?;
            }
            let details = json!({ "changes": changes.iter().map(told).collect::<Vec<_>>() });
            journal::append(
                transaction,
                event(vault.id, *by, JournalEvent::Settings, details),
            )?;
            Ok(())
        })
    }

    /// What new vaults begin with, by key: settings, and `quota.bytes`, `quota.files`, `quota.file_bytes`.
    pub fn defaults(&self) -> Result<Vec<(String, String)>> {
        Ok(self
            .store()
            .read(|rows| rows.home_settings(DEFAULT_PREFIX))?)
    }

    /// Changes what new vaults begin with, in one step.
    pub fn change_defaults(
        &self,
        changes: &[(String, Option<String>)],
        by: &Principal,
    ) -> Result<()> {
        self.store().write(Durability::Full, |transaction| {
            for (key, value) in changes {
                let key = format!("{DEFAULT_PREFIX}{key}");
                transaction.set_home_setting(&key, value.as_deref())?;
            }
            let details = json!({ "changes": changes.iter().map(told).collect::<Vec<_>>() });
            journal::append(
                transaction,
                home_event(*by, JournalEvent::Defaults, details),
            )?;
            Ok(())
        })
    }

    /// Something that was noted for the home.
    pub fn note(&self, key: &str) -> Result<Option<String>> {
        Ok(self.store().read(|rows| rows.home_setting(key))?)
    }

    /// Notes something for the home, together with the journal's entry of it.
    pub fn set_note(
        &self,
        key: &str,
        value: Option<&str>,
        (by, what, details): (Principal, JournalEvent, Value),
    ) -> Result<()> {
        self.store().write(Durability::Full, |transaction| {
            transaction.set_home_setting(key, value)?;
            journal::append(transaction, home_event(by, what, details))?;
            Ok(())
        })
    }

    /// The vaults for which a key is set.
    pub fn with_setting(&self, key: &str) -> Result<Vec<VaultId>> {
        let vaults = self.store().read(|rows| rows.vaults_with_setting(key))?;
        Ok(vaults.into_iter().map(VaultId::from_bytes).collect())
    }
}

fn home_event(principal: Principal, event: JournalEvent, details: Value) -> NewJournalEntry {
    NewJournalEntry {
        vault: None,
        exec: None,
        principal,
        operation: event.into(),
        details,
    }
}

/// The quota that a new vault begins with.
pub fn default_quota(rows: &Rows<'_>) -> Result<Quota> {
    let limit = |name: &str| -> Result<Option<u64>> {
        let key = format!("{QUOTA_PREFIX}{name}");
        let parse = |text: String| {
            text.parse().map_err(|_| Error::Corrupt {
                what: format!("the setting {key} of the home"),
            })
        };
        rows.home_setting(&key)?.map(parse).transpose()
    };
    Ok(Quota {
        bytes: limit("bytes")?,
        files: limit("files")?,
        file_bytes: limit("file_bytes")?,
    })
}

/// A new vault has the settings that new vaults begin with.
pub fn inherit_defaults(transaction: &Transaction<'_>, vault: VaultId) -> Result<()> {
    let to = vault.as_bytes();
    Ok(transaction.copy_home_settings(to, DEFAULT_PREFIX, QUOTA_PREFIX)?)
}

fn told((key, value): &(String, Option<String>)) -> Value {
    match value {
        None => json!({ "key": key, "unset": true }),
        Some(_) if key.starts_with(SECRET_PREFIX) => json!({ "key": key }),
        Some(value) => json!({ "key": key, "value": value }),
    }
}

/// A fork has the settings of its source.
pub fn inherit(transaction: &Transaction<'_>, source: VaultId, fork: VaultId) -> Result<()> {
    let (from, to) = (source.as_bytes(), fork.as_bytes());
    Ok(transaction.copy_settings(from, to, OWN_PREFIX)?)
}
