//! What comes from the host becomes part of a tree: directories, archives, git revisions.
//!
//! A source is read first: its content is stored, no tree changes, and it may take long. What was read is then put into an
//! edit by one thread, whatever it came from.

mod archive;
mod bodies;
mod cache;
mod filter;
mod git;
mod host_file;
mod listed;
mod listing;
mod repository;
mod sparse;
#[cfg(test)]
mod tests;
mod tracked;
mod walk;

use std::collections::HashMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use avfs_vault::{Edit, Entry, Kind, LinkId, Meta, RootId, Time, Trees, VaultPath, XattrMap};
use rustix::fs::{Mode, OFlags, Stat};

use crate::error::{Error, Result};
use crate::progress::{Tally, Watcher};
use crate::report::Skipped;
pub use cache::ImportCache;
use filter::Exclusions;
pub use filter::{Gitignores, ImportFilter};
pub use git::GitEnvironment;
use host_file::user_xattrs;
use walk::Walk;

/// What an import brought in.
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

/// One name of the source. The content of a file is stored already.
struct Found {
    pub path: VaultPath,
    pub entry: Entry,
    /// Of a file with several names: which file it is.
    pub inode: Option<(u64, u64)>,
}

/// All that was read of a source, not yet in any tree. Nothing refers to its content: the caller holds a lease on the
/// store until it is published.
#[derive(Default)]
pub struct Incoming {
    /// Of the directory that holds everything, where the source has one.
    top: Option<Meta>,
    found: Vec<Found>,
    skipped: Vec<Skipped>,
    /// The sizes of all files found.
    bytes: u64,
}

impl Incoming {
    fn push(&mut self, found: Found) {
        if found.entry.is_file() {
            self.bytes = self.bytes.saturating_add(found.entry.size());
        }
        self.found.push(found);
    }
}

/// Where things go, and on what terms.
pub struct ImportTerms<'a> {
    pub trees: &'a Trees,
    /// The directory that receives them.
    pub at: &'a VaultPath,
    /// The user and group that everything is stored with.
    pub owner: (u32, u32),
    pub filter: &'a ImportFilter,
    /// Where exports note what they make beside their targets; an import leaves that out.
    pub notes: &'a Path,
    pub cache: &'a ImportCache,
    /// How git is run, for revisions and to know what is tracked.
    pub git: GitEnvironment<'a>,
    /// Refuses a file by its place and size, before it is read.
    pub admits: &'a Admits<'a>,
}

/// Whether a file that has several names is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HardLinks {
    Kept,
    /// It is left out: another name of it may be anywhere on the host.
    Refused,
}

/// Called from several threads.
pub type Admits<'a> = dyn Fn(&VaultPath, u64) -> avfs_vault::Result<()> + Sync + 'a;

/// Reads sources, and puts what was read into an edit.
pub struct Importer<'a> {
    trees: &'a Trees,
    at: &'a VaultPath,
    owner: (u32, u32),
    exclusions: Exclusions,
    cache: &'a ImportCache,
    git: GitEnvironment<'a>,
    tally: Tally<'a>,
    admits: &'a Admits<'a>,
}

impl<'a> Importer<'a> {
    pub fn new(terms: ImportTerms<'a>, watcher: &'a dyn Watcher) -> Result<Importer<'a>> {
        let exclusions = Exclusions::new(terms.filter, terms.notes)?;
        Ok(Importer {
            trees: terms.trees,
            at: terms.at,
            owner: terms.owner,
            exclusions,
            cache: terms.cache,
            git: terms.git,
            tally: Tally::new(watcher, (None, None)),
            admits: terms.admits,
        })
    }

    /// Reads all that is in `host_dir`, with several threads and through descriptors, so that a
    /// concurrent rename or symlink redirects nothing. Sockets, devices and what cannot be read are
    /// skipped and listed.
    pub fn read_directory(&self, host_dir: &Path) -> Result<Incoming> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(host_dir, flags, Mode::empty());
        let top = opened.map_err(Error::host("open", host_dir))?;
        self.read_open_directory(top, host_dir, HardLinks::Kept)
    }

    /// Reads a directory that is open already; errors call it `shown`.
    pub(crate) fn read_open_directory(
        &self,
        top: OwnedFd,
        shown: &Path,
        hard_links: HardLinks,
    ) -> Result<Incoming> {
        let stat = rustix::fs::fstat(&top).map_err(Error::host("read", shown))?;
        let xattrs = user_xattrs(&top).map_err(Error::host("read", shown))?;
        let mut incoming = Walk::new(self, shown, hard_links).run(top)?;
        incoming.top = Some(self.meta(&stat, xattrs));
        self.tally.check()?;
        Ok(incoming)
    }

    /// Reads a tar archive, plain or compressed; errors call it `name`.
    pub fn read_archive(&self, source: &mut dyn Read, name: &str) -> Result<Incoming> {
        self.exclusions.check_without_gitignores()?;
        let incoming = archive::read_archive(self, source, name)?;
        self.tally.check()?;
        Ok(incoming)
    }

    /// Reads what the git repository at `dir` holds at `revision`; in a directory of a work tree, that directory of it.
    /// Times are those of the commit.
    pub fn read_revision(&self, dir: &Path, revision: &str) -> Result<Incoming> {
        self.exclusions.check_without_gitignores()?;
        let incoming = repository::read_revision(self, dir, revision)?;
        self.tally.check()?;
        Ok(incoming)
    }

    /// Puts what was read into the tree. Missing directories above are made; a directory that is there already is merged
    /// into, anything else replaced.
    pub fn put(&self, edit: &mut Edit, mut incoming: Incoming) -> Result<ImportReport> {
        incoming.found.sort_by(|a, b| a.path.cmp(&b.path));
        incoming.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        let top = incoming
            .top
            .unwrap_or_else(|| self.plain_meta(0o755, Time::now()));
        make_directories(edit, self.at, &top)?;
        let links = link_ids(edit, &incoming.found);
        let mut report = ImportReport {
            skipped: incoming.skipped,
            bytes: incoming.bytes,
            reused: self.cache.reused(),
            ..ImportReport::default()
        };
        for Found {
            path,
            mut entry,
            inode,
        } in incoming.found
        {
            if entry.is_dir() {
                report.directories += 1;
                put_directory(edit, &path, entry)?;
                continue;
            }
            report.files += 1;
            if let Some((link, first)) = inode.and_then(|inode| links.get(&inode)) {
                // It was read once per name. If it changed meanwhile, the first reading counts.
                entry = first.clone();
                set_link(&mut entry, *link);
            }
            edit.put(&path, entry)?;
        }
        Ok(report)
    }

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

    /// Metadata for what has no inode on the host.
    fn plain_meta(&self, mode: u32, time: Time) -> Meta {
        Meta {
            uid: self.owner.0,
            gid: self.owner.1,
            ..Meta::new(mode, time)
        }
    }
}

/// Checks that `at` can be imported to: it and its parents are directories, or missing.
pub fn check_place(trees: &Trees, root: RootId, at: &VaultPath) -> Result<()> {
    let mut here = VaultPath::root();
    for name in at.components() {
        here = here.join(name)?;
        match trees.entry(root, &here)? {
            None => return Ok(()),
            Some(entry) if entry.is_dir() => {}
            Some(_) => return Err(avfs_vault::Error::NotADirectory { path: here }.into()),
        }
    }
    Ok(())
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
fn make_directories(edit: &mut Edit, at: &VaultPath, meta: &Meta) -> Result<()> {
    let mut missing = Vec::new();
    let mut next = Some(at.clone());
    while let Some(path) = next {
        match edit.get(&path)? {
            Some(entry) if entry.is_dir() => break,
            Some(_) => return Err(avfs_vault::Error::NotADirectory { path }.into()),
            None => {}
        }
        next = path.parent();
        missing.push(path);
    }
    let mut above = Meta::new(0o755, Time::now());
    (above.uid, above.gid) = (meta.uid, meta.gid);
    for path in missing.into_iter().rev() {
        let mut entry = Entry::directory(0, Time::EPOCH);
        entry.meta = match path == *at {
            true => meta.clone(),
            false => above.clone(),
        };
        edit.put(&path, entry)?;
    }
    Ok(())
}

/// Merges into a directory that is there already.
fn put_directory(edit: &mut Edit, path: &VaultPath, entry: Entry) -> Result<()> {
    let merges = edit.get(path)?.is_some_and(|there| there.is_dir());
    if merges {
        edit.set_meta(path, entry.meta)?;
    } else {
        edit.put(path, entry)?;
    }
    Ok(())
}
