//! Views of vaults on the host, and taking in what was written in them.

use super::{ChangeItem, SkippedItem};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {}

/// What a commit took in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommitItem {
    pub vault: String,
    /// The new version; none when nothing had changed.
    pub version: Option<u64>,
    pub changed_files: Vec<ChangeItem>,
    /// What no vault can hold.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub skipped: Vec<SkippedItem>,
}
