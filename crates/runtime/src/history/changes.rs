//! What differs between two states, as every report tells it: the first paths, and how many there are in all.
//!
//! Here alone times are left out, renames paired and patches written, so that all reports of one change agree.

use avfs_transfer::Skipped;
use avfs_vault::{Change, ChangeKind, Entry, Kind, RootId, Trees, VaultPath, pair_renames};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::bounds::{CHANGES_BYTES, CHANGES_LISTED, ListRoom};
use crate::history::ignored::{Ignored, Place, Sorter};
use crate::history::patch::{self, LineCounts};

/// Paths that differ, times alone excepted.
#[derive(Debug, Clone, Default)]
pub struct ChangeSet {
    /// In the order of the tree, as many as an answer has room for. If all are here, renames are paired.
    pub listed: Vec<Change>,
    /// How many paths differ; a rename counts with both its names.
    pub total: u64,
    room: ListRoom,
}

/// What is different, by where it is told.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub outside: ChangeSet,
    pub in_home: ChangeSet,
    pub ignored: Ignored,
}

impl Changes {
    /// All that differs between two roots, the later one of which has the ignore rules.
    pub fn between(trees: &Trees, before: RootId, after: RootId) -> Result<Changes> {
        let mut changes = Changes::default();
        let mut sorter = Sorter::new(trees, after);
        each_change(trees, before, after, &mut |change| {
            match sorter.place(&change) {
                Place::Listed => drop(changes.outside.add(change)),
                Place::InHome => drop(changes.in_home.add(change)),
                Place::Counted(directory) => changes.ignored.add(&directory, &change),
            };
        })?;
        changes.outside = changes.outside.paired();
        Ok(changes)
    }

    /// Keeps what a report lists: as many paths as its caller asks for, else what is short enough to be read.
    pub fn cut_to(mut self, limit: Option<usize>) -> Changes {
        self.outside = self.outside.cut_to(limit);
        self.in_home = self.in_home.cut_to(limit);
        self
    }
}

/// Changes as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    pub text: String,
    /// Whether it ends before the last change.
    pub truncated: bool,
}

impl ChangeSet {
    /// All that differs between two roots.
    pub(crate) fn between(trees: &Trees, before: RootId, after: RootId) -> Result<ChangeSet> {
        let mut set = ChangeSet::default();
        each_change(trees, before, after, &mut |change| {
            set.add(change);
        })?;
        Ok(set.paired())
    }

    /// A set as it was written down.
    pub(crate) fn read(listed: Vec<Change>, total: u64, truncated: bool) -> ChangeSet {
        ChangeSet {
            listed,
            total,
            room: ListRoom::left(truncated),
        }
    }

    /// Takes the next one in; times alone are no change. Says whether there is room for more.
    pub(crate) fn add(&mut self, change: Change) -> bool {
        if change.kind == ChangeKind::Times {
            return true;
        }
        self.total += 1;
        let fits = self.room.take(change.path.as_bytes());
        if fits {
            self.listed.push(change);
        }
        fits
    }

    /// Pairs what went and came with the same content. To be called when all have been added: a part of a list would be
    /// paired wrongly, and is left as it is.
    pub(crate) fn paired(mut self) -> ChangeSet {
        if !self.is_truncated() {
            self.listed = pair_renames(self.listed);
        }
        self
    }

    /// Pairs also what went and came with similar lines, which takes reading them: for people who compare.
    pub(crate) fn paired_by_lines(self, trees: &Trees) -> Result<ChangeSet> {
        let mut set = self.paired();
        if !set.is_truncated() {
            set.listed = trees.pair_similar(set.listed)?;
        }
        Ok(set)
    }

    /// Keeps the first ones.
    pub(crate) fn cut_to(mut self, limit: Option<usize>) -> ChangeSet {
        let (paths_max, bytes_max) = match limit {
            Some(limit) => (limit, usize::MAX),
            None => (CHANGES_LISTED, CHANGES_BYTES),
        };
        let (mut paths, mut bytes) = (0, 0_usize);
        let fitting = self.listed.iter().take_while(|change| {
            let renamed = matches!(change.kind, ChangeKind::Renamed { .. });
            paths += 1 + usize::from(renamed);
            bytes = bytes.saturating_add(told_bytes(change));
            paths <= paths_max && bytes <= bytes_max
        });
        let fitting = fitting.count();
        if fitting < self.listed.len() {
            self.listed.truncate(fitting);
            self.listed.shrink_to_fit();
            self.room = ListRoom::left(true);
        }
        self
    }

    /// Whether there are more than are listed.
    pub fn is_truncated(&self) -> bool {
        self.room.is_exceeded()
    }

    pub(crate) fn patch(&self, trees: &Trees) -> Result<Patch> {
        self.patch_from(trees, |_| None)
    }

    /// The changes as text, with another name before where `old_path` knows one.
    pub(crate) fn patch_from(
        &self,
        trees: &Trees,
        old_path: impl Fn(&Change) -> Option<VaultPath>,
    ) -> Result<Patch> {
        let with_old = self.listed.iter().map(|change| {
            let other = match change.kind {
                ChangeKind::Renamed { .. } => None,
                _ => old_path(change),
            };
            (change, other.unwrap_or_else(|| patch::old_path(change)))
        });
        let (text, done) = patch::patches(trees, with_old)?;
        let truncated = done < self.listed.len() || self.is_truncated();
        Ok(Patch { text, truncated })
    }

    /// How many lines came and went, for each listed change.
    pub(crate) fn line_counts(&self, trees: &Trees) -> Result<Vec<LineCounts>> {
        let counts = self.listed.iter();
        counts
            .map(|change| patch::line_counts(trees, change))
            .collect()
    }
}

/// About how many bytes a report in JSON has for a change: its names in two lists, and what it was and is.
fn told_bytes(change: &Change) -> usize {
    const FIELDS: usize = 80;
    const STATE: usize = 70;
    const HASH: usize = 75;
    // A byte that is no plain character may take six.
    let text = |bytes: &[u8]| -> usize {
        let plain = |byte: &&u8| matches!(byte, b' '..=b'~');
        let plain = bytes.iter().filter(plain).count();
        plain + 6 * (bytes.len() - plain)
    };
    let state = |entry: &Entry| match &entry.kind {
        Kind::File { .. } => STATE + HASH,
        Kind::Symlink { target } => STATE + text(target),
        Kind::Directory { .. } | Kind::Fifo => STATE,
    };
    let states = change.before.iter().chain(&change.after).map(state);
    let from = match &change.kind {
        ChangeKind::Renamed { from } => text(from.as_bytes()),
        _ => 0,
    };
    FIELDS + 2 * (text(change.path.as_bytes()) + from) + states.sum::<usize>()
}

/// Hands over every path that differs between two roots; times alone are no change. However many there are, none is held.
pub(crate) fn each_change(
    trees: &Trees,
    before: RootId,
    after: RootId,
    each: &mut dyn FnMut(Change),
) -> Result<(), avfs_vault::Error> {
    trees.diff_each(before, after, &mut |change| {
        if change.kind != ChangeKind::Times {
            each(change);
        }
        true
    })
}

/// What a commit left out, as a report tells it.
pub(crate) fn left_out(skipped: Vec<avfs_view::Skipped>) -> Vec<Skipped> {
    let told = skipped.into_iter().map(|skipped| Skipped {
        path: skipped.path,
        reason: skipped.reason.to_owned(),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::LISTED_MAX;
    use avfs_vault::{Content, Meta, Time};

    fn file(size: u64) -> Entry {
        let content = Content::EMPTY;
        let kind = Kind::File {
            content,
            size,
            link: None,
        };
        let meta = Meta::new(0o644, Time { secs: 1, nanos: 0 });
        Entry { kind, meta }
    }

    fn change(path: &str, kind: ChangeKind) -> Change {
        let (before, after) = match kind {
            ChangeKind::Created => (None, Some(file(1))),
            ChangeKind::Deleted => (Some(file(1)), None),
            _ => (Some(file(1)), Some(file(1))),
        };
        let path = VaultPath::parse(path.as_bytes()).unwrap();
        Change {
            path,
            kind,
            before,
            after,
        }
    }

    #[test]
    fn times_alone_are_no_change_and_take_no_room() {
        let mut set = ChangeSet::default();
        for _ in 0..LISTED_MAX + 1 {
            assert!(set.add(change("/a", ChangeKind::Times)));
        }
        assert!(set.add(change("/b", ChangeKind::Mode)));
        assert_eq!(
            (set.total, set.listed.len(), set.is_truncated()),
            (1, 1, false)
        );
    }

    #[test]
    fn a_report_lists_the_first_paths_and_says_that_there_are_more() {
        let mut set = ChangeSet::default();
        for number in 0..5 {
            set.add(change(&format!("/{number}"), ChangeKind::Mode));
        }
        let whole = set.clone().cut_to(Some(5));
        assert_eq!((whole.listed.len(), whole.is_truncated()), (5, false));
        let cut = set.clone().cut_to(Some(4));
        assert_eq!((cut.listed.len(), cut.is_truncated()), (4, true));
        assert_eq!(cut.total, 5);
        assert!(set.clone().cut_to(Some(0)).listed.is_empty());
        let long = format!("/{}", "\u{1}".repeat(200));
        for _ in 0..CHANGES_LISTED {
            set.add(change(&long, ChangeKind::Mode));
        }
        let cut = set.cut_to(None);
        let bytes: usize = cut.listed.iter().map(told_bytes).sum();
        assert!(cut.is_truncated() && cut.listed.len() > 5 && bytes <= CHANGES_BYTES);
    }

    #[test]
    fn renames_are_paired_when_all_are_known_and_only_then() {
        let mut set = ChangeSet::default();
        set.add(change("/new", ChangeKind::Created));
        set.add(change("/old", ChangeKind::Deleted));
        let paired = set.clone().paired();
        let from = VaultPath::parse(b"/old").unwrap();
        assert_eq!(paired.listed[0].kind, ChangeKind::Renamed { from });
        assert_eq!((paired.listed.len(), paired.total), (1, 2));
        for number in 0..LISTED_MAX {
            set.add(change(&format!("/z{number}"), ChangeKind::Mode));
        }
        let cut = set.paired();
        assert!(cut.is_truncated() && cut.listed.len() == LISTED_MAX);
        assert_eq!(cut.listed[0].kind, ChangeKind::Created);
        assert_eq!(cut.total, LISTED_MAX as u64 + 2);
    }
}
