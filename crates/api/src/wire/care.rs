//! Care of a home: gc, fsck, quotas, pruning, figures.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gc {
    #[serde(default)]
    pub dry_run: bool,
    /// How many seconds a deleted vault can be had back; a day when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grace: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Collected {
    /// Objects that nothing refers to.
    pub orphans_found: u64,
    pub orphans_deleted: u64,
    /// Bytes of the objects that went; in a dry run, of those that would.
    pub bytes_freed: u64,
    pub bytes_freed_human: String,
    pub dry_run: bool,
    pub live_objects: u64,
    /// What keeps objects alive.
    pub roots: RootItem,
    /// Deleted vaults that cannot be had back any more.
    pub vaults_forgotten: Vec<String>,
    /// Deleted vaults that still can.
    pub vaults_recoverable: Vec<RecoverableItem>,
    pub packs_rewritten: u64,
    /// Bytes of dead records that packs gave back.
    pub pack_bytes_freed: u64,
    /// Packs that are mostly dead and wait for room in which the rest of them can be written.
    #[serde(default)]
    pub packs_waiting: u64,
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
pub struct Fsck {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FsckFindings {
    pub clean: bool,
    pub objects: u64,
    /// Of their content, before compression.
    pub bytes: u64,
    pub roots: u64,
    pub damaged: Vec<DamageItem>,
    /// What is wrong with the database.
    pub database: Vec<String>,
    pub journal_valid: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub journal_problem: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DamageItem {
    pub object: String,
    pub problem: String,
    /// Empty when nothing refers to it.
    pub seen: Vec<SightingItem>,
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

/// A vault's limits and how much of them is used; what is null has no limit.
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
    /// Lifts the limit when left out.
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
    /// How many of the newest versions stay.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keep: Option<u64>,
    /// Versions of the last so many days stay.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub older_than_days: Option<u64>,
    #[serde(default)]
    pub all: bool,
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PruneFindings {
    /// Files in the vaults that were pruned.
    pub files_processed: u64,
    pub vaults_processed: u64,
    pub versions_deleted: u64,
    pub checkpoints_deleted: u64,
    pub dry_run: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stats {}

/// Figures of the whole home.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatsItem {
    pub files: u64,
    pub directories: u64,
    pub total_versions: u64,
    /// Objects of all kinds.
    pub content_blobs: u64,
    /// What all vaults hold, each counted for itself.
    pub total_size_bytes: u64,
    pub total_size_human: String,
    /// What is stored of it, each object once and compressed.
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
    /// Of everything on the disk, layers excepted.
    pub disk_bytes: u64,
    pub db_size_bytes: u64,
    pub db_size_human: String,
    /// Of the disk that the home is on, for this user.
    #[serde(default)]
    pub free_bytes: u64,
    /// What the reserve for a full disk lacks.
    #[serde(default)]
    pub reserve_missing_bytes: u64,
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
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maintain {
    /// How many of the newest versions of each vault stay.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keep: Option<u64>,
    /// Versions of the last so many days stay.
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
    /// On the disk, as is the initial one.
    pub final_size_bytes: u64,
}
