//! Tags and metadata of paths.

use super::Base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds a tag to a path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tag {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The tag.
    pub tag: String,
}

/// Removes a tag from a path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Untag {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The tag.
    pub tag: String,
}

/// The answer to [`Tag`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tagged {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The tag.
    pub tag: String,
    /// `added` or `removed`.
    pub action: String,
    /// The vault's version.
    pub version: u64,
}

/// Lists the tags of a path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagList {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

/// The answer to [`TagList`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TagListing {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The tags.
    pub tags: Vec<String>,
}

/// Lists all tags of a vault.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagListAll {}

/// The answer to [`TagListAll`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AllTags {
    /// How many there are.
    pub count: usize,
    /// Each tag.
    pub tags: Vec<TagItem>,
}

/// A tag and how many paths have it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TagItem {
    /// Its name.
    pub name: String,
    /// How many paths have it.
    pub file_count: usize,
}

/// Removes a tag from every path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagDelete {
    /// The tag.
    pub tag: String,
}

/// The answer to [`TagDelete`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TagDeleted {
    /// The tag.
    pub tag: String,
    /// Always `deleted`.
    pub action: String,
    /// How many paths had it.
    pub file_count: usize,
}

/// Renames a tag on every path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagRename {
    /// The tag.
    pub old_name: String,
    /// What it is to be called.
    pub new_name: String,
}

/// The answer to [`TagRename`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TagRenamed {
    /// What it was called.
    pub old_name: String,
    /// What it is called.
    pub new_name: String,
    /// Always `renamed`.
    pub action: String,
    /// How many paths have it.
    pub file_count: usize,
}

/// Lists the metadata of a path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetaList {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

/// The answer to [`MetaList`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MetaListing {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The metadata.
    pub metadata: BTreeMap<String, String>,
}

/// Reads one value of a path's metadata.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetaGet {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The key.
    pub key: String,
}

/// The answer to [`MetaGet`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MetaValue {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

/// Sets one value of a path's metadata.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetaSet {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

/// Deletes one value of a path's metadata.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetaDelete {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The key.
    pub key: String,
}

/// The answer to [`MetaSet`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MetaChanged {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The key.
    pub key: String,
    /// The new value; null if it was deleted.
    pub value: Option<String>,
    /// `set` or `deleted`.
    pub action: String,
    /// The vault's version.
    pub version: u64,
}

/// Sets several values of a path's metadata.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetaImport {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Other keys are kept.
    pub metadata: BTreeMap<String, String>,
}

/// The answer to [`MetaImport`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MetaImported {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// How many values were set.
    pub imported: usize,
    /// Always `imported`.
    pub action: String,
    /// The vault's version.
    pub version: u64,
}
