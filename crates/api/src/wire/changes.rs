//! The changes of one exec.

use super::ChangeItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Lists all that an exec changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// The id of the exec.
    pub exec: String,
    /// Also lists what is ignored, and what is in the home directory.
    #[serde(default)]
    pub all: bool,
    /// Adds a unified diff of the listed changes.
    #[serde(default)]
    pub patch: bool,
    /// At most so many paths. Default: 10,000, which is the most.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<NonZeroUsize>,
    /// Where the list goes on: `next_cursor` of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<u64>,
}

/// The answer to [`Changes`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExecChangesReport {
    /// The id of the exec.
    pub exec: String,
    /// The name of the vault that it ran in.
    pub vault: String,
    /// The vault's version after it.
    pub version: u64,
    /// What differs, path by path, in the order of the tree. Renames are paired if the whole list is in one answer.
    pub changes: Vec<ChangeItem>,
    /// How many paths the whole list has; a rename counts with both its names.
    pub changes_total: u64,
    /// What differs by directory: what ignore rules name, and caches in the home directory.
    pub ignored_changes: IgnoredChanges,
    /// How many paths of the home directory differ, without caches.
    pub home_changes: u64,
    /// The listed changes as a unified diff, if requested. A page ends where it has 2 MiB.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub patch: Option<String>,
    /// Whether a patch is left out because it alone has more than 2 MiB.
    #[serde(skip_serializing_if = "super::exec::is_false", default)]
    pub patch_truncated: bool,
    /// The cursor of the next page; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<u64>,
}

/// Changes that are counted, by directory.
pub type IgnoredChanges = BTreeMap<String, IgnoredItem>;

/// How many paths of a directory differ.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredItem {
    /// Paths that were not there before.
    pub created: u64,
    /// Paths whose content, type, mode or attributes differ.
    pub modified: u64,
    /// Paths that are not there any more.
    pub deleted: u64,
    /// Bytes of the created and modified files, as they are now.
    pub bytes: u64,
}
