//! Mounts on the host, and commits of what was written.

use super::{Base64, ChangeItem, HostPath, SkippedItem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes a version of what mounts and running commands have written.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commit {}

/// The result of a commit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommitItem {
    /// The name of the vault.
    pub vault: String,
    /// The new version; null if nothing had changed.
    pub version: Option<u64>,
    /// What differs, path by path.
    pub changed_files: Vec<ChangeItem>,
    /// How many paths differ; a rename counts with both its names.
    #[serde(default)]
    pub changes_total: u64,
    /// Whether the list is cut at 10,000. `avfs diff` has the rest.
    #[serde(default)]
    pub changes_truncated: bool,
    /// What cannot be stored.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub skipped: Vec<SkippedItem>,
}

/// Mounts the vault at a directory of the host.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// An absolute path. Default: a directory in the home.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir: Option<HostPath>,
    /// The exact bytes of `dir`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
    /// Whether programs can only read there.
    #[serde(default)]
    pub readonly: bool,
    /// An older state, read-only: `vN` or a checkpoint's name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<String>,
    /// Default: the best available.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub driver: Option<MountDriverWord>,
    /// Seconds between automatic commits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub autocommit_s: Option<u64>,
    /// Whether other users of the host can use it, as file modes allow. `/etc/fuse.conf` must permit it.
    #[serde(default)]
    pub allow_other: bool,
    /// The caller's mount namespace: the target of /proc/self/ns/mnt.
    pub mount_namespace: String,
}

/// What serves a mount.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MountDriverWord {
    /// The kernel's overlay filesystem; as root.
    Overlay,
    /// FUSE.
    Fuse,
}

/// One mount.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MountItem {
    /// The name of the vault.
    pub vault: String,
    /// The directory of the host.
    pub dir: String,
    /// The exact bytes of `dir`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
    /// What serves it.
    pub driver: MountDriverWord,
    /// Whether it can only be read.
    pub readonly: bool,
    /// The version that is mounted, or was last committed.
    pub version: u64,
    /// Seconds after which what was written becomes a version by itself.
    pub autocommit_s: Option<u64>,
}

/// Lists the mounts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mounts {}

/// The answer to [`Mounts`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MountListing {
    /// Each mount.
    pub mounts: Vec<MountItem>,
}

/// Unmounts: the one at `dir`, those of `vault`, or all.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unmount {
    /// The directory of the host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir: Option<HostPath>,
    /// The exact bytes of `dir`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
    /// All of this vault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vault: Option<String>,
    /// All of them.
    #[serde(default)]
    pub all: bool,
    /// Even if programs use it, or the quota refuses what was written.
    #[serde(default)]
    pub force: bool,
}

/// The answer to [`Unmount`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnmountListing {
    /// Those that are gone.
    pub unmounted: Vec<UnmountedItem>,
}

/// A mount that was unmounted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnmountedItem {
    /// The name of the vault.
    pub vault: String,
    /// The directory of the host.
    pub dir: String,
    /// The exact bytes of `dir`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
    /// The version with the last writes; null if there were none.
    pub version: Option<u64>,
    /// The checkpoint with what the quota refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uncommitted: Option<String>,
}
