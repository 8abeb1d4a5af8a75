//! Vaults: making, listing, forking, deleting, and their history.

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
    /// Whether something in it is known to be lost; what was lost is not in the figures.
    #[serde(default)]
    pub damaged: bool,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultInfo {}

/// All there is to say about one vault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultDetails {
    #[serde(flatten)]
    pub item: VaultItem,
    /// The home that holds it.
    pub path: String,
    /// The root its head names.
    pub root: String,
    /// The root it was forked at.
    pub parent_root: Option<String>,
    /// Where it comes from, the vault it was forked from first.
    pub lineage: Vec<AncestorItem>,
    /// The vaults forked from it.
    pub forks: Vec<String>,
    /// What it says about every command that runs in it.
    pub settings: BTreeMap<String, String>,
    /// What its commands may use when nothing is said for one.
    pub limits: Vec<VaultLimitItem>,
    /// What was written in it and could not be committed; it is kept, and the head is without it.
    #[serde(default)]
    pub uncommitted: Vec<StrandedItem>,
}

/// Why something is not in a vault's head.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StrandedItem {
    /// The kind of error that keeps it out.
    pub error: String,
    pub message: String,
    pub hint: Option<String>,
}

/// A limit of the commands in a vault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultLimitItem {
    pub limit: String,
    /// Null: it was lifted.
    pub value: Option<f64>,
    /// Who said so: `vault`, or `default`, which protects the host when nobody does.
    pub source: String,
}

/// Says something about every command that runs in a vault: `env.NAME`, `memory`, `cpus`, `pids`,
/// `disk`, `nofile`, `profile`, `timeout`. All of it or nothing is taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultSet {
    pub settings: BTreeMap<String, String>,
}

/// Unsays it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultUnset {
    pub keys: Vec<String>,
}

/// What a vault says now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultSettings {
    pub vault: String,
    pub settings: BTreeMap<String, String>,
}

/// What new vaults begin with.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {}

/// Changes it, all of it or nothing: the keys of [`VaultSet`], and `max_size_mb`, `max_files`, `max_file_size_mb`. Null
/// unsays one. Vaults that are there stay as they are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultsSet {
    pub settings: BTreeMap<String, Option<String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DefaultsListing {
    pub settings: BTreeMap<String, String>,
}

/// A vault that another one comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AncestorItem {
    pub name: String,
    pub id: String,
    /// False once it was deleted.
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
    /// Begins with this checkpoint instead of the head.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoint: Option<String>,
    /// Begins with this version instead of the head.
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
    /// How commands that ran in the source were held still.
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

/// A vault that was deleted and can still be had back.
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
    /// The name it gets; the one it had when left out.
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
