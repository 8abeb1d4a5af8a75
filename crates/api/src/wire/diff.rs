//! Differences between two states of a vault.

use super::Base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Compares two states of a vault, or of two vaults.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diff {
    /// `BASE`, `HEAD`, `vN`, `vault:NAME` or a checkpoint's name.
    #[serde(default = "Diff::default_from")]
    pub from: String,
    /// The state after, said in the same way.
    #[serde(default = "Diff::default_to")]
    pub to: String,
    /// Only this path and what is below it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The path in the later state, if it differs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path2: Option<String>,
    /// The exact bytes of `path2`, where it is not UTF-8.
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

/// The answer to [`Diff`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiffReport {
    /// The state before.
    pub from: String,
    /// The state after.
    pub to: String,
    /// Whether nothing differs.
    pub identical: bool,
    /// What differs, path by path.
    pub changes: Vec<ChangeItem>,
    /// Whether the list is cut at 10,000.
    #[serde(default)]
    pub truncated: bool,
    /// The changes in unified form.
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FileDiffItem {
    /// The path before.
    pub path1: String,
    /// The path after.
    pub path2: String,
    /// The compared versions, if the states are versions.
    pub version1: Option<u64>,
    /// The vault's version after, where the state is a version.
    pub version2: Option<u64>,
    /// Whether it is binary.
    pub binary: bool,
    /// The lines.
    pub diff: Vec<DiffLineItem>,
}

/// A line of a difference.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiffLineItem {
    /// Whether it came, went or stayed.
    pub line_type: LineWord,
    /// The line number: in the earlier state for a removed line, else in the later one.
    pub line_num: u32,
    /// The line.
    pub content: String,
}

/// Where a line is.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineWord {
    /// It is only after.
    Add,
    /// It is only before.
    Remove,
    /// It is in both.
    Context,
}

/// One path that differs, and how.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeItem {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// How it differs.
    pub kind: ChangeWord,
    /// The old name, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// The exact bytes of `from`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_b64: Option<Base64>,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<EntryItem>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<EntryItem>,
    /// Added lines, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub additions: Option<u32>,
    /// Lines that went; none when nobody asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deletions: Option<u32>,
    /// Whether there are no lines to show; none when nobody asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub binary: Option<bool>,
}

/// How a path differs.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeWord {
    /// It was not there before.
    Created,
    /// It is not there any more.
    Deleted,
    /// Its content or type differs.
    Modified,
    /// Only its mode differs.
    Mode,
    /// Only its extended attributes differ.
    Xattrs,
    /// Only its times differ.
    Times,
    /// It had another name.
    Renamed,
}

/// The state of a path.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntryItem {
    /// Which type it has.
    #[serde(rename = "type")]
    pub kind: TypeWord,
    /// Bytes of a file, of a link's target, or of everything below a directory.
    pub size: u64,
    /// Permission bits in octal.
    pub mode: String,
    /// Identifies a file's content: BLAKE3 of its bytes, or of the part list of a large file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hash: Option<String>,
    /// What a symbolic link holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// The exact bytes of `target`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
}

/// What a path is.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TypeWord {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO.
    Fifo,
}
