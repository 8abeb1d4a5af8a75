//! Differences between two states of a vault.

use super::Base64;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diff {
    /// `BASE`, `HEAD`, `vN`, `vault:NAME` or a checkpoint's name.
    #[serde(default = "Diff::default_from")]
    pub from: String,
    #[serde(default = "Diff::default_to")]
    pub to: String,
    /// Only this path and what is below it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The path in the later state, if it differs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path2: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path2_b64: Option<Base64>,
    /// Adds a unified diff.
    #[serde(default)]
    pub patch: bool,
    /// Adds the numbers of added and removed lines.
    #[serde(default)]
    pub stat: bool,
}

impl Default for Diff {
    fn default() -> Diff {
        Diff {
            from: Diff::default_from(),
            to: Diff::default_to(),
            path: None,
            path_b64: None,
            path2: None,
            path2_b64: None,
            patch: false,
            stat: false,
        }
    }
}

impl Diff {
    fn default_from() -> String {
        "BASE".into()
    }

    fn default_to() -> String {
        "HEAD".into()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiffReport {
    pub from: String,
    pub to: String,
    pub identical: bool,
    pub changes: Vec<ChangeItem>,
    /// Whether the list is cut at 10,000.
    #[serde(default)]
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub patch: Option<String>,
    /// Whether the patch is cut at 2 MiB.
    #[serde(skip_serializing_if = "super::exec::is_false", default)]
    pub patch_truncated: bool,
    /// The lines, if the difference is of one file.
    #[serde(flatten, skip_serializing_if = "Option::is_none", default)]
    pub file: Option<FileDiffItem>,
}

/// The difference of one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileDiffItem {
    pub path1: String,
    pub path2: String,
    /// The compared versions, if the states are versions.
    pub version1: Option<u64>,
    pub version2: Option<u64>,
    /// Whether it is binary.
    pub binary: bool,
    pub diff: Vec<DiffLineItem>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiffLineItem {
    pub line_type: LineWord,
    /// The line number: in the earlier state for a removed line, else in the later one.
    pub line_num: u32,
    pub content: String,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineWord {
    Add,
    Remove,
    Context,
}

/// One path that differs, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeItem {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub kind: ChangeWord,
    /// The old name, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_b64: Option<Base64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<EntryItem>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<EntryItem>,
    /// Added lines, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub additions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deletions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub binary: Option<bool>,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeWord {
    Created,
    Deleted,
    Modified,
    Mode,
    Xattrs,
    Times,
    Renamed,
}

/// The state of a path.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct EntryItem {
    #[serde(rename = "type")]
    pub kind: TypeWord,
    /// Bytes of a file, of a link's target, or of everything below a directory.
    pub size: u64,
    /// Permission bits in octal.
    pub mode: String,
    /// Identifies a file's content: BLAKE3 of its bytes, or of the part list of a large file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeWord {
    File,
    Directory,
    Symlink,
    Fifo,
}
