//! What changed in a vault since an import goes back to the host directory it came from.
//!
//! First a plan: what differs between the import and now, each path compared with the host as it is.
//! One path that changed on the host since refuses the whole. Then the new files are made aside, and
//! take their places one rename after the other; what they replace is kept until all are in place,
//! so that a failure, or the next start after a crash, puts everything back.

mod apply;
mod beneath;
mod plan;
mod record;
#[cfg(test)]
mod tests;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use avfs_vault::{ImportBase, NewJournalEntry, Vault, VaultPath};
use serde_json::json;

use crate::autorun::{self, Hooks, Outgoing, RunsByItself};
use crate::gate::Verb;
use crate::progress::{Tally, Watcher};
use crate::runtime::Select;
use crate::session::Session;
use crate::{OnDamage, Result, Skipped, TransferError};
use beneath::HostTree;
pub(crate) use beneath::rename_new;
use plan::Plan;
pub(crate) use record::put_back_unfinished;

/// What is to go back, and where to.
#[derive(Debug, Clone)]
pub struct Back {
    pub vault: Select,
    /// The directory that was imported.
    pub host_dir: PathBuf,
    /// Where it was imported to; the latest such place when none.
    pub at: Option<VaultPath>,
    pub mode: BackMode,
    pub hooks: Hooks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackMode {
    /// Only say what would be done.
    Plan,
    Apply,
}

#[derive(Debug, Clone)]
pub struct BackReport {
    pub at: VaultPath,
    pub host_dir: PathBuf,
    /// Names written that are no directories.
    pub files: u64,
    pub deleted: u64,
    pub directories: u64,
    pub bytes: u64,
    /// Every path of the host that follows the vault, relative to the directory.
    pub changes: Vec<(Vec<u8>, BackAction)>,
    /// What the host keeps although the vault has it not, and what it did not take.
    pub skipped: Vec<Skipped>,
    /// What of it tools of the host run by themselves.
    pub runs_by_itself: Vec<RunsByItself>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackAction {
    Created,
    Replaced,
    Deleted,
    Mode,
}

impl Session {
    /// Writes what changed since an import back to the host, all of it or nothing.
    pub fn export_changes(&self, back: Back, watcher: &dyn Watcher) -> Result<BackReport> {
        let vault = self.vault(&back.vault, Verb::Govern)?;
        let host_dir = real_directory(&back.host_dir)?;
        let base = self.import_base(&vault, &host_dir, back.at.as_ref())?;
        let at = base.source.at.clone();
        let vault = self.slot(vault.id).current(self, Ok)?;
        let trees = self.inner.vaults.trees();
        match trees.entry(vault.head, &at)? {
            Some(entry) if entry.is_dir() => {}
            Some(_) => return Err(avfs_vault::Error::NotADirectory { path: at }.into()),
            None => return Err(avfs_vault::Error::PathNotFound { path: at }.into()),
        }
        let host = HostTree::open(&host_dir)?;
        let tally = Tally::new(watcher, (None, None));
        let plan = Plan::make(trees, (base.root, vault.head), &at, &host, &tally)?;
        let mut report = plan.report(at, host_dir.clone());
        let outgoing = Outgoing {
            trees,
            root: vault.head,
            at: &report.at,
            host_dir: &host_dir,
            on_damage: OnDamage::Stop,
        };
        report.runs_by_itself = outgoing.changed(base.root, &report.changes)?;
        if back.mode == BackMode::Plan {
            return Ok(report);
        }
        autorun::check(&report.runs_by_itself, back.hooks)?;
        if !plan.is_empty() {
            let records = self.inner.config.home.join(crate::aside::DIRECTORY);
            let kept = plan.apply(trees, &host, &records, tally)?;
            report.skipped.extend(kept);
        }
        let vaults = &self.inner.vaults;
        vaults.set_import_base(vault.id, &base.source, vault.head, vault.version)?;
        vaults.record(NewJournalEntry {
            vault: Some(vault.id),
            exec: None,
            principal: self.principal(),
            operation: "export_changes".into(),
            details: json!({
                "paths": [report.at.to_string()],
                "host_dir": host_dir.display().to_string(),
                "files": report.files,
                "deleted": report.deleted,
                "run_by_themselves": report.runs_by_itself.iter()
                    .map(|it| String::from_utf8_lossy(&it.path)).collect::<Vec<_>>(),
            }),
        })?;
        Ok(report)
    }

    fn import_base(
        &self,
        vault: &Vault,
        host_dir: &Path,
        at: Option<&VaultPath>,
    ) -> Result<ImportBase> {
        let bases = self.inner.vaults.import_bases(vault.id)?.into_iter();
        let bytes = host_dir.as_os_str().as_bytes();
        let mut wanted = bases.filter(|base| base.source.host_dir == bytes);
        let found = wanted.find(|base| at.is_none_or(|at| *at == base.source.at));
        let never = || TransferError::NeverImported {
            path: host_dir.to_owned(),
        };
        Ok(found.ok_or_else(never)?)
    }
}

fn real_directory(path: &Path) -> Result<PathBuf, TransferError> {
    path.canonicalize().map_err(|source| TransferError::Host {
        action: "open",
        path: path.to_owned(),
        source,
    })
}
