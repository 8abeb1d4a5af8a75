//! Views of vaults on the host, and taking in what was written in them.

use super::{Base64, ChangeItem, HostPath, SkippedItem};
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
    /// How many paths differ; a rename counts with both its names.
    #[serde(default)]
    pub changes_total: u64,
    /// Whether there are more than are listed: one answer has 10,000 of them. `avfs diff` has the rest.
    #[serde(default)]
    pub changes_truncated: bool,
    /// What no vault can hold.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub skipped: Vec<SkippedItem>,
}

/// Shows the vault at a directory of the host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// An absolute path; a directory in the home when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir: Option<HostPath>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
    #[serde(default)]
    pub readonly: bool,
    /// An older state: `vN` or a checkpoint's name. It can only be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<String>,
    /// The best there is when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub driver: Option<MountDriverWord>,
    /// Seconds after which what was written becomes a version by itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub autocommit_s: Option<u64>,
    /// Where the caller's mounts are: what /proc/self/ns/mnt points to.
    pub mount_namespace: String,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountDriverWord {
    Overlay,
    Fuse,
}

/// One mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MountItem {
    pub vault: String,
    pub dir: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
    pub driver: MountDriverWord,
    pub readonly: bool,
    /// The version that is shown, or was last made.
    pub version: u64,
    pub autocommit_s: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mounts {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MountListing {
    pub mounts: Vec<MountItem>,
}

/// Takes mounts away: the one at `dir`, those of `vault`, or all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unmount {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir: Option<HostPath>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vault: Option<String>,
    #[serde(default)]
    pub all: bool,
    /// Also when programs use it, and when a quota keeps out what was written.
    #[serde(default)]
    pub force: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnmountListing {
    pub unmounted: Vec<UnmountedItem>,
}

/// A mount that is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnmountedItem {
    pub vault: String,
    pub dir: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
    /// The version made of what was written last; none when nothing was.
    pub version: Option<u64>,
    /// The checkpoint that holds what the quota kept out of the vault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uncommitted: Option<String>,
}
