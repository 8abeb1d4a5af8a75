//! The journal: its entries, and whether its hash chain is valid.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lists entries of the journal, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// Only entries about this vault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vault: Option<String>,
    /// Only entries of this exec.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exec: Option<String>,
    /// Only entries of this principal: `owner`, `agent`, `system` or `agent:NAME`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub principal: Option<String>,
    /// Only commands with this decision: `allow`, `allow_with_checkpoint`, `require_approval` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decision: Option<String>,
    /// Only this operation, or a group: `vault` is `vault.create`, `vault.fork`…
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operation: Option<String>,
    /// Only entries about this path, or one below it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// Only entries since then: RFC 3339, a date, seconds since 1970, or an age such as `2h`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since: Option<String>,
    /// Only until then, said in the same way.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<String>,
    /// Only entries with a larger id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<u64>,
    /// How many at most, up to 1,000.
    #[serde(default = "Journal::default_limit")]
    pub limit: usize,
    /// The oldest first, instead of the newest.
    #[serde(default)]
    pub oldest_first: bool,
}

impl Default for Journal {
    fn default() -> Journal {
        Journal {
            vault: None,
            exec: None,
            principal: None,
            decision: None,
            operation: None,
            path: None,
            since: None,
            until: None,
            after: None,
            limit: Journal::default_limit(),
            oldest_first: false,
        }
    }
}

impl Journal {
    fn default_limit() -> usize {
        50
    }
}

/// The answer to [`Journal`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JournalListing {
    /// Newest first, unless requested otherwise.
    pub entries: Vec<JournalItem>,
    /// How many are listed.
    pub total_count: usize,
    /// Whether fewer are listed than requested: one answer has 1,000.
    #[serde(default)]
    pub truncated: bool,
}

/// One entry of the journal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JournalItem {
    /// Its id.
    pub id: u64,
    /// When it happened, as RFC 3339.
    pub timestamp: String,
    /// What was done.
    pub operation: String,
    /// The name of the vault; null if it was deleted or there is none.
    pub vault: Option<String>,
    /// The id of that vault.
    pub vault_id: Option<String>,
    /// The exec that did it.
    pub exec: Option<String>,
    /// Who did it: `owner`, `agent`, `agent:NAME` or `system`.
    pub by: String,
    /// The path that it was about.
    pub path: Option<String>,
    /// What else there is to say.
    pub details: serde_json::Value,
    /// The entry's hash, in hex.
    pub hash: String,
}

/// Checks the hash chain of the journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JournalVerify {}

/// The answer to [`JournalVerify`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JournalVerified {
    /// Whether the chain is whole.
    pub valid: bool,
    /// How many were checked.
    pub entries: u64,
    /// What is wrong, and at which entry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}
