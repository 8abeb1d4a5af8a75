//! Commit on demand: what commands and programs have written by now becomes a version.

use avfs_transfer::Skipped;
use avfs_vault::VaultName;
use serde_json::json;

use crate::Result;
use crate::gate::Verb;
use crate::history::changes::{ChangeSet, left_out};
use crate::live::layer_commit::commit_version;
use crate::runtime::Select;
use crate::session::Session;

/// What a commit took in.
#[derive(Debug, Clone)]
pub struct CommitReport {
    pub vault: VaultName,
    /// The new version; none when nothing had changed.
    pub version: Option<u64>,
    pub changes: ChangeSet,
    /// What no vault can hold.
    pub skipped: Vec<Skipped>,
}

impl Session {
    /// Makes a version of what the vault's view holds, while whoever works in it goes on.
    pub fn commit(&self, vault: Select) -> Result<CommitReport> {
        let vault = self.vault(&vault, Verb::Work)?;
        let asked = commit_version(self.principal(), json!({ "asked": true }));
        let (before, committed) = self.slot(vault.id).commit_now(self, asked)?;
        let trees = self.inner.vaults.trees();
        let changes = ChangeSet::between(trees, before, committed.after)?;
        Ok(CommitReport {
            vault: vault.name,
            version: committed.version,
            changes,
            skipped: left_out(committed.skipped),
        })
    }
}
