//! When a vault goes: delete, and the way back until gc.

use avfs_store::rusqlite::{self, OptionalExtension, Row};
use avfs_store::{Durability, WayOut};
use serde_json::json;

use crate::schema::optional_time;
use crate::vaults::{by_name, check_free, event, vault_row};
use crate::{DeletedVault, Error, Principal, Result, Time, Vault, VaultName, Vaults, journal};

impl Vaults {
    /// Puts the vault away with its versions and checkpoints: its name is free, and until gc it
    /// can be had back. Whoever had it as current has none.
    pub fn delete(&self, name: &VaultName, by: &Principal) -> Result<()> {
        self.freeing(WayOut::Large, Durability::Relaxed, |transaction| {
            let vault = by_name(transaction, name)?;
            let update = "UPDATE vault SET name = ?2, deleted_name = ?3, deleted_secs = ?4,
                deleted_nanos = ?5 WHERE id = ?1";
            let now = Time::now();
            transaction.prepare_cached(update)?.execute((
                vault.id.as_bytes(),
                // No vault can be called so.
                format!(":{}", vault.id),
                name.as_str(),
                now.secs,
                now.nanos,
            ))?;
            for current in [
                "UPDATE current SET vault = NULL WHERE vault = ?1",
                "UPDATE current_of SET vault = NULL WHERE vault = ?1",
            ] {
                transaction.execute(current, [vault.id.as_bytes()])?;
            }
            let details = json!({
                "name": name.as_str(),
                "root": vault.head.to_string(),
                "version": vault.version,
            });
            journal::append(transaction, event(vault.id, *by, "vault.delete", details))?;
            Ok(())
        })
    }

    /// Deleted vaults that can still be had back, the last deleted first.
    pub fn deleted(&self) -> Result<Vec<DeletedVault>> {
        self.store().read(|connection| {
            let sql = "SELECT * FROM vault WHERE deleted_name IS NOT NULL
                ORDER BY deleted_secs DESC, deleted_nanos DESC";
            let mut select = connection.prepare_cached(sql)?;
            let rows = select.query_map([], deleted_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Brings the vault that was last deleted under this name back, as `to` or as it was called.
    pub fn undelete(
        &self,
        name: &VaultName,
        to: Option<&VaultName>,
        by: &Principal,
    ) -> Result<Vault> {
        self.store().write(Durability::Relaxed, |transaction| {
            let sql = "SELECT * FROM vault WHERE deleted_name = ?1
                ORDER BY deleted_secs DESC, deleted_nanos DESC LIMIT 1";
            let mut select = transaction.prepare_cached(sql)?;
            let found = select.query_row([name.as_str()], vault_row).optional()?;
            let mut vault =
                found.ok_or_else(|| Error::DeletedVaultNotFound { name: name.clone() })?;
            vault.name = to.unwrap_or(name).clone();
            check_free(transaction, &vault.name)?;
            let update = "UPDATE vault SET name = ?2, deleted_name = NULL, deleted_secs = NULL,
                deleted_nanos = NULL WHERE id = ?1";
            let values = (vault.id.as_bytes(), vault.name.as_str());
            transaction.prepare_cached(update)?.execute(values)?;
            let details = json!({ "name": vault.name.as_str(), "deleted_as": name.as_str() });
            journal::append(transaction, event(vault.id, *by, "vault.undelete", details))?;
            Ok(vault)
        })
    }
}

pub fn deleted_row(row: &Row<'_>) -> rusqlite::Result<DeletedVault> {
    let deleted = optional_time(row, "deleted")?;
    Ok(DeletedVault {
        vault: vault_row(row)?,
        deleted: deleted.unwrap_or(Time::EPOCH),
    })
}
