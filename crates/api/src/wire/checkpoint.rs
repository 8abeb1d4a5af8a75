//! Checkpoints: saving and restoring states of a vault.

use super::FreezeItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Saves the state of a vault under a name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSave {
    /// Default: an unused generated name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// What is to be said about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
}

/// One checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointItem {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// When it was made, as RFC 3339.
    pub created_at: String,
    /// The root of that state.
    pub root: String,
    /// Its origin: asked for, automatic before a command, or before a restore.
    pub origin: String,
    /// Who did it: `owner`, `agent`, `agent:NAME` or `system`.
    pub by: String,
    /// How many files it has.
    pub file_count: u64,
    /// Bytes of all files in it.
    pub total_size: u64,
    /// `total_size`, for people.
    pub total_size_human: String,
    /// Bytes of files in it that the vault has no more, or has otherwise; null if it is not known, and for all but the
    /// newest 100 of a list.
    #[serde(default)]
    pub used_bytes: Option<u64>,
    /// Bytes of all files in it, shared ones included.
    #[serde(default)]
    pub referenced_bytes: u64,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
    /// How running commands were stopped while it was made; only in the answer to that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub freeze: Option<FreezeItem>,
}

/// Describes a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointInfo {
    /// Its name.
    pub name: String,
}

/// A checkpoint, and what is related to it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointDetailsItem {
    /// What a list says of it.
    #[serde(flatten)]
    pub item: CheckpointItem,
    /// The newest version of the vault with this state.
    pub version: Option<u64>,
    /// The vaults that were forked at this state.
    pub forks: Vec<String>,
}

/// Lists the checkpoints of a vault.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointList {
    /// Leaves out what takes time to count: `used_bytes`.
    #[serde(default)]
    pub brief: bool,
    /// How many at most. Default: all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<NonZeroUsize>,
    /// Only what follows: `next_cursor` of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<String>,
}

/// The answer to [`CheckpointList`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointListing {
    /// The newest first.
    pub snapshots: Vec<CheckpointItem>,
    /// Where the next page begins; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
}

/// Restores a checkpoint, or undoes the last restore.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointRestore {
    /// The checkpoint; none with `undo`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Undoes the last restore.
    #[serde(default)]
    pub undo: bool,
    /// Ends running commands; otherwise they are a conflict.
    #[serde(default)]
    pub force: bool,
}

/// The answer to [`CheckpointRestore`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointRestored {
    /// The checkpoint.
    pub snapshot: String,
    /// The version that this made.
    pub version: u64,
    /// The checkpoint with the state before, to undo the restore.
    pub undo: String,
    /// How many paths differ from the state before.
    pub changes: usize,
    /// Those of them that are not directories.
    pub files_restored: usize,
    /// Those of them that are directories.
    pub dirs_restored: usize,
    /// Why there may be more: the state before is damaged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
}

/// Deletes a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointDelete {
    /// Its name.
    pub name: String,
    /// Also if vaults were forked from it.
    #[serde(default)]
    pub force: bool,
}

/// The answer to [`CheckpointDelete`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointDeleted {
    /// Always `delete`.
    pub action: String,
    /// Its name.
    pub name: String,
    /// The vaults that were forked at this state. They stay.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dependent_forks: Vec<String>,
}
