//! Checkpoints: a name for a state, and the way back to it.

use avfs_vault::{
    ChangeKind, Checkpoint, CheckpointLabel, CheckpointName, CheckpointOrigin, Kind, RootId,
    VaultId, VaultName,
};

use crate::gate::Verb;
use crate::history::changes::each_change;
use crate::live::slot::{IfBusy, Stillness};
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

/// For how many checkpoints of a list it is counted what they use.
const COUNTED_MAX: usize = 100;
/// How many different paths are looked at for one list.
const COMPARED_MAX: u64 = 200_000;

/// A checkpoint and how much it holds.
#[derive(Debug, Clone)]
pub struct CheckpointInfo {
    pub checkpoint: Checkpoint,
    pub files: u64,
    pub bytes: u64,
    /// Bytes of files in it that the vault has no more, or has otherwise, where that was counted.
    pub used: Option<u64>,
    /// Why it cannot be read.
    pub damaged: Option<String>,
}

/// A checkpoint, and what hangs together with it.
#[derive(Debug, Clone)]
pub struct CheckpointDetails {
    pub info: CheckpointInfo,
    /// The newest version of the vault with this state.
    pub version: Option<u64>,
    /// The vaults that were forked at this state.
    pub forks: Vec<VaultName>,
}

/// What becomes of a checkpoint that forks began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfForked {
    Refuse,
    Delete,
}

/// Which state to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestorePoint {
    Checkpoint(CheckpointName),
    /// What the last restore replaced.
    Undo,
}

/// What a restore did.
#[derive(Debug, Clone)]
pub struct RestoredHead {
    pub checkpoint: CheckpointName,
    pub version: u64,
    /// Restoring this one undoes the restore.
    pub undo: CheckpointName,
    /// How many paths are different now: files and whatever else is no directory.
    pub files: usize,
    pub directories: usize,
    /// Why there may be more of them: what was there before is damaged.
    pub uncounted: Option<String>,
}

impl Session {
    /// Names the state of the vault as it is now, also what running commands have written, which are
    /// held still meanwhile.
    pub fn checkpoint_save(
        &self,
        vault: Select,
        label: CheckpointLabel<'_>,
    ) -> Result<(CheckpointInfo, Option<Stillness>)> {
        let vault = self.vault(&vault, Verb::Work)?;
        let (saved, stillness) = self.slot(vault.id).still(self, |vault| {
            let origin = CheckpointOrigin::Asked;
            let by = &self.principal();
            Ok(self
                .inner
                .vaults
                .save_checkpoint(vault.id, label, vault.head, origin, by)?)
        })?;
        Ok((self.describe_checkpoint(saved)?, stillness))
    }

    /// Oldest first, without what they use.
    pub fn checkpoint_list(&self, vault: Select) -> Result<Vec<CheckpointInfo>> {
        self.checkpoints_of(self.vault(&vault, Verb::Read)?.id)
    }

    /// Oldest first. What they use is counted for the newest, as far as there is not too much to compare.
    pub fn checkpoint_list_counted(&self, vault: Select) -> Result<Vec<CheckpointInfo>> {
        let vault = self.vault(&vault, Verb::Read)?;
        let mut listed = self.checkpoints_of(vault.id)?;
        let mut left = COMPARED_MAX;
        for info in listed.iter_mut().rev().take(COUNTED_MAX) {
            info.used = self.used_by(info.checkpoint.root, vault.head, &mut left)?;
        }
        Ok(listed)
    }

    fn checkpoints_of(&self, vault: VaultId) -> Result<Vec<CheckpointInfo>> {
        let checkpoints = self.inner.vaults.checkpoints(vault)?.into_iter();
        checkpoints
            .map(|checkpoint| self.describe_checkpoint(checkpoint))
            .collect()
    }

    /// Bytes of files that are in `root` and not, or otherwise, in `head`; none if one of them is damaged or more than
    /// `left` paths differ.
    fn used_by(&self, root: RootId, head: RootId, left: &mut u64) -> Result<Option<u64>> {
        let mut used = 0_u64;
        let counted = self
            .inner
            .vaults
            .trees()
            .diff_each(root, head, &mut |change| {
                *left = left.saturating_sub(1);
                let is_gone = matches!(change.kind, ChangeKind::Deleted | ChangeKind::Modified);
                if let Some(Kind::File { size, .. }) = change.before.map(|entry| entry.kind)
                    && is_gone
                {
                    used = used.saturating_add(size);
                }
                *left > 0
            });
        match counted {
            Err(error) if error.is_damage() => Ok(None),
            counted => {
                counted?;
                Ok((*left > 0).then_some(used))
            }
        }
    }

    pub fn checkpoint_info(
        &self,
        vault: Select,
        name: &CheckpointName,
    ) -> Result<CheckpointDetails> {
        let vault = self.vault(&vault, Verb::Read)?;
        let checkpoint = self.inner.vaults.checkpoint(vault.id, name)?;
        let forks = self.inner.vaults.forks(vault.id, Some(checkpoint.root))?;
        Ok(CheckpointDetails {
            version: self.inner.vaults.version_of(vault.id, checkpoint.root)?,
            forks: forks.into_iter().map(|fork| fork.name).collect(),
            info: self.describe_checkpoint(checkpoint)?,
        })
    }

    /// Puts the vault back to a checkpoint, in one step that can itself be undone. What commands
    /// that are ended for it had written is in the undo.
    pub fn checkpoint_restore(
        &self,
        vault: Select,
        point: &RestorePoint,
        if_busy: IfBusy,
    ) -> Result<RestoredHead> {
        let vault = self.vault(&vault, Verb::Work)?;
        let slot = self.slot(vault.id);
        slot.put_aside(self, if_busy)?;
        slot.settled_after(self, if_busy, |vault| {
            let name = match point {
                RestorePoint::Checkpoint(name) => name.clone(),
                RestorePoint::Undo => self.newest_undo(vault.id, &vault.name)?,
            };
            let by = &self.principal();
            let restored = self.inner.vaults.restore(vault.id, vault.head, &name, by)?;
            let trees = self.inner.vaults.trees();
            let (mut files, mut directories) = (0, 0);
            let counted = each_change(trees, vault.head, restored.version.root, &mut |change| {
                let entry = change.after.as_ref().or(change.before.as_ref());
                match entry.is_some_and(|entry| entry.is_dir()) {
                    true => directories += 1,
                    false => files += 1,
                }
            });
            // It is done, whether what it replaced can be read or not.
            let uncounted = match counted {
                Err(error) if error.is_damage() => Some(error.to_string()),
                counted => counted.map(|()| None)?,
            };
            Ok(RestoredHead {
                uncounted,
                checkpoint: name,
                version: restored.version.number,
                undo: restored.undo.name,
                files,
                directories,
            })
        })
    }

    /// Forgets a checkpoint. Forks that began with it are vaults of their own and stay; which they are is told, and
    /// unless somebody knows of them already, nothing is done.
    pub fn checkpoint_delete(
        &self,
        vault: Select,
        name: &CheckpointName,
        if_forked: IfForked,
    ) -> Result<Vec<VaultName>> {
        let vault = self.vault(&vault, Verb::Work)?;
        let vaults = &self.inner.vaults;
        let checkpoint = vaults.checkpoint(vault.id, name)?;
        // One that was made to protect the vault is not for whom it protects it from.
        let maker = match checkpoint.origin {
            CheckpointOrigin::Asked => &checkpoint.by,
            CheckpointOrigin::Automatic | CheckpointOrigin::BeforeRestore => &vault.made_by,
        };
        self.check(Verb::Own, maker, || format!("checkpoint {name}"))?;
        let forks = vaults.forks(vault.id, Some(checkpoint.root))?.into_iter();
        let forks: Vec<VaultName> = forks.map(|fork| fork.name).collect();
        if if_forked == IfForked::Refuse && !forks.is_empty() {
            let name = name.clone();
            return Err(avfs_vault::Error::CheckpointHasForks { name, forks }.into());
        }
        vaults.delete_checkpoint(vault.id, name, &self.principal())?;
        Ok(forks)
    }

    fn newest_undo(&self, vault: VaultId, name: &VaultName) -> Result<CheckpointName> {
        let checkpoints = self.inner.vaults.checkpoints(vault)?.into_iter();
        let newest = checkpoints
            .rev()
            .find(|checkpoint| checkpoint.origin == CheckpointOrigin::BeforeRestore);
        let newest = newest.map(|checkpoint| checkpoint.name);
        newest.ok_or_else(|| Error::NothingToUndo {
            vault: name.to_string(),
        })
    }

    fn describe_checkpoint(&self, checkpoint: Checkpoint) -> Result<CheckpointInfo> {
        let totals = self.totals(checkpoint.root)?;
        Ok(CheckpointInfo {
            files: totals.files,
            bytes: totals.bytes,
            used: None,
            damaged: totals.damaged,
            checkpoint,
        })
    }
}
