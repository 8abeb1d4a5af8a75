//! Maintenance of a home: gc, fsck, quotas, pruning, stats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Deletes objects that nothing refers to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gc {
    /// Only says what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// How many seconds a deleted vault can be restored. Default: one day.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grace: Option<u64>,
}

/// The answer to [`Gc`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Collected {
    /// Objects that nothing refers to.
    pub orphans_found: u64,
    /// How many of them were deleted.
    pub orphans_deleted: u64,
    /// Bytes of the deleted objects; in a dry run, of those that would be deleted.
    pub bytes_freed: u64,
    /// `bytes_freed`, for people.
    pub bytes_freed_human: String,
    /// Only says what would be done.
    pub dry_run: bool,
    /// Objects that something refers to.
    pub live_objects: u64,
    /// What refers to the rest.
    pub roots: RootItem,
    /// Deleted vaults that are removed for good.
    pub vaults_forgotten: Vec<String>,
    /// Deleted vaults that can still be restored.
    pub vaults_recoverable: Vec<RecoverableItem>,
    /// Packs that were written anew without dead records.
    pub packs_rewritten: u64,
    /// Freed bytes of dead records in packs.
    pub pack_bytes_freed: u64,
    /// Packs that could not be rewritten for lack of disk space.
    #[serde(default)]
    pub packs_waiting: u64,
    /// What cannot be read. While there is any, nothing is deleted, because what it refers to is not known.
    #[serde(default)]
    pub held_back: Vec<DamageItem>,
}

/// How many roots of each kind.
#[derive(Copy, Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RootItem {
    /// Heads of vaults.
    pub heads: u64,
    /// Versions of vaults.
    pub versions: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// States that were forked.
    pub fork_points: u64,
    /// States that imports are compared with.
    pub imports: u64,
    /// Deleted vaults that can be had back.
    pub deleted_vaults: u64,
    /// What is in use at the moment.
    pub held: u64,
}

/// A deleted vault that can be had back.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecoverableItem {
    /// Its name.
    pub name: String,
    /// When it was deleted, as RFC 3339.
    pub deleted_at: String,
}

/// Checks every object, the database and the journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fsck {
    /// Repairs damage from other copies; for the owner.
    #[serde(default)]
    pub repair: bool,
    /// Makes a new database, or adds unknown packs; for the owner.
    #[serde(default)]
    pub rebuild: bool,
}

/// The answer to [`Fsck`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FsckFindings {
    /// Whether nothing is wrong.
    pub clean: bool,
    /// How many objects there are.
    pub objects: u64,
    /// Before compression.
    pub bytes: u64,
    /// How many states were walked.
    pub roots: u64,
    /// What is damaged now.
    pub damaged: Vec<DamageItem>,
    /// What was damaged and is repaired.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub repaired: Vec<RepairedItem>,
    /// Places that could not be searched, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unsearched: Vec<String>,
    /// What a rebuild brought back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rebuilt: Option<RebuiltItem>,
    /// Damaged downloads of package registries, which were removed.
    #[serde(default)]
    pub downloads_removed: u64,
    /// Problems of the database.
    pub database: Vec<String>,
    /// Whether the chain of the journal is whole.
    pub journal_valid: bool,
    /// What is wrong with the journal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub journal_problem: Option<String>,
}

/// An object that cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DamageItem {
    /// The hash of the object.
    pub object: String,
    /// What is wrong with it.
    pub problem: String,
    /// Empty if nothing refers to it.
    pub seen: Vec<SightingItem>,
}

/// A repaired object.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RepairedItem {
    /// The hash of the object.
    pub object: String,
    /// Where its bytes were found.
    pub from: String,
    /// Where it is used.
    pub seen: Vec<SightingItem>,
}

/// The result of a rebuild.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RebuiltItem {
    /// Whether the database was lost; otherwise unknown packs were added.
    pub database_lost: bool,
    /// Objects that the database did not know.
    pub objects: u64,
    /// The vault with all complete states.
    pub recovered: Option<RecoveredItem>,
    /// The vault with all incomplete states.
    pub recovered_in_part: Option<RecoveredItem>,
    /// Files that were moved to another name.
    pub put_aside: Vec<String>,
}

/// A vault that a rebuild made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecoveredItem {
    /// The name of the vault.
    pub vault: String,
    /// How many versions it has.
    pub versions: u64,
}

/// Where something is used.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SightingItem {
    /// The name of the vault.
    pub vault: String,
    /// The path in it.
    pub path: String,
    /// `head`, `v3`, `checkpoint NAME`…
    pub states: Vec<String>,
}

/// Shows the limits on a vault's size, and what it uses.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaShow {}

/// A vault's limits and usage; null is no limit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QuotaItem {
    /// The name of the vault.
    pub vault: String,
    /// Bytes of all files in it.
    pub current_size_bytes: u64,
    /// `current_size_bytes`, for people.
    pub current_size_human: String,
    /// How many files it has.
    pub current_files: u64,
    /// The limit on its size, in MiB.
    pub max_size_mb: Option<u64>,
    /// The limit on its files.
    pub max_files: Option<u64>,
    /// The limit on one file, in MiB.
    pub max_file_size_mb: Option<u64>,
    /// How much of `max_size_mb` is used.
    pub size_usage_percent: Option<f64>,
    /// How much of `max_files` is used.
    pub files_usage_percent: Option<f64>,
}

/// Sets or clears a limit on a vault's size.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaSet {
    /// `max_size_mb`, `max_files` or `max_file_size_mb`.
    pub key: String,
    /// Null removes the limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<u64>,
}

/// The answer to [`QuotaSet`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QuotaChanged {
    /// `set` or `clear`.
    pub action: String,
    /// Which limit.
    pub key: String,
    /// The limit now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<u64>,
}

/// Deletes old versions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prune {
    /// How many of the newest versions to keep.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keep: Option<u64>,
    /// Keep the versions of the last N days.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub older_than_days: Option<u64>,
    /// Keep the versions of the last N seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub older_than_s: Option<u64>,
    /// In all vaults.
    #[serde(default)]
    pub all: bool,
    /// Only says what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// The answer to [`Prune`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PruneFindings {
    /// Files in the pruned vaults.
    pub files_processed: u64,
    /// How many vaults were pruned.
    pub vaults_processed: u64,
    /// How many versions went.
    pub versions_deleted: u64,
    /// How many checkpoints that nobody asked for went with them.
    pub checkpoints_deleted: u64,
    /// Only says what would be done.
    pub dry_run: bool,
    /// Vaults whose files cannot be counted. They were pruned too.
    #[serde(default)]
    pub damaged: Vec<DamagedVaultItem>,
}

/// A vault that is damaged.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DamagedVaultItem {
    /// The name of the vault.
    pub vault: String,
    /// What is wrong with it.
    pub damage: String,
}

/// Shows how much is stored, and the free disk space.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stats {}

/// Statistics of the whole home.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatsItem {
    /// How many files.
    pub files: u64,
    /// How many directories.
    pub directories: u64,
    /// Versions of all vaults.
    pub total_versions: u64,
    /// Objects of all kinds.
    pub content_blobs: u64,
    /// The content of all vaults, each counted separately.
    pub total_size_bytes: u64,
    /// `total_size_bytes`, for people.
    pub total_size_human: String,
    /// The stored size, each object once and compressed.
    pub stored_bytes: u64,
    /// `stored_bytes`, for people.
    pub stored_human: String,
    /// `total_size_bytes` by `stored_bytes`.
    pub dedup_ratio: f64,
    /// Objects that nothing refers to.
    pub orphaned_blobs: u64,
    /// Their bytes.
    pub orphaned_bytes: u64,
    /// `orphaned_bytes`, for people.
    pub orphaned_human: String,
    /// How many packs.
    pub packs: u64,
    /// Their bytes.
    pub pack_bytes: u64,
    /// Objects that are files of their own.
    pub large_objects: u64,
    /// Their bytes.
    pub large_object_bytes: u64,
    /// Disk usage without layers.
    pub disk_bytes: u64,
    /// Bytes of what package registries answered, which are kept besides.
    #[serde(default)]
    pub download_bytes: u64,
    /// Bytes of the database.
    pub db_size_bytes: u64,
    /// `db_size_bytes`, for people.
    pub db_size_human: String,
    /// Free space for this user on the home's disk.
    #[serde(default)]
    pub free_bytes: u64,
    /// What the reserve for a full disk lacks.
    #[serde(default)]
    pub reserve_missing_bytes: u64,
    /// What cannot be read: objects counted as unreachable may belong to it.
    #[serde(default)]
    pub held_back: Vec<DamageItem>,
    /// Each vault.
    pub vaults: Vec<VaultStatsItem>,
}

/// Figures of one vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultStatsItem {
    /// Its name.
    pub name: String,
    /// How many files.
    pub files: u64,
    /// How many directories.
    pub directories: u64,
    /// Bytes of all files in it.
    pub size: u64,
    /// How many versions.
    pub versions: u64,
    /// How many checkpoints.
    pub checkpoints: u64,
    /// Whether it has known damage; damaged content is not in the figures.
    #[serde(default)]
    pub damaged: bool,
    /// The damage.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
}

/// Prunes versions, deletes unreachable objects and compacts the store.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Maintain {
    /// How many of the newest versions of each vault to keep.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keep: Option<u64>,
    /// Keep the versions of the last N days.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub older_than_days: Option<u64>,
    /// Keep the versions of the last N seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub older_than_s: Option<u64>,
    /// Leaves out deleting unreachable objects.
    #[serde(default)]
    pub skip_gc: bool,
    /// Leaves out compacting.
    #[serde(default)]
    pub skip_compact: bool,
}

/// The answer to [`Maintain`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Maintained {
    /// Files before.
    pub initial_files: u64,
    /// Versions before.
    pub initial_versions: u64,
    /// Objects before.
    pub initial_blobs: u64,
    /// Bytes on the disk before.
    pub initial_size_bytes: u64,
    /// Versions that went.
    pub versions_pruned: u64,
    /// Unreachable objects that went.
    pub orphans_deleted: u64,
    /// Their bytes.
    pub bytes_freed_gc: u64,
    /// Bytes that compacting gave back.
    pub bytes_freed_compact: u64,
    /// Files afterwards.
    pub final_files: u64,
    /// Versions afterwards.
    pub final_versions: u64,
    /// Objects afterwards.
    pub final_blobs: u64,
    /// Disk usage afterwards; `initial` is that before.
    pub final_size_bytes: u64,
    /// What cannot be read, so that gc deleted nothing.
    #[serde(default)]
    pub held_back: Vec<DamageItem>,
}
