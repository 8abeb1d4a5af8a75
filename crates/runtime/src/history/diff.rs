//! What is different between two states, as names, as counts or as a patch.

use avfs_vault::{Entry, VaultPath};

use crate::Result;
use crate::gate::Verb;
use crate::history::changes::{ChangeSet, Patch};
use crate::history::patch::{self, DiffLine, LineCounts};
use crate::point::{DiffPoint, StateAt};
use crate::runtime::Select;
use crate::session::Session;

/// Which part of the states is compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DiffScope {
    #[default]
    Whole,
    /// One path in both.
    Path(VaultPath),
    /// One path before and another one after.
    Pair(VaultPath, VaultPath),
}

/// What is told beside the changes themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffDetail {
    pub patch: bool,
    pub counts: bool,
}

#[derive(Debug, Clone)]
pub struct DiffRequest {
    pub from: DiffPoint,
    pub to: DiffPoint,
    pub scope: DiffScope,
    pub detail: DiffDetail,
}

#[derive(Debug)]
pub struct Diff {
    pub from: String,
    pub to: String,
    pub changes: ChangeSet,
    pub patch: Option<Patch>,
    /// One for each change, where they were asked for.
    pub counts: Vec<LineCounts>,
    /// Where the difference is that of one file.
    pub file: Option<FileDiff>,
}

/// The difference of one file.
#[derive(Debug)]
pub struct FileDiff {
    pub before: VaultPath,
    pub after: VaultPath,
    /// The vault's versions compared, where the states are versions.
    pub versions: (Option<u64>, Option<u64>),
    /// None for what has no lines.
    pub lines: Option<Vec<DiffLine>>,
}

impl Session {
    /// The differences between two states of (or beside) a vault.
    pub fn diff(&self, vault: Select, request: &DiffRequest) -> Result<Diff> {
        let vault = self.vault(&vault, Verb::Read)?;
        let before = self.state_at(&vault, &request.from)?;
        let after = self.state_at(&vault, &request.to)?;
        let trees = self.inner.vaults.trees();
        let (changes, file) = match &request.scope {
            DiffScope::Whole => {
                let mut changes = ChangeSet::default();
                trees.diff_each(before.root, after.root, &mut |change| changes.add(change))?;
                (changes, None)
            }
            DiffScope::Path(path) => self.diff_paths(&before, &after, path, path)?,
            DiffScope::Pair(old, new) => self.diff_paths(&before, &after, old, new)?,
        };
        let changes = changes.paired_by_lines(trees)?;
        let detail = request.detail;
        let patch = detail.patch.then(|| {
            changes.patch_from(trees, |change| match &request.scope {
                DiffScope::Pair(old, new) => change.path.rebase(new, old),
                DiffScope::Whole | DiffScope::Path(_) => None,
            })
        });
        let counts = detail.counts.then(|| changes.line_counts(trees));
        Ok(Diff {
            from: request.from.to_string(),
            to: request.to.to_string(),
            counts: counts.transpose()?.unwrap_or_default(),
            patch: patch.transpose()?,
            changes,
            file,
        })
    }

    fn diff_paths(
        &self,
        before: &StateAt,
        after: &StateAt,
        old_path: &VaultPath,
        new_path: &VaultPath,
    ) -> Result<(ChangeSet, Option<FileDiff>)> {
        self.check_kept(old_path)?;
        self.check_kept(new_path)?;
        let trees = self.inner.vaults.trees();
        let old = trees.entry(before.root, old_path)?;
        let new = trees.entry(after.root, new_path)?;
        if old.is_none() && (new.is_none() || old_path != new_path) {
            let path = old_path.clone();
            return Err(avfs_vault::Error::PathNotFound { path }.into());
        }
        if new.is_none() && old_path != new_path {
            let path = new_path.clone();
            return Err(avfs_vault::Error::PathNotFound { path }.into());
        }
        let is_directory = |entry: &Option<Entry>| entry.as_ref().is_some_and(Entry::is_dir);
        let file = match is_directory(&old) || is_directory(&new) {
            true => None,
            false => Some(FileDiff {
                before: old_path.clone(),
                after: new_path.clone(),
                versions: (before.version, after.version),
                lines: patch::lines(trees, old.as_ref(), new.as_ref())?,
            }),
        };
        let mut changes = ChangeSet::default();
        let path = new_path.clone();
        trees.diff_entry(path, old, new, &mut |change| changes.add(change))?;
        Ok((changes, file))
    }
}
