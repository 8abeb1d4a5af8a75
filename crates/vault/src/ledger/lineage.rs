//! Where vaults come from: forks of any state, their ancestors and descendants, and new names.

use avfs_store::Durability;
use avfs_store::ledger::Rows;
use serde_json::json;

use super::checkpoints::find as find_checkpoint;
use super::rows::values;
use super::vaults::{by_name, check_free, event, insert_vault, make_current, new_vault};
use super::versions::find as find_version;
use super::{imports, journal, policy, settings};
use crate::{
    Cause, CheckpointName, Error, JournalEvent, Lineage, Principal, Result, RootId, Vault, VaultId,
    VaultName, Vaults,
};

/// Which state of a vault a fork begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    Head,
    Checkpoint(CheckpointName),
    Version(u64),
}

/// Which vault is current after a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFork {
    Stay,
    Use,
}

/// A vault that another one comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    pub id: VaultId,
    /// What it is called now; once deleted, what it was called when it was forked.
    pub name: VaultName,
    pub exists: bool,
    /// The state that was forked.
    pub root: RootId,
    /// The newest version of it with that state.
    pub version: Option<u64>,
    /// Its checkpoints of that state.
    pub checkpoints: Vec<CheckpointName>,
}

impl Vaults {
    /// A vault that begins where `source` is now.
    pub fn fork(&self, source: &VaultName, name: &VaultName, by: &Principal) -> Result<Vault> {
        self.fork_at(source, &ForkPoint::Head, name, by)
    }

    /// A vault that begins with a state of `source`. Nothing is copied but a pointer.
    pub fn fork_at(
        &self,
        source: &VaultName,
        point: &ForkPoint,
        name: &VaultName,
        by: &Principal,
    ) -> Result<Vault> {
        self.fork_and(source, point, name, by, AfterFork::Stay)
    }

    /// `fork_at`, and what else shall happen in one step with it.
    pub fn fork_and(
        &self,
        source: &VaultName,
        point: &ForkPoint,
        name: &VaultName,
        by: &Principal,
        then: AfterFork,
    ) -> Result<Vault> {
        self.store().write(Durability::Relaxed, |transaction| {
            let source = by_name(transaction, source)?;
            let root = point_root(transaction, &source, point)?;
            // A fork of what cannot be read would be of no use to anybody.
            self.trees().root(root)?;
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
            let source_id = source.id;
            let lineage = Lineage {
                vault: source.id,
                name: source.name,
                root,
            };
            let mut vault = new_vault(name, root, Some(lineage), by);
            vault.quota = source.quota;
            insert_vault(transaction, &vault, Cause::Fork)?;
            imports::inherit(transaction, source_id, &vault)?;
            policy::inherit(transaction, source_id, vault.id)?;
            settings::inherit(transaction, source_id, vault.id)?;
            if then == AfterFork::Use {
                make_current(transaction, vault.id, by)?;
            }
            journal::append(
                transaction,
                event(vault.id, *by, JournalEvent::VaultFork, details),
            )?;
            Ok(vault)
        })
    }

    /// Gives a vault another name. It stays the same vault, and current if it was.
    pub fn rename(&self, name: &VaultName, new: &VaultName, by: &Principal) -> Result<Vault> {
        self.store().write(Durability::Relaxed, |transaction| {
            let mut vault = by_name(transaction, name)?;
            check_free(transaction, new)?;
            transaction.rename_vault(vault.id.as_bytes(), new.as_str())?;
            let details = json!({ "name": new.as_str(), "old_name": name.as_str() });
            journal::append(
                transaction,
                event(vault.id, *by, JournalEvent::VaultRename, details),
            )?;
            vault.name = new.clone();
            Ok(vault)
        })
    }

    /// The vaults forked from this one, by name; with a root, those that begin with it.
    pub fn forks(&self, vault: VaultId, root: Option<RootId>) -> Result<Vec<Vault>> {
        let forks = self.store().read(|rows| rows.forks(vault.as_bytes()))?;
        let mut forks: Vec<Vault> = values(forks)?;
        let begins = |fork: &Vault| fork.parent.as_ref().map(|parent| parent.root);
        forks.retain(|fork| root.is_none() || begins(fork) == root);
        Ok(forks)
    }

    /// Where a vault comes from, the vault it was forked from first. Beyond one that was deleted
    /// nothing is known.
    pub fn ancestors(&self, vault: &Vault) -> Result<Vec<Ancestor>> {
        let mut ancestors = Vec::new();
        let mut parent = vault.parent.clone();
        while let Some(lineage) = parent {
            let found = match self.by_id(lineage.vault) {
                Ok(found) => Some(found),
                Err(Error::VaultIdNotFound { .. }) => None,
                Err(error) => return Err(error),
            };
            let mut ancestor = Ancestor {
                id: lineage.vault,
                name: lineage.name,
                exists: found.is_some(),
                root: lineage.root,
                version: None,
                checkpoints: Vec::new(),
            };
            if let Some(found) = &found {
                ancestor.name = found.name.clone();
                ancestor.version = self.version_of(found.id, lineage.root)?;
                let checkpoints = self.checkpoints(found.id)?.into_iter();
                ancestor.checkpoints = checkpoints
                    .filter(|checkpoint| checkpoint.root == lineage.root)
                    .map(|checkpoint| checkpoint.name)
                    .collect();
            }
            ancestors.push(ancestor);
            parent = found.and_then(|vault| vault.parent);
        }
        Ok(ancestors)
    }
}

fn point_root(rows: &Rows<'_>, source: &Vault, point: &ForkPoint) -> Result<RootId> {
    match point {
        ForkPoint::Head => Ok(source.head),
        ForkPoint::Checkpoint(name) => Ok(find_checkpoint(rows, source.id, name)?.root),
        ForkPoint::Version(number) => Ok(find_version(rows, source, *number)?.root),
    }
}
