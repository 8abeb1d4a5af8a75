//! In and out: directories, archives and revisions of this machine, into a vault and out of it.

use super::{Base64, HostPath, SkippedItem};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// An absolute directory of the host, or a tar archive there.
    pub host_dir: HostPath,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_dir_b64: Option<Base64>,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What to leave out, in the language of `.gitignore`.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Leaves out what the `.gitignore` files in the directory say.
    #[serde(default)]
    pub gitignore: bool,
    /// Takes what the git repository `host_dir` holds at this revision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub git_rev: Option<String>,
    /// Leaves out what is more names deep; nothing when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_depth: Option<usize>,
}

/// A tar archive for the vault; the body is the archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveWrite {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What to leave out, in the language of `.gitignore`, one pattern a line.
    #[serde(default)]
    pub exclude: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_depth: Option<usize>,
}

/// Brings in what is in the transfer directory: a directory, or a tar archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferIn {
    /// Beneath the transfer directory; names with slashes between them.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name_b64: Option<Base64>,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What to leave out, in the language of `.gitignore`.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Leaves out what the `.gitignore` files in the directory say.
    #[serde(default)]
    pub gitignore: bool,
    /// Leaves out what is more names deep; nothing when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_depth: Option<usize>,
}

/// Copies a directory of the vault into the transfer directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferOut {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// A single name that is new there.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name_b64: Option<Base64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferShow {}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferSet {
    /// An absolute directory of the host; left out, there is none from now on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir: Option<HostPath>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
}

/// Where the transfer directory is; null when there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransferState {
    pub dir: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir_b64: Option<Base64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Imported {
    pub vfs_path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vfs_path_b64: Option<Base64>,
    pub files_imported: u64,
    pub dirs_created: u64,
    pub total_bytes: u64,
    /// Files that had not changed since an earlier import and were not read again.
    pub files_reused: u64,
    pub version: u64,
    /// Whatever was left out, and why.
    pub skipped: Vec<SkippedItem>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// An absolute directory of the host that is new or empty.
    pub host_dir: HostPath,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_dir_b64: Option<Base64>,
    /// Replaces files that are there, in a directory that need not be empty.
    #[serde(default)]
    pub overwrite: bool,
    /// Also writes what git runs by itself: hooks, and settings that name programs.
    #[serde(default)]
    pub allow_hooks: bool,
    /// Goes on where something is damaged, and says what is missing.
    #[serde(default)]
    pub keep_going: bool,
}

/// A directory of the vault as a tar archive on the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportArchive {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// An absolute file of the host that is not there yet; its ending says how to compress.
    pub host_file: HostPath,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_file_b64: Option<Base64>,
    /// Goes on where something is damaged, and says what is missing.
    #[serde(default)]
    pub keep_going: bool,
}

/// A directory of the vault as a tar archive; the answer is the archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveRead {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exported {
    pub vfs_path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vfs_path_b64: Option<Base64>,
    pub real_path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub real_path_b64: Option<Base64>,
    pub files_exported: u64,
    pub dirs_created: u64,
    pub total_bytes: u64,
    /// What the host did not take, and why.
    pub skipped: Vec<SkippedItem>,
    /// What of it tools of the host run by themselves.
    pub runs_by_itself: Vec<RunsByItselfItem>,
    /// What is damaged and therefore not there; of a directory, entries of it.
    #[serde(default)]
    pub missing: Vec<SkippedItem>,
}

/// Brings what changed since an import back to where it came from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportChanges {
    /// The absolute directory of the host that was imported.
    pub host_dir: HostPath,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_dir_b64: Option<Base64>,
    /// Where it was imported to; the latest such place when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Only says what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// Also writes what git runs by itself: hooks, and settings that name programs.
    #[serde(default)]
    pub allow_hooks: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedChanges {
    pub vfs_path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vfs_path_b64: Option<Base64>,
    pub real_path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub real_path_b64: Option<Base64>,
    pub files_exported: u64,
    pub files_deleted: u64,
    pub dirs_created: u64,
    pub total_bytes: u64,
    pub dry_run: bool,
    /// What was done, path by path.
    pub changes: Vec<ApplyItem>,
    /// What the host did not take, and why.
    pub skipped: Vec<SkippedItem>,
    /// What of it tools of the host run by themselves.
    pub runs_by_itself: Vec<RunsByItselfItem>,
}

/// A file that a tool of the host runs by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunsByItselfItem {
    /// Relative to the directory on the host.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub why: String,
    /// Whether it is written only with `allow_hooks`.
    pub guarded: bool,
}

/// One path of the host that followed the vault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplyItem {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub action: ApplyWord,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyWord {
    Created,
    Replaced,
    Deleted,
    Mode,
}

/// How far long work is.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ProgressEvent {
    pub files: u64,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total_files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total_bytes: Option<u64>,
}
