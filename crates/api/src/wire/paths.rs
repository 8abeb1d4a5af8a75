//! Single paths of a vault: attributes, copies, links, modes, times and edits.

use super::{Base64, EntryAttributes, TypeWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Describes a path: type, size, mode, owner, times, labels.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stat {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

/// The attributes of one path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatItem {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What it is.
    #[serde(flatten)]
    pub attributes: EntryAttributes,
    /// The ctime.
    pub changed: String,
    /// Identifies a file's content; equal content has equal ids.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_id: Option<String>,
    /// How many names it has.
    pub nlink: usize,
    /// All names of a hard-linked file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub names: Vec<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The metadata.
    pub metadata: BTreeMap<String, String>,
    /// The vault's version that was read.
    pub version: u64,
}

/// Copies a file or a directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cp {
    /// What is moved or copied.
    pub source: String,
    /// The exact bytes of `source`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_b64: Option<Base64>,
    /// Where it goes.
    pub destination: String,
    /// The exact bytes of `destination`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_b64: Option<Base64>,
    /// Also all below a directory.
    #[serde(default)]
    pub recursive: bool,
}

/// The answer to [`Cp`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Copied {
    /// What is moved or copied.
    pub source: String,
    /// The exact bytes of `source`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_b64: Option<Base64>,
    /// The new path.
    pub destination: String,
    /// The exact bytes of `destination`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_b64: Option<Base64>,
    /// Always true.
    pub copied: bool,
    /// The vault's version.
    pub version: u64,
}

/// Makes a hard or symbolic link.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ln {
    /// The existing file, or the target of a symbolic link.
    pub target: String,
    /// The exact bytes of `target`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
    /// The new name.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Makes a symbolic link.
    #[serde(default)]
    pub symbolic: bool,
}

/// The answer to [`Ln`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Linked {
    /// The new name.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What a symbolic link holds.
    pub target: String,
    /// The exact bytes of `target`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
    /// Whether it is a symbolic link.
    pub symbolic: bool,
    /// The vault's version.
    pub version: u64,
}

/// Changes the mode of a path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chmod {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Octal, or symbolic such as `u+x,go-w`.
    pub mode: String,
    /// Also all below a directory.
    #[serde(default)]
    pub recursive: bool,
}

/// The answer to [`Chmod`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModeChanged {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The new permission bits in octal.
    pub mode: String,
    /// How many paths were changed.
    pub changed: usize,
    /// The vault's version.
    pub version: u64,
}

/// Sets a path's times to now; creates an empty file if there is none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Touch {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Does not create a missing file.
    #[serde(default)]
    pub no_create: bool,
}

/// The answer to [`Touch`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Touched {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Whether it was made now.
    pub created: bool,
    /// The vault's version.
    pub version: u64,
}

/// Replaces text in a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The exact text to replace.
    pub old: String,
    /// The exact bytes of `old`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub old_b64: Option<Base64>,
    /// What takes its place.
    pub new: String,
    /// The exact bytes of `new`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub new_b64: Option<Base64>,
    /// Replaces every occurrence; otherwise there must be exactly one.
    #[serde(default)]
    pub all: bool,
}

/// The answer to [`Edit`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Edited {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// How many places were changed.
    pub replacements: usize,
    /// Bytes of the file as it is now.
    pub size: u64,
    /// The vault's version.
    pub version: u64,
}

/// Lists a directory and everything below it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// How many levels. Default: all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub level: Option<usize>,
}

/// A directory and everything below it, as a flat list, so that JSON nesting does not grow with the depth.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TreeListing {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The path itself first, every directory before its entries.
    pub entries: Vec<TreeEntry>,
    /// Whether the list is cut at 10,000.
    #[serde(default)]
    pub truncated: bool,
    /// How many files.
    pub files: usize,
    /// How many directories.
    pub directories: usize,
    /// The vault's version.
    pub version: u64,
}

/// One entry of a tree.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TreeEntry {
    /// How many levels below the path.
    pub depth: usize,
    /// Its name.
    pub name: String,
    /// The exact bytes of `name`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name_b64: Option<Base64>,
    /// Which type it has.
    #[serde(rename = "type")]
    pub kind: TypeWord,
    /// Bytes of a file, of a link's target, or of everything below a directory.
    pub size: u64,
    /// What a symbolic link holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// The exact bytes of `target`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
}
