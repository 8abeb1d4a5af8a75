//! What differs between two states, as every report tells it: the first paths, and how many there are in all.
//!
//! Here alone times are left out, renames paired and patches written, so that all reports of one change agree.

use avfs_transfer::Skipped;
use avfs_vault::{Change, ChangeKind, RootId, Trees, VaultPath, pair_renames};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::bounds::ListRoom;
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
        let (text, truncated) = patch::patches(trees, with_old)?;
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
    use avfs_vault::{Content, Entry, Kind, Meta, Time};

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
