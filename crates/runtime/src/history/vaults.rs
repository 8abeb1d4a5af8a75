//! Vaults as a whole: create, list, use, fork, delete, their history and the journal.

use std::collections::HashMap;

use avfs_vault::{
    AfterFork, Ancestor, Beside, DeletedVault, ForkPoint, JournalCheck, RootId, Vault, VaultId,
    VaultName,
};

use crate::Result;
use crate::gate::Verb;
use crate::live::recover::Stranded;
use crate::live::slot::{IfBusy, Stillness};
use crate::runtime::Select;
use crate::session::Session;

/// A vault and what there is to say about it.
#[derive(Debug, Clone)]
pub struct VaultInfo {
    pub vault: Vault,
    pub current: bool,
    pub files: u64,
    pub bytes: u64,
    pub checkpoints: usize,
    /// What is wrong with its files, as far as that is known.
    pub damaged: Option<String>,
}

/// Where a vault comes from, and what comes from it.
#[derive(Debug, Clone)]
pub struct Family {
    /// The vault it was forked from first.
    pub ancestors: Vec<Ancestor>,
    pub forks: Vec<VaultName>,
}

impl Session {
    /// Makes an empty vault; the first one becomes current.
    pub fn vault_create(&self, name: &VaultName) -> Result<VaultInfo> {
        self.check_name(name)?;
        let vault = self.inner.vaults.create(name, &self.principal())?;
        self.describe_one(vault)
    }

    /// All of them, those that are damaged included.
    pub fn vault_list(&self) -> Result<Vec<VaultInfo>> {
        let vaults = &self.inner.vaults;
        let current = vaults.current(&self.principal())?.map(|vault| vault.id);
        let checkpoints = vaults.checkpoint_counts()?;
        let listed = vaults.list()?;
        let damaged = vaults.damaged(listed.iter().map(|vault| vault.head))?;
        let mut infos = Vec::with_capacity(listed.len());
        for vault in listed {
            // What looks damaged may have been deleted, and collected, meanwhile.
            if damaged.contains_key(&vault.head) && self.is_gone(vault.id)? {
                continue;
            }
            let checkpoints = checkpoints.get(&vault.id).copied().unwrap_or(0);
            infos.push(self.describe(vault, current, checkpoints, &damaged)?);
        }
        Ok(infos)
    }

    fn is_gone(&self, vault: VaultId) -> Result<bool> {
        Ok(self.vault_name(vault)?.is_none())
    }

    pub fn vault_info(&self, vault: Select) -> Result<VaultInfo> {
        self.describe_one(self.vault_as_it_is(&vault, Verb::Read)?)
    }

    /// What a vault is called by now; nothing when it is gone.
    pub fn vault_name(&self, id: VaultId) -> Result<Option<VaultName>> {
        match self.inner.vaults.by_id(id) {
            Ok(vault) => Ok(Some(vault.name)),
            Err(avfs_vault::Error::VaultIdNotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What was written in a vault and could not be taken into its head.
    pub fn vault_uncommitted(&self, vault: &Vault) -> Vec<Stranded> {
        let slot = self.slot_of(vault.id);
        slot.map(|slot| slot.uncommitted()).unwrap_or_default()
    }

    /// What to tell whoever looks at a vault that has work which is not in its head. Never waits.
    pub fn uncommitted_note(&self, vault: &Select) -> Option<String> {
        let vault = self.vault_as_it_is(vault, Verb::Read).ok()?;
        let stranded = self.vault_uncommitted(&vault).into_iter().next()?;
        let (name, reason) = (vault.name, stranded.reason);
        Some(format!(
            "vault {name} has work that is not committed: {reason}"
        ))
    }

    /// Makes `name` the vault that the caller means when it names none. Every agent has its own; one that never
    /// chose works in the owner's.
    pub fn vault_use(&self, name: &VaultName) -> Result<VaultInfo> {
        self.named(name, Verb::Read)?;
        self.inner.vaults.set_current(name, &self.principal())?;
        self.vault_info(Select::Named(name.clone()))
    }

    /// Where a vault comes from and what was forked from it.
    pub fn vault_family(&self, vault: &Vault) -> Result<Family> {
        let vaults = &self.inner.vaults;
        let forks = vaults.forks(vault.id, None)?.into_iter();
        Ok(Family {
            ancestors: vaults.ancestors(vault)?,
            forks: forks.map(|fork| fork.name).collect(),
        })
    }

    /// Gives a vault in which nothing runs another name.
    pub fn vault_rename(&self, name: &VaultName, new: &VaultName) -> Result<VaultInfo> {
        let vault = self.named(name, Verb::Own)?;
        self.check_name(new)?;
        // Whatever is open shows the old name.
        let slot = self.slot(vault.id);
        let renamed = slot.closed(self, |vault| {
            Ok(self
                .inner
                .vaults
                .rename(&vault.name, new, &self.principal())?)
        })?;
        self.describe_one(renamed)
    }

    /// A new vault with a state of `source`; its head also has what running commands have written
    /// by now, and they are held still meanwhile.
    pub fn vault_fork(
        &self,
        source: &VaultName,
        point: &ForkPoint,
        name: &VaultName,
        then: AfterFork,
    ) -> Result<(VaultInfo, Option<Stillness>)> {
        let source = self.named(source, Verb::Work)?;
        self.check_name(name)?;
        let fork = |source: Vault| {
            let by = &self.principal();
            let vaults = &self.inner.vaults;
            Ok(vaults.fork_and(&source.name, point, name, by, then)?)
        };
        let (fork, stillness) = match point {
            ForkPoint::Head => self.slot(source.id).still(self, fork)?,
            ForkPoint::Checkpoint(_) | ForkPoint::Version(_) => (fork(source)?, None),
        };
        Ok((self.describe_one(fork)?, stillness))
    }

    /// Puts a vault away in which nothing runs. Until gc it can be had back.
    pub fn vault_delete(&self, name: &VaultName, if_busy: IfBusy) -> Result<()> {
        let vault = self.named(name, Verb::Own)?;
        self.without_jobs(vault.id, if_busy)?;
        self.slot(vault.id).deleted(self, if_busy, |vault| {
            Ok(self.inner.vaults.delete(&vault.name, &self.principal())?)
        })?;
        self.forget_slot(vault.id);
        self.inner.indexes.forget(vault.id);
        self.inner.policy.forget(vault.id);
        self.inner.vaults.note_beside(vault.id, Beside::default());
        // What remains on disk of a vault that is gone is removed now or at the next start.
        if self.inner.layers.holds(vault.id) {
            self.with_engine(|engine| {
                let layers = &self.inner.layers;
                Ok(layers.remove_vault(vault.id, &engine.sweeper)?)
            })?;
        }
        Ok(())
    }

    /// Deleted vaults that can still be had back, the last deleted first.
    pub fn vault_deleted(&self) -> Result<Vec<DeletedVault>> {
        Ok(self.inner.vaults.deleted()?)
    }

    /// Brings a deleted vault back with its history, as `to` or under the name it had. What it had
    /// in /tmp is gone.
    pub fn vault_undelete(&self, name: &VaultName, to: Option<&VaultName>) -> Result<VaultInfo> {
        self.check_name(name)?;
        self.check_name(to.unwrap_or(name))?;
        let vault = self.inner.vaults.undelete(name, to, &self.principal())?;
        self.describe_one(vault)
    }

    /// Whether nobody edited, removed or reordered entries of the journal.
    pub fn journal_verify(&self) -> Result<JournalCheck> {
        Ok(self.inner.vaults.verify_journal()?)
    }

    fn describe(
        &self,
        vault: Vault,
        current: Option<VaultId>,
        checkpoints: usize,
        damaged: &HashMap<RootId, String>,
    ) -> Result<VaultInfo> {
        let mut info = VaultInfo {
            current: current == Some(vault.id),
            files: 0,
            bytes: 0,
            checkpoints,
            damaged: damaged.get(&vault.head).cloned(),
            vault,
        };
        let totals = self.totals(info.vault.head)?;
        (info.files, info.bytes) = (totals.files, totals.bytes);
        info.damaged = info.damaged.or(totals.damaged);
        Ok(info)
    }

    fn describe_one(&self, vault: Vault) -> Result<VaultInfo> {
        let vaults = &self.inner.vaults;
        let current = vaults.current(&self.principal())?.map(|vault| vault.id);
        let checkpoints = vaults.checkpoint_count(vault.id)?;
        let damaged = vaults.damaged([vault.head])?;
        self.describe(vault, current, checkpoints, &damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, HostFacts, IfLost, Runtime};
    use avfs_vault::Principal;

    #[test]
    fn nothing_is_remembered_of_a_vault_that_was_forked_used_and_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let runtime_dir = dir.path().join("run");
        std::fs::create_dir(&runtime_dir).unwrap();
        let config = Config {
            home: dir.path().join("home"),
            runtime_dir,
            binary: "/nonexistent".into(),
            host: HostFacts::default(),
            layers: None,
            if_lost: IfLost::Refuse,
        };
        let runtime = Runtime::open(config).unwrap();
        let session = runtime.by(Principal::OWNER);
        let source: VaultName = "v".parse().unwrap();
        session.vault_create(&source).unwrap();
        let fork: VaultName = "fork".parse().unwrap();
        let mut rules = None;
        for _ in 0..50 {
            let (point, then) = (ForkPoint::Head, AfterFork::Stay);
            let made = session.vault_fork(&source, &point, &fork, then).unwrap();
            let id = made.0.vault.id;
            session.policy_list(Select::Named(fork.clone())).unwrap();
            let beside = Beside { bytes: 1, files: 1 };
            runtime.inner.vaults.note_beside(id, beside);
            session.vault_delete(&fork, IfBusy::Refuse).unwrap();
            assert_eq!(runtime.inner.vaults.beside(id), Beside::default());
            assert!(runtime.slot_of(id).is_none());
            let held = runtime.inner.policy.held();
            assert_eq!(*rules.get_or_insert(held), held);
        }
    }
}
