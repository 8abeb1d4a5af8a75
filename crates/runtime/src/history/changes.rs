//! What differs between two roots, as a report tells it: the first paths, and how many there are in all.

use avfs_transfer::Skipped;
use avfs_vault::{Change, ChangeKind, RootId, Trees, pair_renames};

use crate::Result;
use crate::bounds::ListRoom;

/// Paths that differ, times alone excepted.
#[derive(Debug, Clone, Default)]
pub struct ChangeList {
    /// In the order of the tree, as many as an answer has room for. If all are here, renames are paired.
    pub listed: Vec<Change>,
    /// How many paths differ; a rename counts with both its names.
    pub total: u64,
    room: ListRoom,
}

impl ChangeList {
    pub(crate) fn between(trees: &Trees, before: RootId, after: RootId) -> Result<ChangeList> {
        let mut list = ChangeList::default();
        trees.diff_each(before, after, &mut |change| {
            list.add(change);
            true
        })?;
        Ok(list.paired())
    }

    /// Takes the next one in; times alone are no change.
    pub(crate) fn add(&mut self, change: Change) {
        if change.kind == ChangeKind::Times {
            return;
        }
        self.total += 1;
        if self.room.take(change.path.as_bytes()) {
            self.listed.push(change);
        }
    }

    /// To be called when all have been added. A part of a list would be paired wrongly.
    pub(crate) fn paired(mut self) -> ChangeList {
        if !self.is_truncated() {
            self.listed = pair_renames(self.listed);
        }
        self
    }

    /// Whether there are more than are listed.
    pub fn is_truncated(&self) -> bool {
        self.room.is_exceeded()
    }
}

/// What a commit left out, as a report tells it.
pub(crate) fn left_out(skipped: Vec<avfs_view::Skipped>) -> Vec<Skipped> {
    let told = skipped.into_iter().map(|skipped| Skipped {
        path: skipped.path,
        reason: skipped.reason.to_owned(),
    });
    told.collect()
}
