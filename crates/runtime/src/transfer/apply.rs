//! What changed in a vault since an import goes back to the host directory it came from.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use avfs_transfer::{Apply, ApplyReport, Hooks, Watcher};
use avfs_vault::{ImportBase, JournalEvent, NewJournalEntry, Vault, VaultPath};
use serde_json::json;

use crate::Result;
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;
use avfs_transfer::Error as TransferError;

/// What is to be written to the host, and where to.
#[derive(Debug, Clone)]
pub struct ApplyRequest {
    pub vault: Select,
    /// The directory that was imported.
    pub host_dir: PathBuf,
    /// Where it was imported to; the latest such place when none.
    pub at: Option<VaultPath>,
    pub mode: ApplyMode,
    pub hooks: Hooks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMode {
    /// Only say what would be done.
    Plan,
    Write,
}

impl Session {
    /// Writes what changed since an import back to the host, all of it or nothing.
    pub fn export_changes(
        &self,
        request: ApplyRequest,
        watcher: &dyn Watcher,
    ) -> Result<ApplyReport> {
        let vault = self.vault(&request.vault, Verb::Govern)?;
        let host_dir = real_directory(&request.host_dir)?;
        let base = self.import_base(&vault, &host_dir, request.at.as_ref())?;
        let vault = self.slot(vault.id).current(self, Ok)?;
        let trees = self.inner.vaults.trees();
        let roots = (base.root, vault.head);
        let apply = Apply::plan(trees, roots, &base.source.at, &host_dir, watcher)?;
        if request.mode == ApplyMode::Plan {
            return Ok(apply.into_report());
        }
        let report = apply.write(request.hooks, &self.notes())?;
        let vaults = &self.inner.vaults;
        vaults.set_import_base(vault.id, &base.source, vault.head, vault.version)?;
        vaults.record(NewJournalEntry {
            vault: Some(vault.id),
            exec: None,
            principal: self.principal(),
            operation: JournalEvent::ExportChanges.into(),
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
    path.canonicalize()
        .map_err(TransferError::host("open", path))
}
