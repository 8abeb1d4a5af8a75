//! What is said about a vault, by key: text that whoever reads it understands.

use avfs_store::Durability;
use avfs_store::rusqlite::{self, Transaction};
use serde_json::{Value, json};

use crate::vaults::{by_id, event};
use crate::{Principal, Result, VaultId, Vaults, journal};

pub const TABLE: &str = "
    CREATE TABLE setting (
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (vault, key)
    ) WITHOUT ROWID;
";

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
