//! What differs between two roots.

use crate::{Entry, Result, RootId, Trees, VaultPath};

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: VaultPath,
    pub kind: ChangeKind,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Created,
    Deleted,
    /// Content, target or kind differs.
    Modified,
    /// Mode bits or owner differ, content does not.
    Mode,
    /// Extended attributes differ, mode and content do not.
    Xattrs,
    /// Only times or the link id differ.
    Times,
    /// Made by [`crate::pair_renames`] alone.
    Renamed {
        from: VaultPath,
    },
}

impl Trees {
    pub fn diff(&self, _before: RootId, _after: RootId) -> Result<Vec<Change>> {
        todo!()
    }
}
