//! Maintenance of a home: gc, fsck, quotas, pruning, stats.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gc {
    #[serde(default)]
    pub dry_run: bool,
    /// How many seconds a deleted vault can be restored. Default: one day.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grace: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Collected {
    /// Objects that nothing refers to.
    pub orphans_found: u64,
    pub orphans_deleted: u64,
    /// Bytes of the deleted objects; in a dry run, of those that would be deleted.
    pub bytes_freed: u64,
    pub bytes_freed_human: String,
    pub dry_run: bool,
    pub live_objects: u64,
    /// What refers to the rest.
    pub roots: RootItem,
    /// Deleted vaults that are removed for good.
    pub vaults_forgotten: Vec<String>,
    /// Deleted vaults that can still be restored.
    pub vaults_recoverable: Vec<RecoverableItem>,
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
#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
pub struct RootItem {
    pub heads: u64,
    pub versions: u64,
    pub checkpoints: u64,
    pub fork_points: u64,
    pub imports: u64,
    pub deleted_vaults: u64,
    pub held: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecoverableItem {
    pub name: String,
    pub deleted_at: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fsck {
    /// Repairs damage from other copies; for the owner.
    #[serde(default)]
    pub repair: bool,
    /// Makes a new database, or adds unknown packs; for the owner.
    #[serde(default)]
    pub rebuild: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FsckFindings {
    pub clean: bool,
    pub objects: u64,
    /// Before compression.
    pub bytes: u64,
    pub roots: u64,
    /// What is damaged now.
    pub damaged: Vec<DamageItem>,
    /// What was damaged and is repaired.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub repaired: Vec<RepairedItem>,
    /// Places that could not be searched, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unsearched: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rebuilt: Option<RebuiltItem>,
    /// Problems of the database.
    pub database: Vec<String>,
    pub journal_valid: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub journal_problem: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DamageItem {
    pub object: String,
    pub problem: String,
    /// Empty if nothing refers to it.
    pub seen: Vec<SightingItem>,
}

/// A repaired object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RepairedItem {
    pub object: String,
    /// Where its bytes were found.
    pub from: String,
    pub seen: Vec<SightingItem>,
}

/// The result of a rebuild.
#[derive(Clone, Debug, Serialize, Deserialize)]
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

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecoveredItem {
    pub vault: String,
    pub versions: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SightingItem {
    pub vault: String,
    pub path: String,
    /// `head`, `v3`, `checkpoint NAME`…
    pub states: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaShow {}

/// A vault's limits and usage; null is no limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuotaItem {
    pub vault: String,
    pub current_size_bytes: u64,
    pub current_size_human: String,
    pub current_files: u64,
    pub max_size_mb: Option<u64>,
    pub max_files: Option<u64>,
    pub max_file_size_mb: Option<u64>,
    pub size_usage_percent: Option<f64>,
    pub files_usage_percent: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaSet {
    /// `max_size_mb`, `max_files` or `max_file_size_mb`.
    pub key: String,
    /// Null removes the limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuotaChanged {
    /// `set` or `clear`.
    pub action: String,
    pub key: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prune {
    /// How many of the newest versions to keep.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keep: Option<u64>,
    /// Keep the versions of the last N days.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub older_than_days: Option<u64>,
    #[serde(default)]
    pub all: bool,
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PruneFindings {
    /// Files in the pruned vaults.
    pub files_processed: u64,
    pub vaults_processed: u64,
    pub versions_deleted: u64,
    pub checkpoints_deleted: u64,
    pub dry_run: bool,
    /// Vaults whose files cannot be counted. They were pruned too.
    #[serde(default)]
    pub damaged: Vec<DamagedVaultItem>,
}

/// A vault that is damaged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DamagedVaultItem {
    pub vault: String,
    /// What is wrong with it.
    pub damage: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stats {}

/// Statistics of the whole home.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatsItem {
    pub files: u64,
    pub directories: u64,
    pub total_versions: u64,
    /// Objects of all kinds.
    pub content_blobs: u64,
    /// The content of all vaults, each counted separately.
    pub total_size_bytes: u64,
    pub total_size_human: String,
    /// The stored size, each object once and compressed.
    pub stored_bytes: u64,
    pub stored_human: String,
    /// `total_size_bytes` by `stored_bytes`.
    pub dedup_ratio: f64,
    pub orphaned_blobs: u64,
    pub orphaned_bytes: u64,
    pub orphaned_human: String,
    pub packs: u64,
    pub pack_bytes: u64,
    pub large_objects: u64,
    pub large_object_bytes: u64,
    /// Disk usage without layers.
    pub disk_bytes: u64,
    pub db_size_bytes: u64,
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
    pub vaults: Vec<VaultStatsItem>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VaultStatsItem {
    pub name: String,
    pub files: u64,
    pub directories: u64,
    pub size: u64,
    pub versions: u64,
    pub checkpoints: u64,
    /// Whether it has known damage; damaged content is not in the figures.
    #[serde(default)]
    pub damaged: bool,
    /// The damage.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maintain {
    /// How many of the newest versions of each vault to keep.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keep: Option<u64>,
    /// Keep the versions of the last N days.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub older_than_days: Option<u64>,
    #[serde(default)]
    pub skip_gc: bool,
    #[serde(default)]
    pub skip_compact: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Maintained {
    pub initial_files: u64,
    pub initial_versions: u64,
    pub initial_blobs: u64,
    pub initial_size_bytes: u64,
    pub versions_pruned: u64,
    pub orphans_deleted: u64,
    pub bytes_freed_gc: u64,
    pub bytes_freed_compact: u64,
    pub final_files: u64,
    pub final_versions: u64,
    pub final_blobs: u64,
    /// Disk usage afterwards; `initial` is that before.
    pub final_size_bytes: u64,
    /// What cannot be read, so that gc deleted nothing.
    #[serde(default)]
    pub held_back: Vec<DamageItem>,
}
