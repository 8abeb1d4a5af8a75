//! API keys: credentials of clients on the network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Creates an API key.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyCreate {
    /// Name of the holder in the journal.
    pub name: String,
    /// `read`, `write`, `run` (or `exec`), `approve`, `admin`.
    pub scopes: Vec<String>,
    /// Patterns of vault names; all vaults when empty.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub vaults: Vec<String>,
    /// Lifetime in seconds; no end when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires_s: Option<u64>,
    /// Requests per second; 1,000 when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate: Option<u32>,
    /// Names its MCP client as an approver: the client's user is asked about commands that need approval.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub asks_user: bool,
    /// Passphrase for approvals, for a key with the scope `approve` or with `asks_user`; it counts only from a terminal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passphrase: Option<String>,
}

/// Lists the API keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyList {}

/// Revokes an API key.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRevoke {
    /// Name of the key.
    pub name: String,
}

/// Replaces the secret of an API key.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRotate {
    /// Name of the key.
    pub name: String,
    /// New lifetime in seconds; the end stays when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires_s: Option<u64>,
    /// The key gets no end.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub forever: bool,
    /// Passphrase for approvals, for a key with the scope `approve` or with `asks_user`; it counts only from a terminal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passphrase: Option<String>,
}

/// A key without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeyItem {
    /// Name of the holder.
    pub name: String,
    /// The public part of the key.
    pub id: String,
    /// `agent` or `owner`.
    pub class: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// Patterns of vault names.
    pub vaults: Vec<String>,
    /// Requests per second.
    pub rate: u32,
    /// Whether the user of its MCP client is asked about commands that need approval.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub asks_user: bool,
    /// When its secret was made.
    pub created_at: String,
    /// When it ends.
    pub expires_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
    /// `active`, `expired` or `revoked`.
    pub state: String,
}

/// The API keys of a home.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeyListing {
    /// In the order in which they were created.
    pub keys: Vec<KeyItem>,
}

/// A new key. Its secret cannot be read again.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct KeyMade {
    /// What its holder sends.
    pub key: String,
    /// The rest about it.
    #[serde(flatten)]
    pub item: KeyItem,
}
