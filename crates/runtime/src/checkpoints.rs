//! Checkpoints: a name for a state, and the way back to it.

use avfs_vault::{ChangeKind, Checkpoint, CheckpointName, CheckpointOrigin, Principal};

use crate::Result;
use crate::runtime::{Runtime, Select};

/// What a restore did.
#[derive(Debug, Clone)]
pub struct RestoredHead {
    pub version: u64,
    /// Restoring this one undoes the restore.
    pub undo: CheckpointName,
    /// How many paths are different now.
    pub changes: usize,
}

impl Runtime {
    /// Names the state of the vault as it is now, also what running commands have written.
    pub fn checkpoint_save(
        &self,
        vault: Select,
        name: Option<&CheckpointName>,
    ) -> Result<Checkpoint> {
        let vault = self.vault(&vault)?;
        self.slot(vault.id).current(self, |vault| {
            let origin = CheckpointOrigin::Asked;
            let by = &Principal::Owner;
            Ok(self
                .inner
                .vaults
                .save_checkpoint(vault.id, name, vault.head, origin, by)?)
        })
    }

    pub fn checkpoint_list(&self, vault: Select) -> Result<Vec<Checkpoint>> {
        Ok(self.inner.vaults.checkpoints(self.vault(&vault)?.id)?)
    }

    /// Puts the vault back to a checkpoint, in one step that can itself be undone.
    pub fn checkpoint_restore(&self, vault: Select, name: &CheckpointName) -> Result<RestoredHead> {
        let vault = self.vault(&vault)?;
        self.slot(vault.id).settled(self, |vault| {
            let by = &Principal::Owner;
            let restored = self.inner.vaults.restore(vault.id, vault.head, name, by)?;
            let trees = self.inner.vaults.trees();
            let differences = trees.diff(vault.head, restored.version.root)?;
            let differences = differences
                .iter()
                .filter(|change| change.kind != ChangeKind::Times);
            Ok(RestoredHead {
                version: restored.version.number,
                undo: restored.undo.name,
                changes: differences.count(),
            })
        })
    }

    pub fn checkpoint_delete(&self, vault: Select, name: &CheckpointName) -> Result<()> {
        let vault = self.vault(&vault)?;
        Ok(self
            .inner
            .vaults
            .delete_checkpoint(vault.id, name, &Principal::Owner)?)
    }
}
