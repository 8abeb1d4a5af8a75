//! What comes from the host becomes part of a tree: directories, archives, git revisions.
//!
//! Each source is harvested first, which may take long and touches no vault; the harvest is then
//! planted into an edit, by one thread, whatever it came from.

mod archive;
mod bodies;
mod cache;
mod filter;
mod listing;
mod repository;
mod sparse;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use avfs_vault::{Edit, Entry, Kind, LinkId, Meta, Time, Trees, VaultPath, XattrMap};
use rustix::fs::{Mode, OFlags, Stat};

use crate::TransferError;
use crate::progress::Tally;
pub(crate) use archive::harvest_archive;
pub(crate) use cache::ImportCache;
pub(crate) use filter::Sieve;
pub use filter::{Gitignores, ImportFilter};
pub(crate) use repository::harvest_revision;
pub(crate) use sparse::PIECES_MAX;
use walk::{Walk, user_xattrs};

#[derive(Debug, Clone, Default)]
pub struct ImportReport {
    /// Names that are no directories.
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
    /// Files that had not changed since an earlier import and were not read again.
    pub reused: u64,
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

impl From<avfs_view::Skipped> for Skipped {
    fn from(skipped: avfs_view::Skipped) -> Skipped {
        Skipped {
            path: skipped.path,
            reason: skipped.reason.to_owned(),
        }
    }
}

/// One thing found on the host, ready to be put.
pub(crate) struct Found {
    pub path: VaultPath,
    pub entry: Entry,
    /// Of a file with several names: which file it is.
    pub inode: Option<(u64, u64)>,
}

/// All that was found on the host.
#[derive(Default)]
pub(crate) struct Harvest {
    /// Of the directory that holds everything, where the source has one.
    pub top: Option<Meta>,
    pub found: Vec<Found>,
    pub skipped: Vec<Skipped>,
    /// The sizes of all files found.
    pub bytes: u64,
}

impl Harvest {
    fn push(&mut self, found: Found) {
        if found.entry.is_file() {
            self.bytes = self.bytes.saturating_add(found.entry.size());
        }
        self.found.push(found);
    }
}

/// How things are brought in.
pub(crate) struct Intake<'a> {
    pub trees: &'a Trees,
    /// Where they go.
    pub at: &'a VaultPath,
    /// Whom everything is stored as belonging to.
    pub owner: (u32, u32),
    pub sieve: Sieve,
    pub cache: &'a ImportCache,
    pub tally: Tally<'a>,
    /// Refuses a file by its place and size, before it is read.
    pub admits: &'a Admits<'a>,
}

pub(crate) type Admits<'a> = dyn Fn(&VaultPath, u64) -> avfs_vault::Result<()> + Sync + 'a;

impl Intake<'_> {
    fn meta(&self, stat: &Stat, xattrs: XattrMap) -> Meta {
        let time = |secs, nanos| Time {
            secs,
            nanos: nanos as u32,
        };
        Meta {
            mode: stat.st_mode & 0o7777,
            uid: self.owner.0,
            gid: self.owner.1,
            mtime: time(stat.st_mtime, stat.st_mtime_nsec),
            ctime: time(stat.st_ctime, stat.st_ctime_nsec),
            xattrs,
        }
    }

    /// The place in the vault of what is `path` from the top of the source.
    fn place(&self, path: &VaultPath) -> VaultPath {
        let placed = path.rebase(&VaultPath::root(), self.at);
        placed.expect("everything is beneath the top")
    }

    /// Metadata of something that has no inode to tell it.
    fn plain_meta(&self, mode: u32, time: Time) -> Meta {
        Meta {
            uid: self.owner.0,
            gid: self.owner.1,
            ..Meta::new(mode, time)
        }
    }
}

/// Reads all that is in `host_dir`, with several threads and through descriptors, never by a path
/// that somebody could redirect meanwhile. Sockets, devices and what cannot be read are skipped
/// and listed.
pub(crate) fn harvest_directory(
    intake: &Intake<'_>,
    host_dir: &Path,
) -> Result<Harvest, TransferError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(host_dir, flags, Mode::empty());
    let top = opened.map_err(TransferError::host("open", host_dir))?;
    harvest_open_directory(intake, top, host_dir)
}

/// As [`harvest_directory`], for a directory that is open already and is shown as `host_dir`.
pub(crate) fn harvest_open_directory(
    intake: &Intake<'_>,
    top: OwnedFd,
    host_dir: &Path,
) -> Result<Harvest, TransferError> {
    let stat = rustix::fs::fstat(&top).map_err(TransferError::host("read", host_dir))?;
    let xattrs = user_xattrs(&top).map_err(TransferError::host("read", host_dir))?;
    let mut harvest = Walk::new(intake).run(top)?;
    harvest.top = Some(intake.meta(&stat, xattrs));
    Ok(harvest)
}

/// Puts a harvest at `at`. Missing directories above are made; a directory that is there already is
/// merged into, anything else replaced.
pub(crate) fn plant(
    edit: &mut Edit,
    intake: &Intake<'_>,
    mut harvest: Harvest,
) -> Result<ImportReport, TransferError> {
    harvest.found.sort_by(|a, b| a.path.cmp(&b.path));
    harvest.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    let top = harvest
        .top
        .unwrap_or_else(|| intake.plain_meta(0o755, Time::now()));
    make_directories(edit, intake.at, &top)?;
    let links = link_ids(edit, &harvest.found);
    let mut report = ImportReport {
        skipped: harvest.skipped,
        bytes: harvest.bytes,
        reused: intake.cache.reused(),
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
