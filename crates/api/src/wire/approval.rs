//! Approvals: waiting commands, and the owner's answer.

use super::ChangeItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Sets the passphrase for approvals.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalSetup {
    /// The new one.
    pub passphrase: String,
    /// The current passphrase, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub old: Option<String>,
}

/// The answer to [`ApprovalSetup`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalReady {
    /// Whether there is a passphrase now.
    pub set_up: bool,
}

/// Lists commands that wait for approval.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalList {
    /// Only those of this vault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vault: Option<String>,
    /// Include requests that were answered or have expired.
    #[serde(default)]
    pub all: bool,
    /// How many at most. Default: all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<NonZeroUsize>,
    /// Only what follows: `next_cursor` of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<String>,
}

/// The answer to [`ApprovalList`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalListing {
    /// Newest first.
    pub approvals: Vec<ApprovalItem>,
    /// Where the next page begins; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
    /// Whether a passphrase is set.
    pub set_up: bool,
}

/// A request for approval. All text of the command is escaped.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalItem {
    /// Its id.
    pub id: String,
    /// The vault; null when it is gone.
    pub vault: Option<String>,
    /// `pending`, `approved`, `denied`, `used` or `expired`.
    pub state: String,
    /// `argv`: one line per argument; `shell`: the text's lines.
    pub kind: String,
    /// The command.
    pub lines: Vec<String>,
    /// The directory in the vault that the command runs in.
    pub cwd: String,
    /// Variables of its environment, as `NAME=value`.
    pub env: Vec<String>,
    /// What it can reach.
    pub network: String,
    /// `namespace`, or `process`, which has no isolation.
    pub driver: String,
    /// Its limits and other options.
    pub terms: Vec<String>,
    /// What the command is taken for.
    pub categories: Vec<String>,
    /// The rule that wants it approved.
    pub rule: String,
    /// The narrowest rule that would let such a command run without approval. Not escaped: text for a file of rules.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub smallest_rule: Option<String>,
    /// Whether it waits, and the vault has changed since it was asked for, or is gone.
    #[serde(default)]
    pub stale: bool,
    /// Why.
    pub reason: Option<String>,
    /// When it was asked for, as RFC 3339.
    pub asked: String,
    /// When the request, or the approval, ends.
    pub expires: String,
    /// The exec that asked.
    pub exec: String,
    /// The state of the vault that it is for. While it waits: in a list, the state at the request; when it is shown, the
    /// current one.
    pub root: String,
    /// The vault's version of that state.
    pub version: u64,
    /// Whether the command was tried.
    pub speculated: bool,
}

/// Shows exactly what a request for approval would run, and on which state.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalShow {
    /// Its id.
    pub id: String,
}

/// The answer to [`ApprovalShow`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalDetails {
    /// What a list says of it.
    #[serde(flatten)]
    pub approval: ApprovalItem,
    /// The fingerprint of everything shown here; `approve` sends it back.
    pub shown: String,
    /// The first paths of the vault that changed since the request, escaped. Null if that is not known any more.
    pub changed_since_asked: Option<Vec<String>>,
    /// How many there are.
    pub changed_since_asked_count: u64,
    /// The result of a speculative run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speculation: Option<TriedItem>,
}

/// The result of a command in a temporary fork, in the namespace sandbox and without network. Approving makes exactly this
/// the vault's state.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TriedItem {
    /// Its isolation.
    pub driver: String,
    /// What it can reach.
    pub network: String,
    /// How it ended.
    pub outcome: serde_json::Value,
    /// Escaped, like all output of the command.
    pub stdout: String,
    /// Escaped, like all that the command wrote.
    pub stderr: String,
    /// What differs, path by path.
    pub changes: Vec<ChangeItem>,
    /// How many paths differ; a rename counts with both its names.
    #[serde(default)]
    pub changes_total: u64,
    /// Whether the list is cut: one answer has 10,000. `avfs diff` has the rest.
    #[serde(default)]
    pub changes_truncated: bool,
    /// The changes as a unified diff, escaped line by line.
    pub patch: Vec<String>,
    /// Whether the patch is cut.
    #[serde(default)]
    pub patch_truncated: bool,
}

/// Approves a command, once.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalApprove {
    /// Its id.
    pub id: String,
    /// The fingerprint from `approval_show`. If it is no longer current, nothing is approved.
    pub shown: String,
    /// Needed unless the caller is another user.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passphrase: Option<String>,
    /// How long it is valid. Default: fifteen minutes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lifetime_ms: Option<u64>,
}

/// Refuses a command.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDeny {
    /// Its id.
    pub id: String,
}
