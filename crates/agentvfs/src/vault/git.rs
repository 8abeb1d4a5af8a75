//! Repositories in a vault, by the vault's own git in its sandbox.

use super::Vault;
use crate::error::Result;
use crate::paths::in_vault;
use avfs_api::wire::{
    GitBranch, GitBranches, GitClone, GitCloned, GitCommit, GitCommitItem, GitCommitted, GitDiff,
    GitDiffReport, GitLog, GitState, GitStatus,
};
use std::path::Path;

impl Vault {
    /// The state of the repository at a directory.
    pub fn git_status(&self, path: impl AsRef<Path>) -> Result<GitState> {
        let (path, path_b64) = in_vault(path.as_ref());
        self.ask(&GitStatus {
            path: Some(path),
            path_b64,
        })
    }

    /// What differs from what is staged. [`GitDiff`] has more options.
    pub fn git_diff(&self, path: impl AsRef<Path>) -> Result<GitDiffReport> {
        let (path, path_b64) = in_vault(path.as_ref());
        self.ask(&GitDiff {
            path: Some(path),
            path_b64,
            ..GitDiff::default()
        })
    }

    /// Commits everything in the repository at a directory. [`GitCommit`] has more options.
    pub fn git_commit_all(
        &self,
        path: impl AsRef<Path>,
        message: impl Into<String>,
    ) -> Result<GitCommitted> {
        let (path, path_b64) = in_vault(path.as_ref());
        self.ask(&GitCommit {
            message: message.into(),
            path: Some(path),
            path_b64,
            all: true,
            ..GitCommit::default()
        })
    }

    /// The branches of the repository at a directory.
    pub fn git_branches(&self, path: impl AsRef<Path>) -> Result<GitBranches> {
        let (path, path_b64) = in_vault(path.as_ref());
        self.ask(&GitBranch {
            path: Some(path),
            path_b64,
            ..GitBranch::default()
        })
    }

    /// The newest commits of the repository at a directory.
    pub fn git_log(&self, path: impl AsRef<Path>, limit: u32) -> Result<Vec<GitCommitItem>> {
        let (path, path_b64) = in_vault(path.as_ref());
        let request = GitLog {
            path: Some(path),
            path_b64,
            limit: Some(limit),
            ..GitLog::default()
        };
        Ok(self.ask(&request)?.commits)
    }

    /// Clones a repository of this vault into a new directory.
    pub fn git_clone(&self, url: impl Into<String>, path: impl AsRef<Path>) -> Result<GitCloned> {
        let (path, path_b64) = in_vault(path.as_ref());
        self.ask(&GitClone {
            url: url.into(),
            path: Some(path),
            path_b64,
            ..GitClone::default()
        })
    }
}
