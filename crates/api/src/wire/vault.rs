//! Vaults: creating, listing, forking, deleting, and their history.

use super::FreezeItem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultCreate {
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultCreated {
    pub created: String,
    pub current: bool,
    pub backend: String,
    pub id: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultList {}

/// A vault in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultItem {
    pub name: String,
    pub current: bool,
    /// Bytes of all files in it.
    pub size: u64,
    pub backend: String,
    pub id: String,
    pub files: u64,
    pub checkpoints: usize,
    pub version: u64,
    /// The vault it was forked from.
    pub parent: Option<String>,
    pub created_at: String,
    /// Who created or forked it: `owner`, `agent`, `agent:NAME`.
    pub made_by: String,
    /// Whether it has known damage; damaged content is not in the figures.
    #[serde(default)]
    pub damaged: bool,
    /// The damage.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultInfo {}

/// The details of one vault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultDetails {
    #[serde(flatten)]
    pub item: VaultItem,
    /// The home that holds it.
    pub path: String,
    /// The head's root.
    pub root: String,
    /// The root it was forked at.
    pub parent_root: Option<String>,
    /// Its ancestors, nearest first.
    pub lineage: Vec<AncestorItem>,
    /// The vaults forked from it.
    pub forks: Vec<String>,
    /// Its settings for commands.
    pub settings: BTreeMap<String, String>,
    /// The limits of its commands, if a request sets none.
    pub limits: Vec<VaultLimitItem>,
    /// Uncommitted writes that could not be committed; they are kept, and not in the head.
    #[serde(default)]
    pub uncommitted: Vec<StrandedItem>,
}

/// Why something is not committed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StrandedItem {
    /// The kind of error.
    pub error: String,
    pub message: String,
    pub hint: Option<String>,
}

/// A limit of the commands in a vault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultLimitItem {
    pub limit: String,
    /// Null: unlimited.
    pub value: Option<f64>,
    /// The source: `vault`, or `default`, which protects the host.
    pub source: String,
}

/// Changes settings for every command in a vault: `env.NAME`, `memory`, `cpus`, `pids`, `disk`, `nofile`, `profile`,
/// `timeout`. All of them or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultSet {
    pub settings: BTreeMap<String, String>,
}

/// Removes settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultUnset {
    pub keys: Vec<String>,
}

/// The settings of a vault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultSettings {
    pub vault: String,
    pub settings: BTreeMap<String, String>,
}

/// The defaults of new vaults.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {}

/// Changes defaults, all or none: the keys of [`VaultSet`], and `max_size_mb`, `max_files`, `max_file_size_mb`. Null removes
/// one. Existing vaults do not change.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultsSet {
    pub settings: BTreeMap<String, Option<String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DefaultsListing {
    pub settings: BTreeMap<String, String>,
}

/// An ancestor of a vault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AncestorItem {
    pub name: String,
    pub id: String,
    /// False if it was deleted.
    pub exists: bool,
    /// The state that was forked.
    pub root: String,
    pub version: Option<u64>,
    /// Its checkpoints of that state.
    pub checkpoints: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultRename {
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultRenamed {
    pub old_name: String,
    pub name: String,
    pub current: bool,
    pub id: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultUse {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultUsed {
    pub current: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultFork {
    pub name: String,
    /// Forks from this checkpoint instead of the head.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoint: Option<String>,
    /// Forks from this version instead of the head.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<u64>,
    /// Makes the fork the current vault.
    #[serde(rename = "use", default)]
    pub make_current: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultForked {
    pub source: String,
    pub name: String,
    pub current: bool,
    pub backend: String,
    pub path: String,
    pub copy_on_write: bool,
    /// How running commands of the source were stopped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub freeze: Option<FreezeItem>,
    pub id: String,
    pub root: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultDelete {
    /// Ends the commands that run in it.
    #[serde(default)]
    pub force: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultDeleted {
    pub deleted: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultListDeleted {}

/// A deleted vault that can be restored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeletedVaultItem {
    pub name: String,
    pub id: String,
    pub version: u64,
    pub deleted_at: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultUndelete {
    /// The name it had.
    pub name: String,
    /// The new name. Default: the old one.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none", default)]
    pub to: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultUndeleted {
    pub undeleted: String,
    pub id: String,
    pub version: u64,
    pub root: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultLog {
    #[serde(default = "VaultLog::default_limit")]
    pub limit: usize,
}

impl VaultLog {
    pub(super) fn default_limit() -> usize {
        50
    }
}

/// One version of a vault, newest first in a log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VersionItem {
    pub version: u64,
    /// Bytes of all files in it.
    pub size: u64,
    pub files: u64,
    pub created_at: String,
    /// The first 16 hex digits of the root.
    pub hash: String,
    pub root: String,
    pub cause: String,
    pub by: String,
    pub exec: Option<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
}
