//! Makes the next root from base and layer.
//!
//! Only the layer is walked. Its entries replace those of the base at the same path. A whiteout removes, an opaque
//! directory hides what is below, and a redirected directory brings along the directory that it was renamed from. An entry
//! that was copied up but not changed stays the base's entry.

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

/// The input of a commit.
pub struct CommitInput<'a> {
    pub trees: &'a Trees,
    pub base: RootId,
    /// The root of the previous commit: entries that differ only in their ctime stay as they are there.
    pub last_commit: RootId,
    /// Directories that the view has even if the base does not, such as mount points.
    pub skeleton: &'a BTreeSet<VaultPath>,
    pub own_work: OwnWork<'a>,
    /// The stored owner of new paths.
    pub owner: Owner,
    /// Whether a process may still be writing: then no hash is trusted by the next commit.
    pub writers: Writers,
    pub allowance: Allowance,
    /// Where a listing that is too long for memory is stored temporarily.
    pub spool: &'a Path,
    /// Called repeatedly during the commit: whether to cancel it.
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Which files of a layer are our own work and not content. Nothing else is skipped, whatever its name: commands choose
/// the names of all files they make.
#[derive(Debug, Clone, Copy)]
pub enum OwnWork<'a> {
    None,
    /// Names that begin with the layer's secret token: unfinished work of a served view.
    Names(&'a [u8]),
    /// A directory that no command can reach.
    Staging(Staging<'a>),
}

/// The directory in which the mover of a sandbox makes copies.
#[derive(Debug, Clone, Copy)]
pub struct Staging<'a> {
    /// A directory at the layer's top that is covered by a mount in the sandbox, so that commands cannot change it.
    pub hidden: &'a [u8],
    /// The staging directory's name in it.
    pub name: &'a [u8],
    /// An exchange of two names is recorded in a directory of the staging directory, by these links; with both present, it
    /// is decided.
    pub exchange_ends: [&'a [u8]; 2],
    /// The copies for these names, in the same order, if they are not in place yet.
    pub exchange_copies: [&'a [u8]; 2],
    pub used: StagingUse,
}

/// Whether the mover can still finish what it has in a staging directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StagingUse {
    /// It can: what commands see now is committed.
    InUse,
    /// It cannot: a decided exchange is committed as done.
    Abandoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    None,
    Some,
}

/// The next root, and what was found on the way.
#[derive(Debug)]
pub struct Committed {
    pub root: RootId,
    /// How many names the layer has: the work of the next commit.
    pub entries: usize,
    pub skipped: Vec<Skipped>,
}

/// Something in the layer that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub path: Vec<u8>,
    pub reason: &'static str,
}

/// Commits `upper` over `input.base`.
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

/// Applies the whole layer to the base. Entries from `doubtful` on may have no parent directory.
fn whole(
    input: &CommitInput<'_>,
    entries: &[UpperEntry],
    contents: &Contents,
    doubtful: usize,
) -> Result<Committed> {
    let edit = input.trees.edit(input.base)?;
    let links = link_groups(entries, input, &edit, |_| true)?;
    let mut applied = Applied::new(input, edit);
    for (index, entry) in entries.iter().enumerate() {
        if index % 1_024 == 0 && (input.stopped)() {
            return Err(Error::Stopped);
        }
        let shared = links.get(&index).cloned();
        applied.apply_or_skip(entry, contents.of[index], shared, index >= doubtful)?;
    }
    applied.finish(entries.len() - 1)
}

/// Applies what changed in the layer since the previous commit to its root. Gives the same root as a whole commit.
fn since(
    input: &CommitInput<'_>,
    entries: &[UpperEntry],
    contents: &Contents,
    changes: Changes<'_>,
) -> Result<Committed> {
    let base = input.trees.edit(input.base)?;
    let is_new = |index: usize| changes.of[index] == Change::New;
    let links = link_groups(entries, input, &base, is_new)?;
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
                applied.apply(entry, contents.of[index], links.get(&index).cloned())?;
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

/// Whether `path` is `top` or below it; both in the form of the listing.
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
