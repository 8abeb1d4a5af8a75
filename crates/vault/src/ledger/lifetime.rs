//! When a vault goes: delete, and the way back until gc.

use avfs_store::{Durability, WayOut};
use serde_json::json;

use super::journal;
use super::rows::values;
use super::vaults::{by_name, check_free, event};
use crate::{DeletedVault, Error, JournalEvent, Principal, Result, Time, Vault, VaultName, Vaults};

impl Vaults {
    /// Puts the vault away with its versions and checkpoints: its name is free, and until gc it
    /// can be had back. Whoever had it as current has none.
    pub fn delete(&self, name: &VaultName, by: &Principal) -> Result<()> {
        self.freeing(WayOut::Large, Durability::Relaxed, |transaction| {
            let vault = by_name(transaction, name)?;
            let (id, now) = (vault.id.as_bytes(), Time::now());
            transaction.delete_vault(id, name.as_str(), now.into())?;
            let details = json!({
                "name": name.as_str(),
                "root": vault.head.to_string(),
                "version": vault.version,
            });
            journal::append(
                transaction,
                event(vault.id, *by, JournalEvent::VaultDelete, details),
            )?;
            Ok(())
        })
    }

    /// Deleted vaults that can still be had back, the last deleted first.
    pub fn deleted(&self) -> Result<Vec<DeletedVault>> {
        values(self.store().read(|rows| rows.deleted_vaults())?)
    }

    /// Brings the vault that was last deleted under this name back, as `to` or as it was called.
    pub fn undelete(
        &self,
        name: &VaultName,
        to: Option<&VaultName>,
        by: &Principal,
    ) -> Result<Vault> {
        self.store().write(Durability::Relaxed, |transaction| {
            let found = transaction.last_deleted(name.as_str())?;
            let found = found.ok_or_else(|| Error::DeletedVaultNotFound { name: name.clone() })?;
            let mut vault = Vault::try_from(found)?;
            vault.name = to.unwrap_or(name).clone();
            check_free(transaction, &vault.name)?;
            transaction.undelete_vault(vault.id.as_bytes(), vault.name.as_str())?;
            let details = json!({ "name": vault.name.as_str(), "deleted_as": name.as_str() });
            journal::append(
                transaction,
                event(vault.id, *by, JournalEvent::VaultUndelete, details),
            )?;
            Ok(vault)
        })
    }
}
