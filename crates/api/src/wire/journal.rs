//! The journal: what happened, in order, and whether its chain is whole.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// Only what concerns this vault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vault: Option<String>,
    /// Only what this exec did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exec: Option<String>,
    /// Only what was done in this name: `owner`, `agent` or `system`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub principal: Option<String>,
    /// Only commands that policy decided on so: `allow`, `allow_with_checkpoint`,
    /// `require_approval` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decision: Option<String>,
    /// Only this operation, or all of a kind: `vault` is `vault.create`, `vault.fork`…
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operation: Option<String>,
    /// Only what names this path, or one beneath it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// Only from then on: RFC 3339, a date, seconds since 1970, or an age such as `2h`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<String>,
    /// Only entries with a larger id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<u64>,
    /// At most so many, and at most 1,000.
    #[serde(default = "Journal::default_limit")]
    pub limit: usize,
    /// The oldest first, instead of the newest.
    #[serde(default)]
    pub oldest_first: bool,
}

impl Journal {
    fn default_limit() -> usize {
        50
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JournalListing {
    /// Newest first, unless it was asked otherwise.
    pub entries: Vec<JournalItem>,
    /// How many are listed.
    pub total_count: usize,
    /// Whether fewer are listed than were asked for: one answer holds 1,000.
    #[serde(default)]
    pub truncated: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JournalItem {
    pub id: u64,
    pub timestamp: String,
    pub operation: String,
    /// The name of the vault concerned; null when it is gone or none was.
    pub vault: Option<String>,
    pub vault_id: Option<String>,
    pub exec: Option<String>,
    pub by: String,
    pub path: Option<String>,
    pub details: serde_json::Value,
    /// The entry's place in the chain, in hex.
    pub hash: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalVerify {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JournalVerified {
    pub valid: bool,
    /// How many were checked.
    pub entries: u64,
    /// What is wrong, and at which entry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}
