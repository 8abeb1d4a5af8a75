//! Vaults: creating, listing, forking, deleting, and their history.

use super::FreezeItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Creates an empty vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultCreate {
    /// Its name.
    pub name: String,
    /// The storage engine. There is one: `sqlite`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub backend: Option<String>,
}

impl VaultCreate {
    /// A vault of this name, in the engine that there is.
    pub fn named(name: impl Into<String>) -> VaultCreate {
        VaultCreate {
            name: name.into(),
            backend: None,
        }
    }
}

/// The answer to [`VaultCreate`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultCreated {
    /// Its name.
    pub created: String,
    /// Whether it is the current vault.
    pub current: bool,
    /// The storage engine.
    pub backend: String,
    /// Its id.
    pub id: String,
}

/// Lists the vaults.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultList {
    /// How many at most. Default: all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<NonZeroUsize>,
    /// Only what follows: `next_cursor` of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<String>,
}

/// The answer to [`VaultList`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultListing {
    /// By name.
    pub vaults: Vec<VaultItem>,
    /// Where the next page begins; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
}

/// A vault in a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultItem {
    /// Its name.
    pub name: String,
    /// Whether it is the current vault.
    pub current: bool,
    /// Bytes of all files in it.
    pub size: u64,
    /// The storage engine.
    pub backend: String,
    /// Its id.
    pub id: String,
    /// How many files it has.
    pub files: u64,
    /// How many checkpoints.
    pub checkpoints: usize,
    /// The newest version.
    pub version: u64,
    /// The vault it was forked from.
    pub parent: Option<String>,
    /// When it was made, as RFC 3339.
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

/// Describes a vault: size, lineage, forks, settings, limits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultInfo {}

/// The details of one vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultDetails {
    /// What a list says of it.
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
    /// The compatibility mode that its settings name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<ModeItem>,
    /// The limits of its commands, if a request sets none.
    pub limits: Vec<VaultLimitItem>,
    /// What the host lends to its commands, besides system directories.
    #[serde(default)]
    pub lent: Vec<LentItem>,
    /// Uncommitted writes that could not be committed; they are kept, and not in the head.
    #[serde(default)]
    pub uncommitted: Vec<StrandedItem>,
}

/// Something that the host lends, read-only.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LentItem {
    /// `rust`, `node`, `python` or `go` for a version of a tool, or `directory`.
    pub kind: String,
    /// The version, as its manager calls it.
    pub name: Option<String>,
    /// The programs of the version, or the directory: the same inside and outside.
    pub path: String,
}

/// A compatibility mode: what holds in a vault that does not say otherwise.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModeItem {
    /// Its name.
    pub name: String,
    /// The named set of limits.
    pub profile: String,
    /// How long a command may take if nobody says.
    pub timeout_ms: u64,
    /// The tools that MCP clients are given if they name none.
    pub toolset: String,
    /// What commands may reach if the vault says nothing else.
    pub network: String,
    /// Variables of every command's environment.
    pub env: BTreeMap<String, String>,
}

/// Why something is not committed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StrandedItem {
    /// The kind of error.
    pub error: String,
    /// What is wrong.
    pub message: String,
    /// One thing to do about it.
    pub hint: Option<String>,
}

/// A limit of the commands in a vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultLimitItem {
    /// Which limit.
    pub limit: String,
    /// Null: unlimited.
    pub value: Option<f64>,
    /// The source: `vault`, or `default`, which protects the host.
    pub source: String,
}

/// Changes settings for every command in a vault: `env.NAME`, `memory`, `cpus`, `pids`, `disk`, `nofile`, `profile`,
/// `timeout`, `mode`. All of them or none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultSet {
    /// The settings, by key.
    pub settings: BTreeMap<String, String>,
}

/// Removes settings.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultUnset {
    /// The keys.
    pub keys: Vec<String>,
}

/// The settings of a vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultSettings {
    /// The name of the vault.
    pub vault: String,
    /// The settings, by key.
    pub settings: BTreeMap<String, String>,
}

/// The defaults of new vaults.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {}

/// Changes defaults, all or none: the keys of [`VaultSet`], and `max_size_mb`, `max_files`, `max_file_size_mb`. Null removes
/// one. Existing vaults do not change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultsSet {
    /// The settings, by key.
    pub settings: BTreeMap<String, Option<String>>,
}

/// The answer to [`Defaults`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DefaultsListing {
    /// The settings, by key.
    pub settings: BTreeMap<String, String>,
}

/// An ancestor of a vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AncestorItem {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// False if it was deleted.
    pub exists: bool,
    /// The state that was forked.
    pub root: String,
    /// The version of that state.
    pub version: Option<u64>,
    /// Its checkpoints of that state.
    pub checkpoints: Vec<String>,
}

/// Renames a vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultRename {
    /// Its new name.
    pub name: String,
}

/// The answer to [`VaultRename`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultRenamed {
    /// The name it had.
    pub old_name: String,
    /// Its name.
    pub name: String,
    /// Whether it is the current vault.
    pub current: bool,
    /// Its id.
    pub id: String,
}

/// Makes a vault the caller's current one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultUse {}

/// The answer to [`VaultUse`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultUsed {
    /// Its name.
    pub current: String,
}

/// Creates a copy-on-write fork of a vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultFork {
    /// The name of the fork.
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

/// The answer to [`VaultFork`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultForked {
    /// The vault that was forked.
    pub source: String,
    /// The fork.
    pub name: String,
    /// Whether it is the current vault.
    pub current: bool,
    /// The storage engine.
    pub backend: String,
    /// The home that holds it.
    pub path: String,
    /// Always true.
    pub copy_on_write: bool,
    /// How running commands of the source were stopped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub freeze: Option<FreezeItem>,
    /// Its id.
    pub id: String,
    /// The root of that state.
    pub root: String,
}

/// Deletes a vault; it can be restored until gc removes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultDelete {
    /// Ends the commands that run in it.
    #[serde(default)]
    pub force: bool,
}

/// The answer to [`VaultDelete`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultDeleted {
    /// Its name.
    pub deleted: String,
}

/// Lists the deleted vaults that can be restored.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultListDeleted {
    /// How many at most. Default: all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<NonZeroUsize>,
    /// Only what follows: `next_cursor` of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<String>,
}

/// The answer to [`VaultListDeleted`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeletedVaultListing {
    /// The last deleted first.
    pub vaults: Vec<DeletedVaultItem>,
    /// Where the next page begins; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
}

/// A deleted vault that can be restored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeletedVaultItem {
    /// The name it had.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Its newest version.
    pub version: u64,
    /// When it was deleted, as RFC 3339.
    pub deleted_at: String,
}

/// Restores a deleted vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultUndelete {
    /// The name it had.
    pub name: String,
    /// The new name. Default: the old one.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none", default)]
    pub to: Option<String>,
}

/// The answer to [`VaultUndelete`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultUndeleted {
    /// Its name.
    pub undeleted: String,
    /// Its id.
    pub id: String,
    /// The vault's version.
    pub version: u64,
    /// The root of that state.
    pub root: String,
}

/// Lists the versions of a vault, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultLog {
    /// At most so many.
    #[serde(default = "VaultLog::default_limit")]
    pub limit: usize,
    /// Only versions before this one: `next_cursor` of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<u64>,
}

/// The answer to [`VaultLog`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VersionListing {
    /// The newest first.
    pub versions: Vec<VersionItem>,
    /// The cursor of the next page; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<u64>,
}

impl VaultLog {
    /// The newest of them.
    pub fn newest(limit: usize) -> VaultLog {
        VaultLog {
            limit,
            cursor: None,
        }
    }

    pub(super) fn default_limit() -> usize {
        50
    }
}

/// One version of a vault, newest first in a log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VersionItem {
    /// Its number.
    pub version: u64,
    /// Bytes of all files in it.
    pub size: u64,
    /// How many files it has.
    pub files: u64,
    /// When it was made, as RFC 3339.
    pub created_at: String,
    /// The first 16 hex digits of the root.
    pub hash: String,
    /// The root of that state.
    pub root: String,
    /// What made it: a file verb, an exec, a restore…
    pub cause: String,
    /// Who did it: `owner`, `agent`, `agent:NAME` or `system`.
    pub by: String,
    /// The exec that made it.
    pub exec: Option<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
}
