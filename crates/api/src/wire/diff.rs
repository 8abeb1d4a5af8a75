//! What changed between two states of a vault.

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
    /// Adds the text of the changes in unified form.
    #[serde(default)]
    pub patch: bool,
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
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub patch: Option<String>,
}

/// One path that differs, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeItem {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub kind: ChangeWord,
    /// The former name of something renamed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_b64: Option<Base64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<EntryItem>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<EntryItem>,
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

/// What a path was or is.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct EntryItem {
    #[serde(rename = "type")]
    pub kind: TypeWord,
    /// Bytes of a file, of a link's target, or of everything below a directory.
    pub size: u64,
    /// Permission bits in octal.
    pub mode: String,
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
