//! Import and export: directories, archives and git revisions of the host.

use super::{Base64, HostPath, SkippedItem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Copies a host directory, an archive or a git revision into a vault.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// An absolute host directory, or a tar archive there.
    pub host_dir: HostPath,
    /// The exact bytes of `host_dir`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_dir_b64: Option<Base64>,
    /// Where in the vault it goes.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What to skip, as `.gitignore` patterns.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Skips what the `.gitignore` files in the directory exclude, but for what git tracks, and never inside `.git`.
    #[serde(default)]
    pub gitignore: bool,
    /// Imports this revision of the git repository `host_dir`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub git_rev: Option<String>,
    /// Skips what is deeper. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_depth: Option<usize>,
}

/// Imports a tar archive; the body is the archive.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveWrite {
    /// Where in the vault it goes.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What to skip, as `.gitignore` patterns, one per line.
    #[serde(default)]
    pub exclude: String,
    /// Leaves out what is more names deep; nothing when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_depth: Option<usize>,
}

/// Imports a directory or a tar archive from the transfer directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferIn {
    /// A path beneath the transfer directory.
    pub name: String,
    /// The exact bytes of `name`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name_b64: Option<Base64>,
    /// Where in the vault it goes.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What to skip, as `.gitignore` patterns.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Skips what the `.gitignore` files in the directory exclude, but for what git tracks, and never inside `.git`.
    #[serde(default)]
    pub gitignore: bool,
    /// Skips what is deeper. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_depth: Option<usize>,
}

/// Copies a directory of the vault into the transfer directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferOut {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// A single new name there.
    pub name: String,
    /// The exact bytes of `name`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name_b64: Option<Base64>,
}

/// Shows the transfer directory.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferShow {}

/// Sets the one host directory that agents may use.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferSet {
    /// An absolute host directory; null unsets it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir: Option<HostPath>,
    /// The exact bytes of `dir`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
}

/// The transfer directory; null if there is none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TransferState {
    /// The directory of the host.
    pub dir: Option<String>,
    /// The exact bytes of `dir`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
}

/// The answer to [`Import`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// The path in the vault.
    pub vfs_path: String,
    /// The exact bytes of `vfs_path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vfs_path_b64: Option<Base64>,
    /// How many files came in.
    pub files_imported: u64,
    /// How many directories were made.
    pub dirs_created: u64,
    /// Bytes of their content.
    pub total_bytes: u64,
    /// Files that were not read, because they had not changed since an earlier import.
    pub files_reused: u64,
    /// The vault's version.
    pub version: u64,
    /// What was skipped, and why.
    pub skipped: Vec<SkippedItem>,
}

/// Copies a directory of a vault to the host.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// An absolute host directory that is new or empty.
    pub host_dir: HostPath,
    /// The exact bytes of `host_dir`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_dir_b64: Option<Base64>,
    /// Replaces existing files; the directory need not be empty.
    #[serde(default)]
    pub overwrite: bool,
    /// Also writes what git executes: hooks, and settings that name programs.
    #[serde(default)]
    pub allow_hooks: bool,
    /// Skips and lists what is damaged.
    #[serde(default)]
    pub keep_going: bool,
}

/// Exports a directory of the vault as a tar archive on the host.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportArchive {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// An absolute new host file; its suffix selects the compression.
    pub host_file: HostPath,
    /// The exact bytes of `host_file`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_file_b64: Option<Base64>,
    /// Skips and lists what is damaged.
    #[serde(default)]
    pub keep_going: bool,
}

/// Exports a directory of the vault as a tar archive; the answer is the archive.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveRead {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

/// The answer to [`Export`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// The path in the vault.
    pub vfs_path: String,
    /// The exact bytes of `vfs_path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vfs_path_b64: Option<Base64>,
    /// The path of the host.
    pub real_path: String,
    /// The exact bytes of `real_path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub real_path_b64: Option<Base64>,
    /// How many files were written.
    pub files_exported: u64,
    /// How many directories were made.
    pub dirs_created: u64,
    /// Bytes of their content.
    pub total_bytes: u64,
    /// What could not be written to the host, and why.
    pub skipped: Vec<SkippedItem>,
    /// Files that tools of the host execute on their own.
    pub runs_by_itself: Vec<RunsByItselfItem>,
    /// What is damaged and therefore missing.
    #[serde(default)]
    pub missing: Vec<SkippedItem>,
}

/// Writes what changed since an import back to the imported host directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportChanges {
    /// The absolute host directory that was imported.
    pub host_dir: HostPath,
    /// The exact bytes of `host_dir`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_dir_b64: Option<Base64>,
    /// Where it was imported to. Default: the latest such path.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Only lists what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// Also writes what git executes: hooks, and settings that name programs.
    #[serde(default)]
    pub allow_hooks: bool,
}

/// The answer to [`ExportChanges`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExportedChanges {
    /// The path in the vault.
    pub vfs_path: String,
    /// The exact bytes of `vfs_path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vfs_path_b64: Option<Base64>,
    /// The path of the host.
    pub real_path: String,
    /// The exact bytes of `real_path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub real_path_b64: Option<Base64>,
    /// How many files were written.
    pub files_exported: u64,
    /// How many files were removed.
    pub files_deleted: u64,
    /// How many directories were made.
    pub dirs_created: u64,
    /// Bytes of their content.
    pub total_bytes: u64,
    /// Only says what would be done.
    pub dry_run: bool,
    /// What was done, path by path.
    pub changes: Vec<ApplyItem>,
    /// What could not be written to the host, and why.
    pub skipped: Vec<SkippedItem>,
    /// Files that tools of the host execute on their own.
    pub runs_by_itself: Vec<RunsByItselfItem>,
}

/// A file that a tool of the host executes on its own.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunsByItselfItem {
    /// Relative to the directory on the host.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What runs it.
    pub why: String,
    /// Whether it is written only with `allow_hooks`.
    pub guarded: bool,
}

/// One changed path of the host.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApplyItem {
    /// Relative to the directory on the host.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What was done.
    pub action: ApplyWord,
}

/// What was done to a path of the host.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplyWord {
    /// It was made.
    Created,
    /// It has other content.
    Replaced,
    /// It was removed.
    Deleted,
    /// Only its mode was changed.
    Mode,
}

/// The progress of a long operation.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgressEvent {
    /// Files that are done.
    pub files: u64,
    /// Bytes that are done.
    pub bytes: u64,
    /// Files in all, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total_files: Option<u64>,
    /// Bytes in all, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total_bytes: Option<u64>,
}
