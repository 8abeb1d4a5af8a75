//! Forks: vaults that begin where another one is, or was.

use avfs_store::Durability;
use avfs_store::rusqlite::{self, Connection, OptionalExtension};
use serde_json::json;

use crate::checkpoints;
use crate::vaults::{by_id, by_name, event, insert_vault, new_vault, vault_row, version_row};
use crate::{
    Cause, CheckpointName, Error, ForkPoint, Lineage, Principal, Result, RootId, Vault, VaultId,
    VaultName, Vaults, Version, journal,
};

impl Vaults {
    /// A vault that begins where `source` is now. Nothing is copied but a pointer.
    pub fn fork(&self, source: &VaultName, name: &VaultName, by: &Principal) -> Result<Vault> {
        self.fork_at(source, &ForkPoint::Head, name, by)
    }

    /// A vault that begins at some point of `source`, with its quota.
    pub fn fork_at(
        &self,
        source: &VaultName,
        point: &ForkPoint,
        name: &VaultName,
        by: &Principal,
    ) -> Result<Vault> {
        self.store().write(Durability::Relaxed, |transaction| {
            let source = by_name(transaction, source)?;
            let root = root_at(transaction, &source, point)?;
            let mut details = json!({
                "name": name.as_str(),
                "source": source.name.as_str(),
                "source_id": source.id.to_string(),
                "root": root.to_string(),
            });
            match point {
                ForkPoint::Head => {}
                ForkPoint::Checkpoint(name) => details["checkpoint"] = name.as_str().into(),
                ForkPoint::Version(number) => details["source_version"] = (*number).into(),
            }
            let lineage = Lineage {
                vault: source.id,
                name: source.name,
                root,
                point: point.clone(),
            };
            let mut vault = new_vault(name, root, Some(lineage));
            vault.quota = source.quota;
            insert_vault(transaction, &vault, *by, Cause::Fork)?;
            journal::append(transaction, event(vault.id, *by, "vault.fork", details))?;
            Ok(vault)
        })
    }

    /// The vaults that were forked from a checkpoint as it is now, by name. They hold what they
    /// need themselves and outlive it.
    pub fn checkpoint_forks(
        &self,
        vault: VaultId,
        name: &CheckpointName,
    ) -> Result<Vec<VaultName>> {
        self.store().read(|connection| {
            by_id(connection, vault)?;
            let root = checkpoints::find(connection, vault, name)?.root;
            forks_of_checkpoint(connection, vault, name, root)
        })
    }
}

pub fn forks_of_checkpoint(
    connection: &Connection,
    vault: VaultId,
    name: &CheckpointName,
    root: RootId,
) -> Result<Vec<VaultName>> {
    let sql = "SELECT * FROM vault WHERE parent = ?1 AND parent_checkpoint = ?2
        AND parent_root = ?3 AND deleted_name IS NULL ORDER BY name";
    let mut select = connection.prepare_cached(sql)?;
    let object = root.object();
    let values = (vault.as_bytes(), name.as_str(), object.as_bytes());
    let rows = select.query_map(values, vault_row)?;
    let forks = rows.collect::<rusqlite::Result<Vec<Vault>>>()?;
    Ok(forks.into_iter().map(|fork| fork.name).collect())
}

fn root_at(connection: &Connection, vault: &Vault, point: &ForkPoint) -> Result<RootId> {
    Ok(match point {
        ForkPoint::Head => vault.head,
        ForkPoint::Checkpoint(name) => checkpoints::find(connection, vault.id, name)?.root,
        ForkPoint::Version(number) => find_version(connection, vault, *number)?.root,
    })
}

pub fn find_version(connection: &Connection, vault: &Vault, number: u64) -> Result<Version> {
    let sql = "SELECT * FROM version WHERE vault = ?1 AND number = ?2";
    let stored = i64::try_from(number).unwrap_or(i64::MAX);
    let mut select = connection.prepare_cached(sql)?;
    let found = select.query_row((vault.id.as_bytes(), stored), version_row);
    found.optional()?.ok_or_else(|| Error::VersionNotFound {
        vault: vault.name.clone(),
        number,
    })
}
