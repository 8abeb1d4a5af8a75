//! What the previous commit saw in the same layer, so that the next one handles only what has changed since.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use avfs_vault::{Content, RootId, Time};

use super::apply::has_unkept;
use super::contents::Contents;
use super::{CommitInput, Committed, Skipped, Writers, nanoseconds, time};
use crate::scan::{UpperEntry, UpperKind};

/// A time closer to the scan than this does not prove that the file did not change after it was read.
pub(super) const RACY: Duration = Duration::from_millis(20);

/// What earlier commits of the same layer found.
#[derive(Default)]
pub struct HashCache {
    last: Option<Last>,
}

/// The previous commit.
struct Last {
    base: RootId,
    root: RootId,
    entries: Vec<UpperEntry>,
    /// For each file entry, its content, if a change would have been noticed.
    trusted: Vec<Option<Content>>,
    skipped: Vec<Skipped>,
}

impl HashCache {
    /// The previous commit, matched with the current listing.
    pub(super) fn known(&self, entries: &[UpperEntry]) -> Known<'_> {
        let before = self.last.as_ref().map_or(&[][..], |last| &last.entries);
        let (mut at, mut is_gone) = (Vec::with_capacity(entries.len()), vec![true; before.len()]);
        // Unchanged directories are listed in the same order, so most entries match without a lookup.
        let mut next = 0;
        let by_path = OnceCell::new();
        for entry in entries {
            let found = match before.get(next) {
                Some(before) if before.path == entry.path => Some(next),
                _ => by_path
                    .get_or_init(|| indexed(before))
                    .get(&*entry.path)
                    .copied(),
            };
            if let Some(index) = found {
                is_gone[index] = false;
                next = index + 1;
            }
            at.push(found);
        }
        let gone = before.iter().zip(is_gone).filter(|(_, is_gone)| *is_gone);
        Known {
            last: self.last.as_ref(),
            gone: gone.map(|(entry, _)| &*entry.path).collect(),
            at,
        }
    }

    /// How many files are not read again.
    #[cfg(test)]
    pub(super) fn trusted(&self) -> usize {
        let trusted = self.last.iter().flat_map(|last| &last.trusted);
        trusted.flatten().count()
    }

    pub(super) fn remember(
        &mut self,
        input: &CommitInput<'_>,
        entries: Vec<UpperEntry>,
        contents: &Contents,
        committed: &Committed,
        started: Time,
    ) {
        // A store to a mapped page that is already dirty changes no timestamp: a file is trusted only if no process ran.
        if input.writers == Writers::Some {
            self.last = None;
            return;
        }
        let settled = nanoseconds(started) - RACY.as_nanos() as i128;
        let trust = |entry: &UpperEntry| nanoseconds(time(entry.ctime)) < settled;
        let contents = entries.iter().zip(&contents.of);
        let trusted = contents.map(|(entry, content)| {
            let content = content.filter(|_| trust(entry));
            content.map(|(content, _)| content)
        });
        self.last = Some(Last {
            base: input.base,
            root: committed.root,
            trusted: trusted.collect(),
            skipped: committed.skipped.clone(),
            entries,
        });
    }
}

fn indexed(entries: &[UpperEntry]) -> HashMap<&[u8], usize> {
    let paths = entries.iter().map(|entry| &*entry.path);
    paths.zip(0..).collect()
}

/// The previous commit, matched with a listing.
pub(super) struct Known<'a> {
    last: Option<&'a Last>,
    /// For each entry of the listing, its index in the previous one.
    at: Vec<Option<usize>>,
    /// Entries that no longer exist.
    gone: Vec<&'a [u8]>,
}

/// How an entry has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// A directory with other metadata only.
    Meta,
    /// It, or a directory above it, was replaced.
    New,
}

impl<'a> Known<'a> {
    /// The content of the file at this index, if it is certainly the same as before.
    pub fn content(&self, index: usize, entry: &UpperEntry) -> Option<Content> {
        let (last, before) = (self.last?, self.at[index]?);
        let is_same = last.entries[before] == *entry;
        last.trusted[before].filter(|_| is_same)
    }

    /// What has changed since; `None` if starting from the base is no more work.
    pub fn changes<'b>(&self, base: RootId, entries: &'b [UpperEntry]) -> Option<Changes<'b>>
    where
        'a: 'b,
    {
        let last = self.last.filter(|last| last.base == base)?;
        // The content of a renamed directory depends on its origin; and skipped files are reported by each commit.
        let is_special = |entry: &UpperEntry| is_redirected(entry) || has_unkept(entry);
        if entries.iter().chain(&last.entries).any(is_special) {
            return None;
        }
        let listed = entries.iter().enumerate();
        let mut of: Vec<Change> = listed.map(|(at, entry)| self.change(at, entry)).collect();
        let new = entries.iter().zip(&of);
        let new = new.filter(|(_, change)| **change == Change::New);
        let new = new.map(|(entry, _)| &*entry.path);
        let tops: HashSet<&[u8]> = new.chain(self.gone.iter().copied()).collect();
        if tops.contains(&b""[..]) || tops.len() > entries.len() / 2 {
            return None;
        }
        if !tops.is_empty() {
            for (entry, change) in entries.iter().zip(&mut of) {
                if above(&entry.path).any(|path| tops.contains(path)) {
                    *change = Change::New;
                }
            }
        }
        let opaque = entries.iter().filter(|entry| is_opaque(entry));
        Some(Changes {
            root: last.root,
            of,
            opaque: opaque.map(|entry| &*entry.path).collect(),
            skipped: &last.skipped,
            tops,
        })
    }

    fn change(&self, at: usize, entry: &UpperEntry) -> Change {
        let Some((last, index)) = self.last.zip(self.at[at]) else {
            return Change::New;
        };
        let before = &last.entries[index];
        let is_file = matches!(entry.kind, UpperKind::File { .. });
        let is_directory = matches!(entry.kind, UpperKind::Directory { .. });
        if before == entry && (!is_file || last.trusted[index].is_some()) {
            Change::None
        } else if is_directory
            && before.kind == entry.kind
            && before.ino == entry.ino
            && before.xattrs_lost == entry.xattrs_lost
        {
            Change::Meta
        } else {
            Change::New
        }
    }
}

/// The changes in a layer since the previous commit.
pub(super) struct Changes<'a> {
    /// The root of the previous commit.
    pub root: RootId,
    /// For each entry of the listing.
    pub of: Vec<Change>,
    /// Paths that are new, different, or removed.
    tops: HashSet<&'a [u8]>,
    opaque: HashSet<&'a [u8]>,
    skipped: &'a [Skipped],
}

impl<'a> Changes<'a> {
    /// The paths to be rebuilt, none of them below another.
    pub fn tops(&self) -> impl Iterator<Item = &'a [u8]> {
        let tops = self.tops.iter().copied();
        tops.filter(|path| !above(path).any(|above| self.tops.contains(above)))
    }

    /// Whether an opaque directory is above the path.
    pub fn is_hidden(&self, path: &[u8]) -> bool {
        !self.opaque.is_empty() && above(path).any(|above| self.opaque.contains(above))
    }

    /// What was skipped before and is not handled again.
    pub fn still_skipped(&self) -> Vec<Skipped> {
        let is_new = |skipped: &&Skipped| {
            let path = &skipped.path[1..];
            self.tops.contains(path) || above(path).any(|above| self.tops.contains(above))
        };
        let skipped = self.skipped.iter();
        skipped.filter(|it| !is_new(it)).cloned().collect()
    }
}

/// The directories above a path, except for the top.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &path[..at])
}

fn is_redirected(entry: &UpperEntry) -> bool {
    matches!(&entry.kind, UpperKind::Directory { redirect, .. } if redirect.is_some())
}

fn is_opaque(entry: &UpperEntry) -> bool {
    matches!(entry.kind, UpperKind::Directory { opaque: true, .. })
}
