//! Versions of paths: listing them, and restoring one.

use super::Base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lists the versions of a path, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathLog {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// At most so many.
    #[serde(default = "super::VaultLog::default_limit")]
    pub limit: usize,
    /// Only versions before this one: `next_cursor` of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<u64>,
}

/// The answer to [`PathLog`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PathVersionListing {
    /// The newest first.
    pub versions: Vec<PathVersionItem>,
    /// The cursor of the next page; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<u64>,
}

/// A version that changed a path, newest first in a log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PathVersionItem {
    /// Its number.
    pub version: u64,
    /// Size of the path in that version.
    pub size: u64,
    /// When it was made, as RFC 3339.
    pub created_at: String,
    /// The first 16 hex digits of the content's id; empty if there is none.
    pub hash: String,
    /// Whether that version removed the path.
    pub removed: bool,
    /// What made it: a file verb, an exec, a restore…
    pub cause: String,
    /// Who did it: `owner`, `agent`, `agent:NAME` or `system`.
    pub by: String,
    /// The exec that made it.
    pub exec: Option<String>,
}

/// Gives a path the content that it had in an earlier version.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Checkout {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The version that the content is from.
    pub version: u64,
}

/// The answer to [`Checkout`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckedOut {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The version that the content is from.
    pub restored_version: u64,
    /// The version that this made.
    pub new_version: u64,
}

/// Gives a path the content that it had before its last change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Revert {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

/// The answer to [`Revert`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reverted {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The version whose change of the path was undone.
    pub reverted_from: u64,
    /// The version with the restored state of the path.
    pub reverted_to: u64,
    /// The version that this made.
    pub new_version: u64,
}
