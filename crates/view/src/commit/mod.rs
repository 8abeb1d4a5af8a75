//! Base and layer become the next root.
//!
//! Only the layer is walked. What it says replaces what the base has at the same path; a whiteout
//! removes, an opaque directory hides what was below, a redirected one brings along the directory that it
//! was renamed from. An entry that was touched but is the same stays the base's entry.

mod apply;
mod cache;
mod contents;
mod large;
mod listing;
mod own_work;
mod work;

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::path::Path;

use avfs_vault::{RootId, Time, Trees, VaultPath};

use self::apply::{Applied, link_groups};
pub use self::cache::HashCache;
use self::cache::{Change, Changes};
use self::contents::{Contents, Reading};
use self::listing::{Bounds, Listing};
use self::work::Work;
pub use self::work::{Allowance, TooMuch};
use crate::scan::UpperEntry;
use crate::scanner::Scanner;
use crate::{Error, Owner, Result};

/// What a commit stands on.
pub struct CommitInput<'a> {
    pub trees: &'a Trees,
    pub base: RootId,
    /// What the layer amounted to before: what is the same but for the time of its change stays the same.
    pub last_commit: RootId,
    /// Directories that the view has whether or not the base does, such as mount points.
    pub skeleton: &'a BTreeSet<VaultPath>,
    pub own_work: OwnWork<'a>,
    /// The stored owner of paths that are new.
    pub owner: Owner,
    /// Whether a process might still be writing: then no hash is trusted the next time.
    pub writers: Writers,
    pub allowance: Allowance,
    /// Where a listing is kept for a while that is too long for memory.
    pub spool: &'a Path,
    /// Asked again and again while the commit works: whether it is to end without a result.
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

/// What in a layer is our own work and no content. Nothing else is left out, whatever it is called: commands choose
/// the names of all they make.
#[derive(Debug, Clone, Copy)]
pub enum OwnWork<'a> {
    None,
    /// Names that begin with the layer's token, which is known to nobody else: what a served view has not finished.
    Names(&'a [u8]),
    /// A directory that no command can reach.
    Staging(Staging<'a>),
}

/// The directory in which a sandbox copies what it renames.
#[derive(Debug, Clone, Copy)]
pub struct Staging<'a> {
    /// A directory of the layer's top on which something else is mounted in the sandbox, and which commands can
    /// therefore not change.
    pub hidden: &'a [u8],
    /// The staging directory's name in it.
    pub name: &'a [u8],
    /// Two names that are being exchanged are noted in a directory of the staging directory, by these links; with
    /// both there, it is decided.
    pub exchange_ends: [&'a [u8]; 2],
    /// What the names will mean, in the same order, as far as they do not yet.
    pub exchange_copies: [&'a [u8]; 2],
    pub used: StagingUse,
}

/// Whether whoever works in a staging directory can still finish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StagingUse {
    /// What is stored is what commands see now.
    InUse,
    /// An exchange that was decided has happened.
    Abandoned,
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

/// The root that `upper` over `input.base` amounts to.
pub fn commit(
    input: &CommitInput<'_>,
    scanner: &Scanner,
    upper: BorrowedFd<'_>,
    cache: &mut HashCache,
) -> Result<Committed> {
    commit_within(input, scanner, upper, cache, &Bounds::USUAL)
}

fn commit_within(
    input: &CommitInput<'_>,
    scanner: &Scanner,
    upper: BorrowedFd<'_>,
    cache: &mut HashCache,
    bounds: &Bounds,
) -> Result<Committed> {
    let started = Time::now();
    let work = Work::new(input.stopped, input.allowance);
    let listing = Listing::of(input, (scanner, upper), &work, bounds)?;
    let reading = Reading {
        trees: input.trees,
        scanner,
        upper,
        work: &work,
    };
    let mut entries = match listing {
        Listing::InMemory(entries) => entries,
        Listing::InFile(listing) => {
            *cache = HashCache::default();
            return large::large(input, &reading, &listing, bounds);
        }
    };
    let exchanges = own_work::separate(&mut entries, &input.own_work);
    let known = cache.known(&entries);
    let contents = Contents::read(&reading, &entries, &known)?;
    if !exchanges.is_empty() {
        *cache = HashCache::default();
        let listed = own_work::settle(entries, contents, &exchanges);
        return whole(input, &listed.entries, &listed.contents, listed.staying);
    }
    let committed = match known.changes(input.base, &entries) {
        Some(changes) => since(input, &entries, &contents, changes)?,
        None => whole(input, &entries, &contents, entries.len())?,
    };
    cache.remember(input, entries, &contents, &committed, started);
    Ok(committed)
}

/// Everything in the layer, put on the base. What is listed from `doubtful` on may have no place there.
fn whole(
    input: &CommitInput<'_>,
    entries: &[UpperEntry],
    contents: &Contents,
    doubtful: usize,
) -> Result<Committed> {
    let edit = input.trees.edit(input.base)?;
    let links = link_groups(entries, &edit, |_| true)?;
    let mut applied = Applied::new(input, edit);
    for (index, entry) in entries.iter().enumerate() {
        if index % 1_024 == 0 && (input.stopped)() {
            return Err(Error::Stopped);
        }
        let shared = links.get(&index).copied();
        applied.apply_or_skip(entry, contents.of[index], shared, index >= doubtful)?;
    }
    applied.finish(entries.len() - 1)
}

/// The commit before, and what has changed in the layer since: the same root as that of the whole, for less.
fn since(
    input: &CommitInput<'_>,
    entries: &[UpperEntry],
    contents: &Contents,
    changes: Changes<'_>,
) -> Result<Committed> {
    let base = input.trees.edit(input.base)?;
    let links = link_groups(entries, &base, |index| changes.of[index] == Change::New)?;
    let mut applied = Applied::new(input, input.trees.edit(changes.root)?);
    applied.skipped = changes.still_skipped();
    for top in changes.tops() {
        applied.reset(top, changes.is_hidden(top))?;
    }
    for (index, entry) in entries.iter().enumerate() {
        match changes.of[index] {
            Change::None => {}
            Change::Meta => applied.touch(entry, changes.is_hidden(&entry.path))?,
            Change::New => {
                applied.apply(entry, contents.of[index], links.get(&index).copied())?;
            }
        }
    }
    applied.finish(entries.len() - 1)
}

fn nanoseconds(time: Time) -> i128 {
    i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos)
}

fn time((secs, nanos): (i64, u32)) -> Time {
    Time { secs, nanos }
}

fn vault_path(upper: &[u8]) -> Option<VaultPath> {
    let mut path = vec![b'/'];
    path.extend_from_slice(upper);
    VaultPath::parse(&path).ok()
}

/// Whether `path` is `top` or beneath it; both as the listing has them.
fn is_within(path: &[u8], top: &[u8]) -> bool {
    let rest = path.strip_prefix(top);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || top.is_empty())
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod warm_tests;
