//! Versions and differences.

use super::failure::Failure;
use super::files::{at, vault_path, vault_path_if_any};
use super::items;
use super::{Ask, Reply, parse};
use crate::wire::{
    Changes, CheckedOut, Checkout, Diff, DiffLineItem, DiffReport, ExecChangesReport, FileDiffItem,
    LineWord, PathLog, PathVersionListing, Revert, Reverted, VaultLog, VersionListing,
};
use avfs_runtime::bounds::LISTED_MAX;
use avfs_runtime::{
    ChangesOf, DiffDetail, DiffLine, DiffPoint, DiffRequest, DiffScope, ExecChangesRequest,
    FileDiff, LineKind, Select,
};
use std::num::NonZeroUsize;

pub(crate) fn vault_log(ask: &Ask, vault: Select, request: VaultLog) -> Reply<VaultLog> {
    let log = ask
        .session
        .vault_log(vault, request.limit, request.cursor)?;
    Ok(VersionListing {
        next_cursor: next(&log, request.limit, |it| it.version.number),
        versions: log.iter().map(items::version).collect(),
    })
}

pub(crate) fn path_log(ask: &Ask, vault: Select, request: PathLog) -> Reply<PathLog> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let log = ask
        .session
        .path_log(vault, &path, request.limit, request.cursor)
        .map_err(at(&path))?;
    Ok(PathVersionListing {
        next_cursor: next(&log, request.limit, |it| it.version.number),
        versions: log.iter().map(items::path_version).collect(),
    })
}

/// The cursor behind a full page. The next one may be empty.
fn next<T>(log: &[T], limit: usize, number: impl Fn(&T) -> u64) -> Option<u64> {
    let last = log.last().map(number);
    last.filter(|number| *number > 1 && log.len() >= limit.min(LISTED_MAX))
}

pub(crate) fn checkout(ask: &Ask, vault: Select, request: Checkout) -> Reply<Checkout> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let done = ask
        .session
        .checkout(vault, &path, request.version)
        .map_err(at(&path))?;
    let (path, path_b64) = items::path(&done.path);
    Ok(CheckedOut {
        path,
        path_b64,
        restored_version: done.to,
        new_version: done.version,
    })
}

pub(crate) fn revert(ask: &Ask, vault: Select, request: Revert) -> Reply<Revert> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let done = ask.session.revert(vault, &path).map_err(at(&path))?;
    let (path, path_b64) = items::path(&done.path);
    Ok(Reverted {
        path,
        path_b64,
        reverted_from: done.from,
        reverted_to: done.to,
        new_version: done.version,
    })
}

pub(crate) fn diff(ask: &Ask, vault: Select, request: Diff) -> Reply<Diff> {
    let asked = DiffRequest {
        from: parse(&request.from)?,
        to: parse(&request.to)?,
        scope: scope(&request)?,
        detail: DiffDetail {
            patch: request.patch,
            counts: request.stat,
        },
    };
    let diff = ask.session.diff(vault, &asked)?;
    let mut changes: Vec<_> = diff.changes.listed.iter().map(items::change).collect();
    for (change, counts) in changes.iter_mut().zip(&diff.counts) {
        change.additions = Some(counts.added);
        change.deletions = Some(counts.removed);
        change.binary = Some(counts.binary);
    }
    let (patch, patch_truncated) = items::patch(diff.patch);
    Ok(DiffReport {
        from: diff.from,
        to: diff.to,
        identical: changes.is_empty(),
        changes,
        truncated: diff.changes.is_truncated(),
        patch,
        patch_truncated,
        file: diff.file.map(file_diff),
    })
}

/// What an exec changed.
pub(crate) fn changes(ask: &Ask, request: Changes) -> Reply<Changes> {
    let told = ask.session.exec_changes(&ExecChangesRequest {
        exec: parse(&request.exec)?,
        of: match request.all {
            true => ChangesOf::All,
            false => ChangesOf::Report,
        },
        patch: request.patch,
        from: request.cursor.unwrap_or(0),
        limit: request.limit.map(NonZeroUsize::get),
    })?;
    let (patch, patch_truncated) = items::patch(told.patch);
    Ok(ExecChangesReport {
        exec: told.exec.to_string(),
        vault: told.vault.to_string(),
        version: told.version,
        changes: told.changes.listed.iter().map(items::change).collect(),
        changes_total: told.changes.total,
        ignored_changes: items::ignored(&told.ignored),
        home_changes: told.home_changes,
        patch,
        patch_truncated,
        next_cursor: told.next,
    })
}

/// The other vaults that a comparison names.
pub(crate) fn other_vaults(request: &Diff) -> Vec<String> {
    let points = [&request.from, &request.to];
    let vaults = points.into_iter().filter_map(|point| match point.parse() {
        Ok(DiffPoint::Vault(name)) => Some(name.to_string()),
        _ => None,
    });
    vaults.collect()
}

fn scope(request: &Diff) -> Result<DiffScope, Failure> {
    let path = vault_path_if_any(request.path.as_deref(), request.path_b64.as_ref())?;
    let other = vault_path_if_any(request.path2.as_deref(), request.path2_b64.as_ref())?;
    match (path, other) {
        (None, None) => Ok(DiffScope::Whole),
        (Some(path), None) => Ok(DiffScope::Path(path)),
        (Some(path), Some(other)) => Ok(DiffScope::Pair(path, other)),
        (None, Some(_)) => Err(Failure::invalid(
            "`path2` needs a `path` to compare it with",
        )),
    }
}

fn file_diff(file: FileDiff) -> FileDiffItem {
    let line = |line: DiffLine| DiffLineItem {
        line_type: match line.kind {
            LineKind::Added => LineWord::Add,
            LineKind::Removed => LineWord::Remove,
            LineKind::Context => LineWord::Context,
        },
        line_num: line.number,
        content: line.text,
    };
    FileDiffItem {
        path1: file.before.to_string(),
        path2: file.after.to_string(),
        version1: file.versions.0,
        version2: file.versions.1,
        binary: file.lines.is_none(),
        diff: file
            .lines
            .unwrap_or_default()
            .into_iter()
            .map(line)
            .collect(),
    }
}
