//! States of a vault: checkpoints, versions, and what differs between them.

use super::Vault;
use crate::error::Result;
use crate::paths::in_vault;
use avfs_api::wire::{
    CheckedOut, Checkout, CheckpointDelete, CheckpointDeleted, CheckpointDetailsItem,
    CheckpointInfo, CheckpointItem, CheckpointList, CheckpointRestore, CheckpointRestored,
    CheckpointSave, Commit, CommitItem, Diff, DiffReport, Journal, JournalItem, PathLog,
    PathVersionItem, Prune, PruneFindings, Revert, Reverted, VaultLog, VersionItem,
};
use std::path::Path;

impl Vault {
    /// Saves its state under a name.
    pub fn checkpoint(&self, name: impl Into<String>) -> Result<CheckpointItem> {
        self.ask(&CheckpointSave {
            name: Some(name.into()),
            description: None,
        })
    }

    /// Its checkpoints.
    pub fn checkpoints(&self) -> Result<Vec<CheckpointItem>> {
        Ok(self.ask(&CheckpointList::default())?.snapshots)
    }

    /// Describes a checkpoint.
    pub fn checkpoint_info(&self, name: impl Into<String>) -> Result<CheckpointDetailsItem> {
        self.ask(&CheckpointInfo { name: name.into() })
    }

    /// Brings the vault back to a checkpoint. While a command runs in it, that is a conflict. The state before is kept:
    /// see [`Vault::undo_restore`].
    pub fn restore(&self, name: impl Into<String>) -> Result<CheckpointRestored> {
        self.ask(&CheckpointRestore {
            name: Some(name.into()),
            undo: false,
            force: false,
        })
    }

    /// Goes back to what the last restore replaced.
    pub fn undo_restore(&self) -> Result<CheckpointRestored> {
        self.ask(&CheckpointRestore {
            name: None,
            undo: true,
            force: false,
        })
    }

    /// Deletes a checkpoint. Forks of it stay.
    pub fn delete_checkpoint(&self, name: impl Into<String>) -> Result<CheckpointDeleted> {
        self.ask(&CheckpointDelete {
            name: name.into(),
            force: true,
        })
    }

    /// What has changed since the vault was forked; for one that is no fork, since it was empty.
    pub fn diff(&self) -> Result<DiffReport> {
        self.ask(&Diff::default())
    }

    /// What differs between two states: `BASE`, `HEAD`, `vN`, `vault:NAME` or a checkpoint's name.
    pub fn diff_between(
        &self,
        from: impl Into<String>,
        to: impl Into<String>,
    ) -> Result<DiffReport> {
        self.ask(&Diff {
            from: from.into(),
            to: to.into(),
            ..Diff::default()
        })
    }

    /// Its versions, the newest first.
    pub fn log(&self, limit: usize) -> Result<Vec<VersionItem>> {
        Ok(self.ask(&VaultLog::newest(limit))?.versions)
    }

    /// The versions in which a path changed, the newest first.
    pub fn path_log(&self, path: impl AsRef<Path>, limit: usize) -> Result<Vec<PathVersionItem>> {
        let (path, path_b64) = in_vault(path);
        let request = PathLog {
            path,
            path_b64,
            limit,
            cursor: None,
        };
        Ok(self.ask(&request)?.versions)
    }

    /// Gives a path the content that it had in an earlier version.
    pub fn checkout(&self, path: impl AsRef<Path>, version: u64) -> Result<CheckedOut> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Checkout {
            path,
            path_b64,
            version,
        })
    }

    /// Gives a path the content that it had before its last change.
    pub fn revert(&self, path: impl AsRef<Path>) -> Result<Reverted> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Revert { path, path_b64 })
    }

    /// Makes a version of what a mount or a running command has written by now.
    pub fn commit(&self) -> Result<CommitItem> {
        self.ask(&Commit {})
    }

    /// Deletes old versions, as the options say.
    pub fn prune(&self, options: &Prune) -> Result<PruneFindings> {
        self.ask(options)
    }

    /// What happened to it, the newest first.
    pub fn journal(&self, limit: usize) -> Result<Vec<JournalItem>> {
        let request = Journal {
            vault: Some(self.name().to_owned()),
            limit,
            ..Journal::default()
        };
        Ok(self.ask(&request)?.entries)
    }
}
