//! Tags and metadata of paths.

use super::Base64;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tag {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub tag: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Untag {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub tag: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tagged {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub tag: String,
    /// `added` or `removed`.
    pub action: String,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagList {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TagListing {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagListAll {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AllTags {
    pub count: usize,
    pub tags: Vec<TagItem>,
}

/// A tag and how many paths have it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TagItem {
    pub name: String,
    pub file_count: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagDelete {
    pub tag: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TagDeleted {
    pub tag: String,
    /// Always `deleted`.
    pub action: String,
    /// How many paths had it.
    pub file_count: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagRename {
    pub old_name: String,
    pub new_name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TagRenamed {
    pub old_name: String,
    pub new_name: String,
    /// Always `renamed`.
    pub action: String,
    /// How many paths have it.
    pub file_count: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetaList {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MetaListing {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetaGet {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub key: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MetaValue {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetaSet {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetaDelete {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub key: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MetaChanged {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub key: String,
    /// The new value; null if it was deleted.
    pub value: Option<String>,
    /// `set` or `deleted`.
    pub action: String,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetaImport {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Other keys are kept.
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MetaImported {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub imported: usize,
    /// Always `imported`.
    pub action: String,
    pub version: u64,
}
