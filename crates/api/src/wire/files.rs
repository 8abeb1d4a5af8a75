//! Files in a vault: reading and changing them.

use super::{Base64, TypeWord};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ls {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Only names after this one: the last of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after_b64: Option<Base64>,
    /// How many at most. Default and maximum: 10,000.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<usize>,
}

/// Names in a directory, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listing {
    pub entries: Vec<ListedEntry>,
    /// Whether there are more names.
    pub more: bool,
}

/// One name in a directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListedEntry {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name_b64: Option<Base64>,
    #[serde(rename = "type")]
    pub kind: TypeWord,
    /// Bytes of a file, of a link's target, or of everything below a directory.
    pub size: u64,
    pub modified: String,
    /// Permission bits in octal.
    pub mode: String,
    pub uid: u32,
    pub gid: u32,
    /// How many files are below a directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cat {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The vault's version to read. Default: the newest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<u64>,
    /// The first byte wanted.
    #[serde(default)]
    pub offset: u64,
    /// How many bytes at most. Default and maximum: 1 MiB. [`ReadContent`] has no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
}

/// A file's content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileBody {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_b64: Option<Base64>,
    /// Size of the whole file.
    pub size: u64,
    /// The offset of the content in the file.
    #[serde(default)]
    pub offset: u64,
    /// Whether the file has more after the content.
    #[serde(default)]
    pub more: bool,
    /// How to get the rest, if there is more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// The vault's version that was read.
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    #[serde(default)]
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_b64: Option<Base64>,
    #[serde(default)]
    pub append: bool,
    /// Creates missing parent directories.
    #[serde(default)]
    pub parents: bool,
    /// The mode, octal or symbolic.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<String>,
}

/// Reads a file of any size; the answer is its content.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadContent {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The vault's version to read. Default: the newest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<u64>,
    /// The first byte wanted.
    #[serde(default)]
    pub offset: u64,
    /// How many bytes at most. Default: all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
}

/// Writes a file of any size; the body is its content.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteContent {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    #[serde(default)]
    pub append: bool,
    /// Creates missing parent directories.
    #[serde(default)]
    pub parents: bool,
    /// The mode, octal or symbolic.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Written {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The new size of the file.
    pub size: u64,
    pub appended: bool,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mkdir {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Creates missing parents, and accepts an existing directory.
    #[serde(default)]
    pub parents: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MadeDirectory {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub created: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rm {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    #[serde(default)]
    pub recursive: bool,
    /// A missing path is not an error.
    #[serde(default)]
    pub force: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Removed {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub removed: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mv {
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_b64: Option<Base64>,
    pub destination: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_b64: Option<Base64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moved {
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_b64: Option<Base64>,
    /// The new path.
    pub destination: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_b64: Option<Base64>,
    pub moved: bool,
}
