//! Single paths of a vault: attributes, copies, links, modes, times and edits.

use super::{Base64, TypeWord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stat {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

/// The attributes of one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatItem {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    #[serde(rename = "type")]
    pub kind: TypeWord,
    /// Bytes of a file, of a link's target, or of everything below a directory.
    pub size: u64,
    /// Permission bits in octal.
    pub mode: String,
    pub uid: u32,
    pub gid: u32,
    pub modified: String,
    /// The ctime.
    pub changed: String,
    /// Identifies a file's content; equal content has equal ids.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_id: Option<String>,
    /// How many files are below a directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
    pub nlink: usize,
    /// All names of a hard-linked file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub names: Vec<String>,
    pub tags: Vec<String>,
    pub metadata: BTreeMap<String, String>,
    /// The vault's version that was read.
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cp {
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_b64: Option<Base64>,
    pub destination: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_b64: Option<Base64>,
    #[serde(default)]
    pub recursive: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Copied {
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_b64: Option<Base64>,
    /// The new path.
    pub destination: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_b64: Option<Base64>,
    pub copied: bool,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ln {
    /// The existing file, or the target of a symbolic link.
    pub target: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    #[serde(default)]
    pub symbolic: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Linked {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub target: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
    pub symbolic: bool,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chmod {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Octal, or symbolic such as `u+x,go-w`.
    pub mode: String,
    #[serde(default)]
    pub recursive: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModeChanged {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The new permission bits in octal.
    pub mode: String,
    /// How many paths were changed.
    pub changed: usize,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Touch {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Does not create a missing file.
    #[serde(default)]
    pub no_create: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Touched {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub created: bool,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The exact text to replace.
    pub old: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub old_b64: Option<Base64>,
    pub new: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub new_b64: Option<Base64>,
    /// Replaces every occurrence; otherwise there must be exactly one.
    #[serde(default)]
    pub all: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Edited {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub replacements: usize,
    pub size: u64,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// How many levels. Default: all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub level: Option<usize>,
}

/// A directory and everything below it, as a flat list, so that JSON nesting does not grow with the depth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TreeListing {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The path itself first, every directory before its entries.
    pub entries: Vec<TreeEntry>,
    /// Whether the list is cut at 10,000.
    #[serde(default)]
    pub truncated: bool,
    pub files: usize,
    pub directories: usize,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TreeEntry {
    pub depth: usize,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name_b64: Option<Base64>,
    #[serde(rename = "type")]
    pub kind: TypeWord,
    pub size: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
}
