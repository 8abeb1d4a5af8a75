//! Import and export: by a host path, or as a byte stream.

use super::failure::Failure;
use super::files::{at, vault_path, vault_path_if_any};
use super::handler::Reply;
use super::{Ask, items};
use crate::wire::{
    ApplyItem, ApplyWord, ArchiveRead, ArchiveWrite, Base64, Export, ExportArchive, ExportChanges,
    Exported, ExportedChanges, HostPath, Import, Imported, RunsByItselfItem, TransferIn,
    TransferOut, TransferSet, TransferShow, TransferState, from_text, to_text,
};
use avfs_runtime::{
    ApplyAction, ApplyMode, ApplyRequest, ExportReport, ExportTo, Gitignores, Hooks, ImportFilter,
    ImportFrom, OnDamage, RunsByItself, Select, Standing, VaultPath, Watcher,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

pub(crate) fn import(
    ask: &Ask,
    vault: Select,
    request: Import,
    watcher: &dyn Watcher,
) -> Reply<Import> {
    let at = vault_path(&request.path, request.path_b64.as_ref())?;
    let host = host_path(&request.host_dir, request.host_dir_b64.as_ref())?;
    let from = match request.git_rev {
        Some(revision) => ImportFrom::Revision {
            repository: host,
            revision,
        },
        None => ImportFrom::Host(host),
    };
    let import = avfs_runtime::Import {
        vault,
        at,
        from,
        filter: filter(request.exclude, request.gitignore, request.max_depth),
    };
    bring_in(ask, import, watcher)
}

fn filter(exclude: Vec<String>, heeds_gitignore: bool, max_depth: Option<usize>) -> ImportFilter {
    ImportFilter {
        exclude,
        gitignores: match heeds_gitignore {
            true => Gitignores::Heeded,
            false => Gitignores::Taken,
        },
        max_depth,
    }
}

fn bring_in(
    ask: &Ask,
    import: avfs_runtime::Import<'_>,
    watcher: &dyn Watcher,
) -> Result<Imported, Failure> {
    let place = import.at.clone();
    let imported = ask.session.import(import, watcher);
    let imported = imported.map_err(at(&place))?;
    let report = imported.report;
    let (vfs_path, vfs_path_b64) = items::path(&place);
    Ok(Imported {
        vfs_path,
        vfs_path_b64,
        files_imported: report.files,
        dirs_created: report.directories,
        total_bytes: report.bytes,
        files_reused: report.reused,
        version: imported.version,
        skipped: report.skipped.into_iter().map(items::skipped).collect(),
    })
}

pub(crate) fn export(
    ask: &Ask,
    vault: Select,
    request: Export,
    watcher: &dyn Watcher,
) -> Reply<Export> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let host = host_path(&request.host_dir, request.host_dir_b64.as_ref())?;
    let standing = match request.overwrite {
        true => Standing::Replaced,
        false => Standing::Nothing,
    };
    let to = ExportTo {
        host_dir: &host,
        standing,
        on_damage: on_damage(request.keep_going),
    };
    let hooks = hooks(request.allow_hooks);
    let report = ask.session.export(vault, &path, to, hooks, watcher);
    Ok(exported(&path, host, report.map_err(at(&path))?))
}

pub(crate) fn export_archive(
    ask: &Ask,
    vault: Select,
    request: ExportArchive,
    watcher: &dyn Watcher,
) -> Reply<ExportArchive> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let host = host_path(&request.host_file, request.host_file_b64.as_ref())?;
    let to = (&*host, on_damage(request.keep_going));
    let report = ask.session.export_archive(vault, &path, to, watcher);
    Ok(exported(&path, host, report.map_err(at(&path))?))
}

fn exported(path: &VaultPath, host: PathBuf, report: ExportReport) -> Exported {
    let (vfs_path, vfs_path_b64) = items::path(path);
    let (real_path, real_path_b64) = to_text(host.into_os_string().into_vec());
    Exported {
        vfs_path,
        vfs_path_b64,
        real_path,
        real_path_b64,
        files_exported: report.files,
        dirs_created: report.directories,
        total_bytes: report.bytes,
        skipped: report.skipped.into_iter().map(items::skipped).collect(),
        runs_by_itself: runs_by_itself(report.runs_by_itself),
        missing: report.missing.into_iter().map(items::skipped).collect(),
    }
}

fn on_damage(keep_going: bool) -> OnDamage {
    match keep_going {
        true => OnDamage::KeepGoing,
        false => OnDamage::Stop,
    }
}

fn hooks(allowed: bool) -> Hooks {
    match allowed {
        true => Hooks::Write,
        false => Hooks::Refuse,
    }
}

fn runs_by_itself(found: Vec<RunsByItself>) -> Vec<RunsByItselfItem> {
    let items = found.into_iter().map(|it| {
        let (path, path_b64) = to_text(it.path);
        RunsByItselfItem {
            path,
            path_b64,
            why: it.why.into(),
            guarded: it.guarded,
        }
    });
    items.collect()
}

pub(crate) fn export_changes(
    ask: &Ask,
    vault: Select,
    request: ExportChanges,
    watcher: &dyn Watcher,
) -> Reply<ExportChanges> {
    let host = host_path(&request.host_dir, request.host_dir_b64.as_ref())?;
    let at = vault_path_if_any(request.path.as_deref(), request.path_b64.as_ref())?;
    let apply = ApplyRequest {
        vault,
        host_dir: host,
        at,
        mode: match request.dry_run {
            true => ApplyMode::Plan,
            false => ApplyMode::Write,
        },
        hooks: hooks(request.allow_hooks),
    };
    let report = ask.session.export_changes(apply, watcher)?;
    let changes = report.changes.into_iter().map(|(path, action)| {
        let (path, path_b64) = to_text(path);
        let action = match action {
            ApplyAction::Created => ApplyWord::Created,
            ApplyAction::Replaced => ApplyWord::Replaced,
            ApplyAction::Deleted => ApplyWord::Deleted,
            ApplyAction::Mode => ApplyWord::Mode,
        };
        ApplyItem {
            path,
            path_b64,
            action,
        }
    });
    let (vfs_path, vfs_path_b64) = items::path(&report.at);
    let (real_path, real_path_b64) = to_text(report.host_dir.as_os_str().as_bytes().to_vec());
    Ok(ExportedChanges {
        vfs_path,
        vfs_path_b64,
        real_path,
        real_path_b64,
        files_exported: report.files,
        files_deleted: report.deleted,
        dirs_created: report.directories,
        total_bytes: report.bytes,
        dry_run: request.dry_run,
        changes: changes.collect(),
        skipped: report.skipped.into_iter().map(items::skipped).collect(),
        runs_by_itself: runs_by_itself(report.runs_by_itself),
    })
}

/// The daemon's working directory means nothing to a client, so only absolute paths are accepted.
pub(crate) fn host_path(path: &HostPath, exact: Option<&Base64>) -> Result<PathBuf, Failure> {
    let text = path.as_str();
    let path = PathBuf::from(OsString::from_vec(from_text(text, exact)));
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(Failure::invalid(format!(
            "the host path {text:?} is not absolute"
        )))
    }
}

/// A host path that may be left out.
pub(crate) fn host_path_if_any(
    path: Option<&HostPath>,
    exact: Option<&Base64>,
) -> Result<Option<PathBuf>, Failure> {
    match (path, exact) {
        (None, None) => Ok(None),
        (Some(path), exact) => host_path(path, exact).map(Some),
        (None, exact) => host_path(&HostPath(String::new()), exact).map(Some),
    }
}

pub(crate) fn archive_write(
    ask: &Ask,
    vault: Select,
    request: ArchiveWrite,
    archive: &mut dyn Read,
    watcher: &dyn Watcher,
) -> Reply<ArchiveWrite> {
    let import = avfs_runtime::Import {
        vault,
        at: vault_path(&request.path, request.path_b64.as_ref())?,
        from: ImportFrom::Stream(archive),
        filter: filter(
            request.exclude.lines().map(str::to_owned).collect(),
            false,
            request.max_depth,
        ),
    };
    bring_in(ask, import, watcher)
}

pub(crate) fn archive_read(
    ask: &Ask,
    vault: Select,
    request: ArchiveRead,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    ask.session.archive(vault, &path, out).map_err(at(&path))
}

pub(crate) fn transfer_in(
    ask: &Ask,
    vault: Select,
    request: TransferIn,
    watcher: &dyn Watcher,
) -> Reply<TransferIn> {
    let import = avfs_runtime::Import {
        vault,
        at: vault_path(&request.path, request.path_b64.as_ref())?,
        from: ImportFrom::Transfer {
            name: from_text(&request.name, request.name_b64.as_ref()),
        },
        filter: filter(request.exclude, request.gitignore, request.max_depth),
    };
    bring_in(ask, import, watcher)
}

pub(crate) fn transfer_out(
    ask: &Ask,
    vault: Select,
    request: TransferOut,
    watcher: &dyn Watcher,
) -> Reply<TransferOut> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let name = from_text(&request.name, request.name_b64.as_ref());
    let report = ask.session.transfer_out(vault, &path, &name, watcher);
    let name = OsString::from_vec(name).into();
    Ok(exported(&path, name, report.map_err(at(&path))?))
}

pub(crate) fn show_directory(ask: &Ask, _: TransferShow) -> Reply<TransferShow> {
    Ok(directory_item(ask.session.transfer_directory()?))
}

pub(crate) fn set_directory(ask: &Ask, request: TransferSet) -> Reply<TransferSet> {
    let dir = host_path_if_any(request.dir.as_ref(), request.dir_b64.as_ref())?;
    let set = ask.session.set_transfer_directory(dir.as_deref())?;
    Ok(directory_item(set))
}

fn directory_item(dir: Option<PathBuf>) -> TransferState {
    let text = dir.map(|dir| to_text(dir.into_os_string().into_vec()));
    let (dir, dir_b64) = text.unzip();
    TransferState {
        dir,
        dir_b64: dir_b64.flatten(),
    }
}
