//! Checkpoints: naming a state of a vault and going back to it.

use super::FreezeItem;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSave {
    /// Without one, an unused name is made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
}

/// One checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointItem {
    pub name: String,
    /// What was said about it.
    pub description: Option<String>,
    pub created_at: String,
    pub root: String,
    /// Why it exists: asked for, made before a command, or made before a restore.
    pub origin: String,
    pub by: String,
    pub file_count: u64,
    pub total_size: u64,
    pub total_size_human: String,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
    /// How commands that ran in the vault were held still when it was made; only told then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub freeze: Option<FreezeItem>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointInfo {
    pub name: String,
}

/// A checkpoint, and what hangs together with it.
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
    /// Goes back to what the last restore replaced.
    #[serde(default)]
    pub undo: bool,
    /// Ends commands that are in the way; otherwise they are a conflict.
    #[serde(default)]
    pub force: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointRestored {
    pub snapshot: String,
    pub version: u64,
    /// The checkpoint that holds the state before, to undo the restore.
    pub undo: String,
    /// How many paths differ from the state before.
    pub changes: usize,
    /// Those of them that are no directories.
    pub files_restored: usize,
    pub dirs_restored: usize,
    /// Why there may be more of them: what was there before is damaged.
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
