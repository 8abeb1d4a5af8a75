//! Checkpoints: saving and restoring states of a vault.

use super::FreezeItem;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSave {
    /// Default: an unused generated name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
}

/// One checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointItem {
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    pub created_at: String,
    pub root: String,
    /// Its origin: asked for, automatic before a command, or before a restore.
    pub origin: String,
    pub by: String,
    pub file_count: u64,
    pub total_size: u64,
    pub total_size_human: String,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
    /// How running commands were stopped while it was made; only in the answer to that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub freeze: Option<FreezeItem>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointInfo {
    pub name: String,
}

/// A checkpoint, and what is related to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointDetailsItem {
    #[serde(flatten)]
    pub item: CheckpointItem,
    /// The newest version of the vault with this state.
    pub version: Option<u64>,
    /// The vaults that were forked at this state.
    pub forks: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointList {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointListing {
    pub snapshots: Vec<CheckpointItem>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointRestore {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Undoes the last restore.
    #[serde(default)]
    pub undo: bool,
    /// Ends running commands; otherwise they are a conflict.
    #[serde(default)]
    pub force: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointRestored {
    pub snapshot: String,
    pub version: u64,
    /// The checkpoint with the state before, to undo the restore.
    pub undo: String,
    /// How many paths differ from the state before.
    pub changes: usize,
    /// Those of them that are not directories.
    pub files_restored: usize,
    pub dirs_restored: usize,
    /// Why there may be more: the state before is damaged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointDelete {
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointDeleted {
    /// Always `delete`.
    pub action: String,
    pub name: String,
    /// The vaults that were forked at this state. They stay.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dependent_forks: Vec<String>,
}
