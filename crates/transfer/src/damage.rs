//! Reading a directory of a tree of which some objects may be damaged.

use avfs_vault::{Readable, TreeId, Trees};

use crate::error::Result;

/// What becomes of an export when something is damaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// It fails, and nothing is made.
    #[default]
    Stop,
    /// It goes on with the rest, and says what is missing.
    KeepGoing,
}

/// What a directory holds; all of it, unless damage is no reason to stop.
pub(crate) fn readable(trees: &Trees, tree: TreeId, on_damage: OnDamage) -> Result<Readable> {
    Ok(match on_damage {
        OnDamage::Stop => Readable {
            entries: trees.list(tree)?,
            problems: Vec::new(),
        },
        OnDamage::KeepGoing => trees.list_readable(tree)?,
    })
}
