//! A host directory copied into a tree that is being edited.
//!
//! Everything beneath the directory is reached through descriptors, never by a path that somebody
//! could redirect meanwhile. Several threads read and hash; the edit is made at the end, by one.

#[cfg(test)]
mod tests;
mod walk;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use avfs_vault::{Edit, Entry, Kind, LinkId, Meta, Time, Trees, VaultPath};
use rustix::fs::{Mode, OFlags};

use crate::TransferError;
use walk::{Found, Walk, user_xattrs};

#[derive(Debug, Clone, Default)]
pub struct ImportReport {
    /// Names that are no directories.
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
    /// Sorted by path.
    pub skipped: Vec<Skipped>,
}

/// Something that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Relative to the directory that is copied.
    pub path: Vec<u8>,
    pub reason: String,
}

/// Copies what is in `host_dir` to `at`. Missing directories above are made; a directory that is
/// there already is merged into, anything else replaced. Sockets, devices and what cannot be
/// read are skipped and listed. Everything is stored as owned by `owner`.
pub fn import_directory(
    trees: &Trees,
    edit: &mut Edit,
    host_dir: &Path,
    at: &VaultPath,
    owner: (u32, u32),
) -> Result<ImportReport, TransferError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(host_dir, flags, Mode::empty());
    let top = Arc::new(opened.map_err(TransferError::host("open", host_dir))?);
    let stat = rustix::fs::fstat(&top).map_err(TransferError::host("read", host_dir))?;
    let xattrs = user_xattrs(&top).map_err(TransferError::host("read", host_dir))?;

    let walk = Walk::new(trees, at, owner);
    let mut harvest = walk.run(top)?;
    harvest.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    harvest.skipped.sort_unstable_by(|a, b| a.path.cmp(&b.path));

    make_directories(edit, at, &walk.meta(&stat, xattrs))?;
    let links = link_ids(edit, &harvest.found);
    let mut report = ImportReport {
        skipped: harvest.skipped,
        ..ImportReport::default()
    };
    for Found {
        path,
        mut entry,
        inode,
    } in harvest.found
    {
        if entry.is_dir() {
            report.directories += 1;
            put_directory(edit, &path, entry)?;
            continue;
        }
        report.files += 1;
        if let Some((link, first)) = inode.and_then(|inode| links.get(&inode)) {
            // Read once per name; if the file changed in between, the first reading counts.
            entry = first.clone();
            set_link(&mut entry, *link);
        }
        if let Kind::File { size, .. } = entry.kind {
            report.bytes += size;
        }
        edit.put(&path, entry)?;
    }
    Ok(report)
}

/// One link id per file that was found under several names, with the entry they share.
fn link_ids(edit: &Edit, found: &[Found]) -> HashMap<(u64, u64), (LinkId, Entry)> {
    let mut names: HashMap<(u64, u64), Vec<&Found>> = HashMap::new();
    for found in found {
        if let Some(inode) = found.inode {
            names.entry(inode).or_default().push(found);
        }
    }
    names.retain(|_, names| names.len() > 1);
    let link = |names: Vec<&Found>| (edit.fresh_link(&names[0].path), names[0].entry.clone());
    names
        .into_iter()
        .map(|(inode, names)| (inode, link(names)))
        .collect()
}

fn set_link(entry: &mut Entry, id: LinkId) {
    if let Kind::File { link, .. } = &mut entry.kind {
        *link = Some(id);
    }
}

/// Makes `at` with `meta` and what is missing above it, unless it is there.
fn make_directories(edit: &mut Edit, at: &VaultPath, meta: &Meta) -> Result<(), TransferError> {
    match edit.get(at)? {
        Some(entry) if entry.is_dir() => return Ok(()),
        Some(_) => return Err(avfs_vault::Error::NotADirectory { path: at.clone() }.into()),
        None => {}
    }
    if let Some(parent) = at.parent() {
        let mut above = Meta::new(0o755, Time::now());
        (above.uid, above.gid) = (meta.uid, meta.gid);
        make_directories(edit, &parent, &above)?;
    }
    let mut entry = Entry::directory(0, Time::EPOCH);
    entry.meta = meta.clone();
    Ok(edit.put(at, entry)?)
}

/// Merges into a directory that is there already.
fn put_directory(edit: &mut Edit, path: &VaultPath, entry: Entry) -> Result<(), TransferError> {
    let merges = edit.get(path)?.is_some_and(|there| there.is_dir());
    if merges {
        edit.set_meta(path, entry.meta)?;
    } else {
        edit.put(path, entry)?;
    }
    Ok(())
}
