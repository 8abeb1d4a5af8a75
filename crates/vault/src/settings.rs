//! What is said about a vault, by key: text that whoever reads it understands.

use avfs_store::Durability;
use avfs_store::rusqlite::{self, Connection, OptionalExtension, Transaction};
use serde_json::{Value, json};

use crate::vaults::{by_id, event};
use crate::{Error, NewJournalEntry, Principal, Quota, Result, VaultId, Vaults, journal};

pub const TABLE: &str = "
    CREATE TABLE setting (
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (vault, key)
    ) WITHOUT ROWID;
";

/// What holds for the home: what new vaults begin with, and notes of ours.
pub const HOME_TABLE: &str = "
    CREATE TABLE home_setting (
        key TEXT PRIMARY KEY NOT NULL,
        value TEXT NOT NULL
    ) WITHOUT ROWID;
";

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
        self.store().read(|connection| {
            let sql = "SELECT key, value FROM setting WHERE vault = ?1 ORDER BY key";
            let mut select = connection.prepare_cached(sql)?;
            let rows =
                select.query_map([vault.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
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
                change(transaction, vault.id, key, value.as_deref())?;
            }
            let details = json!({ "changes": changes.iter().map(told).collect::<Vec<_>>() });
            journal::append(transaction, event(vault.id, *by, "settings", details))?;
            Ok(())
        })
    }

    /// What new vaults begin with, by key: settings, and `quota.bytes`, `quota.files`, `quota.file_bytes`.
    pub fn defaults(&self) -> Result<Vec<(String, String)>> {
        self.store().read(|connection| {
            let sql = "SELECT substr(key, length(?1) + 1), value FROM home_setting
                WHERE key GLOB ?1 || '*' ORDER BY key";
            let mut select = connection.prepare_cached(sql)?;
            let rows = select.query_map([DEFAULT_PREFIX], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Changes what new vaults begin with, in one step.
    pub fn change_defaults(
        &self,
        changes: &[(String, Option<String>)],
        by: &Principal,
    ) -> Result<()> {
        self.store().write(Durability::Full, |transaction| {
            for (key, value) in changes {
                put_home(
                    transaction,
                    &format!("{DEFAULT_PREFIX}{key}"),
                    value.as_deref(),
                )?;
            }
            let details = json!({ "changes": changes.iter().map(told).collect::<Vec<_>>() });
            journal::append(transaction, home_event(*by, "defaults", details))?;
            Ok(())
        })
    }

    /// Something that was noted for the home.
    pub fn note(&self, key: &str) -> Result<Option<String>> {
        self.store().read(|connection| {
            let sql = "SELECT value FROM home_setting WHERE key = ?1";
            let mut select = connection.prepare_cached(sql)?;
            Ok(select.query_row([key], |row| row.get(0)).optional()?)
        })
    }

    /// Notes something for the home, together with the journal's entry of it.
    pub fn set_note(
        &self,
        key: &str,
        value: Option<&str>,
        (by, operation, details): (Principal, &str, Value),
    ) -> Result<()> {
        self.store().write(Durability::Full, |transaction| {
            put_home(transaction, key, value)?;
            journal::append(transaction, home_event(by, operation, details))?;
            Ok(())
        })
    }

    /// The vaults for which a key is set.
    pub fn with_setting(&self, key: &str) -> Result<Vec<VaultId>> {
        self.store().read(|connection| {
            let sql = "SELECT vault FROM setting JOIN vault ON vault.id = setting.vault
                WHERE key = ?1 AND deleted_name IS NULL";
            let mut select = connection.prepare_cached(sql)?;
            let rows = select.query_map([key], |row| Ok(VaultId::from_bytes(row.get(0)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

fn home_event(principal: Principal, operation: &str, details: Value) -> NewJournalEntry {
    NewJournalEntry {
        vault: None,
        exec: None,
        principal,
        operation: operation.to_owned(),
        details,
    }
}

fn put_home(transaction: &Transaction<'_>, key: &str, value: Option<&str>) -> Result<()> {
    match value {
        Some(value) => {
            let upsert = "INSERT OR REPLACE INTO home_setting (key, value) VALUES (?1, ?2)";
            transaction.prepare_cached(upsert)?.execute((key, value))?;
        }
        None => {
            let delete = "DELETE FROM home_setting WHERE key = ?1";
            transaction.prepare_cached(delete)?.execute([key])?;
        }
    }
    Ok(())
}

/// The quota that a new vault begins with.
pub fn default_quota(connection: &Connection) -> Result<Quota> {
    let sql = "SELECT value FROM home_setting WHERE key = ?1";
    let mut select = connection.prepare_cached(sql)?;
    let mut limit = |name: &str| -> Result<Option<u64>> {
        let key = format!("{QUOTA_PREFIX}{name}");
        let found: Option<String> = select.query_row([&key], |row| row.get(0)).optional()?;
        let parse = |text: String| {
            text.parse().map_err(|_| Error::Corrupt {
                what: format!("the setting {key} of the home"),
            })
        };
        found.map(parse).transpose()
    };
    Ok(Quota {
        bytes: limit("bytes")?,
        files: limit("files")?,
        file_bytes: limit("file_bytes")?,
    })
}

/// A new vault says what new vaults begin with.
pub fn inherit_defaults(transaction: &Transaction<'_>, vault: VaultId) -> Result<()> {
    let copy = "INSERT INTO setting (vault, key, value)
        SELECT ?1, substr(key, length(?2) + 1), value FROM home_setting
        WHERE key GLOB ?2 || '*' AND key NOT GLOB ?3 || '*'";
    let values = (vault.as_bytes(), DEFAULT_PREFIX, QUOTA_PREFIX);
    transaction.prepare_cached(copy)?.execute(values)?;
    Ok(())
}

fn change(
    transaction: &Transaction<'_>,
    vault: VaultId,
    key: &str,
    value: Option<&str>,
) -> Result<()> {
    match value {
        Some(value) => {
            let upsert = "INSERT INTO setting (vault, key, value) VALUES (?1, ?2, ?3)
                ON CONFLICT (vault, key) DO UPDATE SET value = excluded.value";
            let values = (vault.as_bytes(), key, value);
            transaction.prepare_cached(upsert)?.execute(values)?;
        }
        None => {
            let delete = "DELETE FROM setting WHERE vault = ?1 AND key = ?2";
            let values = (vault.as_bytes(), key);
            transaction.prepare_cached(delete)?.execute(values)?;
        }
    }
    Ok(())
}

fn told((key, value): &(String, Option<String>)) -> Value {
    match value {
        None => json!({ "key": key, "unset": true }),
        Some(_) if key.starts_with(SECRET_PREFIX) => json!({ "key": key }),
        Some(value) => json!({ "key": key, "value": value }),
    }
}

/// A fork says what its source says.
pub fn inherit(transaction: &Transaction<'_>, source: VaultId, fork: VaultId) -> Result<()> {
    let copy = "INSERT INTO setting (vault, key, value)
        SELECT ?2, key, value FROM setting WHERE vault = ?1 AND key NOT LIKE ?3 || '%'";
    let values = (source.as_bytes(), fork.as_bytes(), OWN_PREFIX);
    transaction.prepare_cached(copy)?.execute(values)?;
    Ok(())
}
