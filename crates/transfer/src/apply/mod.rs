//! What changed in a tree since an import goes to the host directory that was imported.
//!
//! First a plan: what differs between the import and now, each path compared with the host as it is.
//! One path that changed on the host since then refuses the whole. Then the new files are created in a
//! temporary directory and renamed to their places one by one. The files they replace are kept until
//! all are in place, so that a failure, or the next start after a crash, undoes everything.

mod plan;
mod record;
mod run;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use avfs_vault::{RootId, Trees, VaultPath};

use crate::autorun::{self, Hooks, Outgoing, RunsByItself};
use crate::damage::OnDamage;
use crate::error::Result;
use crate::host_tree::HostTree;
use crate::progress::{Tally, Watcher};
use crate::report::Skipped;
use plan::Plan;
pub use record::finish_interrupted;

/// What is written to the host, or would be.
#[derive(Debug, Clone)]
pub struct ApplyReport {
    /// The directory of the tree.
    pub at: VaultPath,
    pub host_dir: PathBuf,
    /// Names written that are no directories.
    pub files: u64,
    pub deleted: u64,
    pub directories: u64,
    pub bytes: u64,
    /// Every path that is changed on the host, relative to the directory.
    pub changes: Vec<(Vec<u8>, ApplyAction)>,
    /// What stays on the host although the tree does not have it, and what the host refused.
    pub skipped: Vec<Skipped>,
    /// Files that tools of the host run without being asked to.
    pub runs_by_itself: Vec<RunsByItself>,
}

/// What is done at a path of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyAction {
    Created,
    Replaced,
    Deleted,
    Mode,
}

/// Changes that the host had no conflict with when they were planned. Nothing is written yet.
pub struct Apply<'a> {
    trees: &'a Trees,
    host: HostTree,
    plan: Plan,
    tally: Tally<'a>,
    report: ApplyReport,
}

impl<'a> Apply<'a> {
    /// Compares the directory `at` in `base`, where it was imported, and in `head` with the host.
    pub fn plan(
        trees: &'a Trees,
        (base, head): (RootId, RootId),
        at: &VaultPath,
        host_dir: &Path,
        watcher: &'a dyn Watcher,
    ) -> Result<Apply<'a>> {
        match trees.entry(head, at)? {
            Some(entry) if entry.is_dir() => {}
            Some(_) => return Err(avfs_vault::Error::NotADirectory { path: at.clone() }.into()),
            None => return Err(avfs_vault::Error::PathNotFound { path: at.clone() }.into()),
        }
        let host = HostTree::open(host_dir)?;
        let tally = Tally::new(watcher, (None, None));
        let plan = Plan::make(trees, (base, head), at, &host, &tally)?;
        let mut report = plan.report(at.clone(), host_dir.to_owned());
        let outgoing = Outgoing {
            trees,
            root: head,
            at,
            host_dir,
            on_damage: OnDamage::Stop,
        };
        let paths = report.changes.iter().map(|(path, _)| &path[..]);
        report.runs_by_itself = outgoing.written(base, paths)?;
        Ok(Apply {
            trees,
            host,
            plan,
            tally,
            report,
        })
    }

    /// What would be written.
    pub fn into_report(self) -> ApplyReport {
        self.report
    }

    /// Writes all of it, or nothing. What is unfinished is recorded among `notes` until it is done or undone.
    pub fn write(mut self, hooks: Hooks, notes: &Path) -> Result<ApplyReport> {
        autorun::check(&self.report.runs_by_itself, hooks)?;
        if !self.plan.is_empty() {
            let left = self.plan.apply(self.trees, &self.host, notes, self.tally)?;
            self.report.skipped.extend(left);
        }
        Ok(self.report)
    }
}
