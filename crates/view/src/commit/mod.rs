//! Base and layer become the next root.
//!
//! Only the layer is walked. What it says replaces what the base has at the same path; a whiteout
//! removes, an opaque directory hides what was below, a redirected one brings along the directory that it
//! was renamed from. An entry that was touched but is the same stays the base's entry.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use avfs_vault::{Content, Edit, Entry, Kind, LinkId, Meta, RootId, Time, Trees, VaultPath};

use crate::scan::{UpperEntry, UpperKind};
use crate::scanner::Scanner;
use crate::{Error, Owner, Result};

/// Times closer to the scan than this do not tell whether the file changed after it was read.
const RACY: Duration = Duration::from_millis(20);
/// Below this many files, threads cost more than they save.
const PARALLEL_MIN: usize = 16;

/// What a commit stands on.
pub struct CommitInput<'a> {
    pub trees: &'a Trees,
    pub base: RootId,
    /// Paths that belong to the sandbox, not to the vault.
    pub mount_points: &'a BTreeSet<VaultPath>,
    /// Names that begin so belong to work of the sandbox's own that is not finished.
    pub unfinished_prefix: &'a [u8],
    /// The stored owner of paths that are new.
    pub owner: Owner,
    /// Whether a process might still be writing: then no hash is trusted the next time.
    pub writers: Writers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    None,
    Some,
}

/// The next root, and what was met on the way to it.
#[derive(Debug)]
pub struct Committed {
    pub root: RootId,
    /// Names in the layer: what the next commit will have to look at.
    pub entries: usize,
    pub skipped: Vec<Skipped>,
}

/// Something in the layer that a tree does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub path: Vec<u8>,
    pub reason: &'static str,
}

/// Contents known from earlier commits of the same layer.
#[derive(Default)]
pub struct HashCache {
    known: HashMap<Vec<u8>, Known>,
}

#[derive(Clone, PartialEq, Eq)]
struct Stamp {
    ino: u64,
    size: u64,
    mtime: (i64, u32),
    ctime: (i64, u32),
}

#[derive(Clone)]
struct Known {
    stamp: Stamp,
    content: Content,
}

/// The root that `upper` over `input.base` amounts to.
pub fn commit(
    input: &CommitInput<'_>,
    scanner: &Scanner,
    upper: BorrowedFd<'_>,
    cache: &mut HashCache,
) -> Result<Committed> {
    let started = Time::now();
    let entries = scanner.scan(upper)?;
    let contents = Contents::read(input, scanner, upper, &entries, cache)?;
    cache.remember(&entries, &contents, input.writers, started);
    let edit = input.trees.edit(input.base)?;
    let links = link_groups(&entries, &edit)?;
    let mut applied = Applied {
        input,
        edit,
        origins: HashMap::new(),
        skipped: Vec::new(),
    };
    for (index, entry) in entries.iter().enumerate() {
        applied.apply(entry, contents.of[index], links.get(&index).copied())?;
    }
    let Applied { edit, skipped, .. } = applied;
    Ok(Committed {
        root: edit.finish()?,
        entries: entries.len() - 1,
        skipped,
    })
}

impl HashCache {
    fn remember(
        &mut self,
        entries: &[UpperEntry],
        contents: &Contents,
        writers: Writers,
        started: Time,
    ) {
        self.known.clear();
        // A store to a mapped page that is already dirty moves no time: only silence is trusted.
        if writers == Writers::Some {
            return;
        }
        let settled = nanoseconds(started) - RACY.as_nanos() as i128;
        for (entry, content) in entries.iter().zip(&contents.of) {
            let (Some(stamp), Some((content, _))) = (stamp(entry), content) else {
                continue;
            };
            if nanoseconds(time(entry.ctime)) < settled {
                self.known.insert(
                    entry.path.clone(),
                    Known {
                        stamp,
                        content: *content,
                    },
                );
            }
        }
    }
}

fn nanoseconds(time: Time) -> i128 {
    i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos)
}

fn time((secs, nanos): (i64, u32)) -> Time {
    Time { secs, nanos }
}

fn stamp(entry: &UpperEntry) -> Option<Stamp> {
    match entry.kind {
        UpperKind::File { size, .. } => Some(Stamp {
            ino: entry.ino,
            size,
            mtime: entry.mtime,
            ctime: entry.ctime,
        }),
        _ => None,
    }
}

/// For each entry of the listing, the content and size of the file, if it is one and still there.
struct Contents {
    of: Vec<Option<(Content, u64)>>,
}

impl Contents {
    fn read(
        input: &CommitInput<'_>,
        scanner: &Scanner,
        upper: BorrowedFd<'_>,
        entries: &[UpperEntry],
        cache: &HashCache,
    ) -> Result<Contents> {
        let mut of = vec![None; entries.len()];
        let mut unknown = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let Some(stamp) = stamp(entry) else { continue };
            match cache.known.get(&entry.path) {
                Some(known) if known.stamp == stamp => {
                    of[index] = Some((known.content, stamp.size))
                }
                _ => unknown.push(index),
            }
        }
        let names: Vec<&[u8]> = unknown
            .iter()
            .map(|&index| entries[index].path.as_slice())
            .collect();
        let hashed = hash_all(input.trees, scanner, upper, &names)?;
        for (index, content) in unknown.into_iter().zip(hashed) {
            of[index] = content;
        }
        Ok(Contents { of })
    }
}

type Hashed = Option<(Content, u64)>;

/// Opens each name through the scanner and stores its content, on all cores when there are many.
fn hash_all(
    trees: &Trees,
    scanner: &Scanner,
    upper: BorrowedFd<'_>,
    names: &[&[u8]],
) -> Result<Vec<Hashed>> {
    let results: Mutex<Vec<Result<Hashed>>> = Mutex::new(names.iter().map(|_| Ok(None)).collect());
    let settle = |index: usize, opened: std::io::Result<OwnedFd>| {
        let outcome = hash_one(trees, opened);
        results.lock().expect("no holder of this lock panics")[index] = outcome;
    };
    if names.len() < PARALLEL_MIN {
        scanner.open(upper, names, settle)?;
    } else {
        let workers = std::thread::available_parallelism().map_or(2, |count| count.get().min(8));
        // Bounded, so that not every file of a large layer is open at once.
        let (sender, receiver) = mpsc::sync_channel(256);
        let receiver = Mutex::new(receiver);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let next = receiver.lock().expect("no holder panics").recv();
                        let Ok((index, opened)) = next else { return };
                        settle(index, opened);
                    }
                });
            }
            let fed = scanner.open(upper, names, |index, opened| {
                sender
                    .send((index, opened))
                    .expect("the workers outlive the feeding");
            });
            drop(sender);
            fed
        })?;
    }
    results
        .into_inner()
        .expect("no holder of this lock panics")
        .into_iter()
        .collect()
}

fn hash_one(trees: &Trees, opened: std::io::Result<OwnedFd>) -> Result<Hashed> {
    let failed = |source| Error::Scan {
        what: "reading a file".into(),
        source,
    };
    let mut file = match opened {
        Ok(descriptor) => File::from(descriptor),
        // Gone or replaced since it was listed, by a process that still runs.
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::ENOENT | libc::ELOOP | libc::ENOTDIR | libc::ENXIO)
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Ok(None);
    }
    Ok(Some(trees.write_content(&mut file)?))
}

/// What the names of one file share.
#[derive(Clone, Copy)]
struct Shared {
    link: LinkId,
    /// Of the names that the base has; names of different owners would not be one file.
    owner: Option<(u32, u32)>,
}

/// For each entry that is one of several names of a file: what they share.
fn link_groups(entries: &[UpperEntry], base: &Edit) -> Result<HashMap<usize, Shared>> {
    let mut by_inode: HashMap<u64, Vec<(VaultPath, usize)>> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        if !matches!(entry.kind, UpperKind::File { links, .. } if links > 1) {
            continue;
        }
        if let Some(path) = vault_path(&entry.path) {
            by_inode.entry(entry.ino).or_default().push((path, index));
        }
    }
    let mut links = HashMap::new();
    for mut names in by_inode.into_values().filter(|names| names.len() > 1) {
        names.sort();
        let first = &names[0].0;
        let link = match base.get(first)?.and_then(|entry| entry.link()) {
            // The same names as in the base are still the same file there.
            Some(link)
                if base
                    .linked_names(first)?
                    .iter()
                    .eq(names.iter().map(|(path, _)| path)) =>
            {
                link
            }
            _ => base.fresh_link(first),
        };
        let mut owner = None;
        for (name, _) in &names {
            let known = base
                .get(name)?
                .map(|entry| (entry.meta.uid, entry.meta.gid));
            owner = owner.or(known);
        }
        let shared = Shared { link, owner };
        links.extend(names.into_iter().map(|(_, index)| (index, shared)));
    }
    Ok(links)
}

fn vault_path(upper: &[u8]) -> Option<VaultPath> {
    let mut path = vec![b'/'];
    path.extend_from_slice(upper);
    VaultPath::parse(&path).ok()
}

struct Applied<'a> {
    input: &'a CommitInput<'a>,
    edit: Edit,
    /// For directories at or below a redirected one: where the base has them.
    origins: HashMap<VaultPath, VaultPath>,
    skipped: Vec<Skipped>,
}

impl Applied<'_> {
    fn apply(&mut self, upper: &UpperEntry, content: Hashed, shared: Option<Shared>) -> Result<()> {
        let Some(path) = vault_path(&upper.path) else {
            return self.skip(upper, "its path is too long");
        };
        if self
            .input
            .mount_points
            .iter()
            .any(|point| path.starts_with(point))
        {
            return Ok(());
        }
        let unfinished = self.input.unfinished_prefix;
        if path
            .components()
            .any(|name| !unfinished.is_empty() && name.starts_with(unfinished))
        {
            return Ok(());
        }
        let existing = self.edit.get(&path)?;
        let kind = match &upper.kind {
            UpperKind::Whiteout => {
                if existing.is_some() {
                    self.edit.remove(&path)?;
                }
                return Ok(());
            }
            UpperKind::Directory { opaque, redirect } => {
                return self.directory(upper, path, existing, *opaque, redirect.as_deref());
            }
            UpperKind::File { .. } => match content {
                Some((content, size)) => Kind::File {
                    content,
                    size,
                    link: shared.map(|shared| shared.link),
                },
                None => return Ok(()),
            },
            UpperKind::Symlink { target } => Kind::Symlink {
                target: target.clone(),
            },
            UpperKind::Fifo => Kind::Fifo,
            UpperKind::Socket => return self.skip(upper, "sockets are not kept"),
            UpperKind::Device => return self.skip(upper, "devices are not kept"),
        };
        let mut meta = self.meta(upper, existing.as_ref());
        if let Some(shared) = shared {
            let default = (self.input.owner.uid, self.input.owner.gid);
            (meta.uid, meta.gid) = shared.owner.unwrap_or(default);
        }
        let entry = same_or(existing.as_ref(), Entry { kind, meta });
        if existing.as_ref() != Some(&entry) {
            self.edit.put(&path, entry)?;
        }
        Ok(())
    }

    fn directory(
        &mut self,
        upper: &UpperEntry,
        path: VaultPath,
        existing: Option<Entry>,
        opaque: bool,
        redirect: Option<&[u8]>,
    ) -> Result<()> {
        let parent_origin = path.parent().map(|parent| self.origin(&parent));
        if let Some(redirect) = redirect {
            let origin = redirect_origin(parent_origin.as_ref(), redirect)?;
            let moved = self.input.trees.entry(self.input.base, &origin)?;
            let moved = moved
                .filter(Entry::is_dir)
                .ok_or_else(|| Error::LostRedirect {
                    origin: origin.to_string(),
                })?;
            let meta = self.meta(upper, Some(&moved));
            let entry = same_or(
                Some(&moved),
                Entry {
                    kind: moved.kind.clone(),
                    meta,
                },
            );
            self.origins.insert(path.clone(), origin);
            return Ok(self.edit.put(&path, entry)?);
        }
        if let (Some(name), Some(origin)) = (path.file_name(), parent_origin) {
            let own = origin.join(name)?;
            if own != path {
                self.origins.insert(path.clone(), own);
            }
        }
        match existing {
            Some(existing) if existing.is_dir() && !opaque => {
                let meta = self.meta(upper, Some(&existing));
                if !same_meta(&existing.meta, &meta) {
                    self.edit.set_meta(&path, meta)?;
                }
            }
            existing => {
                let meta = self.meta(upper, existing.as_ref());
                let empty = Entry::directory(meta.mode, meta.mtime);
                self.edit.put(
                    &path,
                    Entry {
                        kind: empty.kind,
                        meta,
                    },
                )?;
            }
        }
        Ok(())
    }

    fn origin(&self, path: &VaultPath) -> VaultPath {
        self.origins.get(path).unwrap_or(path).clone()
    }

    /// Views show every owner as the sandbox's user, so a commit never learns of an owner.
    fn meta(&self, upper: &UpperEntry, existing: Option<&Entry>) -> Meta {
        let (uid, gid) = match existing {
            Some(entry) => (entry.meta.uid, entry.meta.gid),
            None => (self.input.owner.uid, self.input.owner.gid),
        };
        Meta {
            mode: upper.mode,
            uid,
            gid,
            mtime: time(upper.mtime),
            ctime: time(upper.ctime),
            xattrs: upper.xattrs.clone(),
        }
    }

    fn skip(&mut self, upper: &UpperEntry, reason: &'static str) -> Result<()> {
        let mut path = vec![b'/'];
        path.extend_from_slice(&upper.path);
        self.skipped.push(Skipped { path, reason });
        Ok(())
    }
}

/// Where the base has the directory that now stands under another name: a redirect is either a path
/// from the top, or a name beside the parent's own origin.
fn redirect_origin(parent: Option<&VaultPath>, redirect: &[u8]) -> Result<VaultPath> {
    if redirect.starts_with(b"/") {
        return Ok(VaultPath::parse(redirect)?);
    }
    Ok(parent.unwrap_or(&VaultPath::root()).join(redirect)?)
}

/// The existing entry when the new one differs from it in nothing but the time of the copy-up.
fn same_or(existing: Option<&Entry>, new: Entry) -> Entry {
    match existing {
        Some(old) if old.kind == new.kind && same_meta(&old.meta, &new.meta) => old.clone(),
        _ => new,
    }
}

fn same_meta(old: &Meta, new: &Meta) -> bool {
    old.mode == new.mode && old.mtime == new.mtime && old.xattrs == new.xattrs
}

#[cfg(test)]
mod tests;
