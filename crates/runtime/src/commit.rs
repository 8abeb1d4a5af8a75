//! Commit on demand: what commands and programs have written by now becomes a version.

use avfs_vault::{Cause, NewVersion, Principal, VaultName};
use serde_json::json;

use crate::changes::{ChangeList, left_out};
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Result, Skipped};

/// What a commit took in.
#[derive(Debug, Clone)]
pub struct CommitReport {
    pub vault: VaultName,
    /// The new version; none when nothing had changed.
    pub version: Option<u64>,
    pub changes: ChangeList,
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
        let changes = ChangeList::between(trees, before, committed.after)?;
        Ok(CommitReport {
            vault: vault.name,
            version: committed.version,
            changes,
            skipped: left_out(committed.skipped),
        })
    }
}

pub(crate) fn commit_version(by: Principal, details: serde_json::Value) -> NewVersion {
    NewVersion {
        by,
        exec: None,
        cause: Cause::Commit,
        details,
    }
}
