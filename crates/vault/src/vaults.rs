//! Vaults by name: each change is one transaction together with its journal entry.

use avfs_store::Store;

use crate::{
    Checkpoint, CheckpointName, CheckpointOrigin, JournalCheck, JournalEntry, JournalFilter,
    NewJournalEntry, NewVersion, Principal, Restored, Result, RootId, Trees, Vault, VaultId,
    VaultName, Version,
};

#[derive(Clone)]
pub struct Vaults {
    trees: Trees,
}

impl Vaults {
    pub fn open(store: Store) -> Result<Vaults> {
        Ok(Vaults {
            trees: Trees::new(store),
        })
    }
    pub fn trees(&self) -> &Trees {
        &self.trees
    }
    pub fn create(&self, _name: &VaultName, _by: &Principal) -> Result<Vault> {
        todo!()
    }
    pub fn list(&self) -> Result<Vec<Vault>> {
        todo!()
    }
    pub fn get(&self, _name: &VaultName) -> Result<Vault> {
        todo!()
    }
    pub fn by_id(&self, _id: VaultId) -> Result<Vault> {
        todo!()
    }
    pub fn current(&self) -> Result<Option<Vault>> {
        todo!()
    }
    pub fn set_current(&self, _name: &VaultName) -> Result<()> {
        todo!()
    }
    pub fn fork(&self, _source: &VaultName, _name: &VaultName, _by: &Principal) -> Result<Vault> {
        todo!()
    }
    pub fn delete(&self, _name: &VaultName, _by: &Principal) -> Result<()> {
        todo!()
    }
    pub fn publish(
        &self,
        _vault: VaultId,
        _expected: RootId,
        _new: RootId,
        _version: NewVersion,
    ) -> Result<Version> {
        todo!()
    }
    pub fn versions(&self, _vault: VaultId, _limit: usize) -> Result<Vec<Version>> {
        todo!()
    }
    pub fn save_checkpoint(
        &self,
        _vault: VaultId,
        _name: Option<&CheckpointName>,
        _root: RootId,
        _origin: CheckpointOrigin,
        _by: &Principal,
    ) -> Result<Checkpoint> {
        todo!()
    }
    pub fn checkpoints(&self, _vault: VaultId) -> Result<Vec<Checkpoint>> {
        todo!()
    }
    pub fn checkpoint(&self, _vault: VaultId, _name: &CheckpointName) -> Result<Checkpoint> {
        todo!()
    }
    pub fn delete_checkpoint(
        &self,
        _vault: VaultId,
        _name: &CheckpointName,
        _by: &Principal,
    ) -> Result<()> {
        todo!()
    }
    /// Removes a checkpoint nobody asked for; refuses one that somebody did.
    pub fn drop_automatic_checkpoint(
        &self,
        _vault: VaultId,
        _name: &CheckpointName,
        _by: &Principal,
    ) -> Result<()> {
        todo!()
    }
    pub fn restore(
        &self,
        _vault: VaultId,
        _expected: RootId,
        _name: &CheckpointName,
        _by: &Principal,
    ) -> Result<Restored> {
        todo!()
    }
    pub fn record(&self, _event: NewJournalEntry) -> Result<JournalEntry> {
        todo!()
    }
    pub fn journal(&self, _filter: &JournalFilter) -> Result<Vec<JournalEntry>> {
        todo!()
    }
    pub fn verify_journal(&self) -> Result<JournalCheck> {
        todo!()
    }
}
