//! Versions of paths: listing them, and restoring one.

use super::Base64;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathLog {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    #[serde(default = "super::VaultLog::default_limit")]
    pub limit: usize,
}

/// A version that changed a path, newest first in a log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PathVersionItem {
    pub version: u64,
    /// Size of the path in that version.
    pub size: u64,
    pub created_at: String,
    /// The first 16 hex digits of the content's id; empty if there is none.
    pub hash: String,
    /// Whether that version removed the path.
    pub removed: bool,
    pub cause: String,
    pub by: String,
    pub exec: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkout {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckedOut {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub restored_version: u64,
    pub new_version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revert {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reverted {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The version whose change of the path was undone.
    pub reverted_from: u64,
    /// The version with the restored state of the path.
    pub reverted_to: u64,
    pub new_version: u64,
}
