//! Approvals: waiting commands, and the owner's answer.

use super::ChangeItem;
use serde::{Deserialize, Serialize};

/// Sets the passphrase for approvals.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalSetup {
    pub passphrase: String,
    /// The current passphrase, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub old: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalReady {
    pub set_up: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalList {
    /// Only those of this vault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vault: Option<String>,
    /// Include requests that were answered or have expired.
    #[serde(default)]
    pub all: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalListing {
    /// Newest first.
    pub approvals: Vec<ApprovalItem>,
    /// Whether a passphrase is set.
    pub set_up: bool,
}

/// A request for approval. All text of the command is escaped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalItem {
    pub id: String,
    pub vault: Option<String>,
    /// `pending`, `approved`, `denied`, `used` or `expired`.
    pub state: String,
    /// `argv`: one line per argument; `shell`: the text's lines.
    pub kind: String,
    pub lines: Vec<String>,
    pub cwd: String,
    pub env: Vec<String>,
    pub network: String,
    /// `namespace`, or `process`, which has no isolation.
    pub driver: String,
    /// Its limits and other options.
    pub terms: Vec<String>,
    pub categories: Vec<String>,
    pub rule: String,
    pub reason: Option<String>,
    pub asked: String,
    pub expires: String,
    /// The exec that asked.
    pub exec: String,
    /// The state of the vault that it is for. While it waits: in a list, the state at the request; when it is shown, the
    /// current one.
    pub root: String,
    pub version: u64,
    pub speculated: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalShow {
    pub id: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalDetails {
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TriedItem {
    /// Its isolation.
    pub driver: String,
    pub network: String,
    pub outcome: serde_json::Value,
    /// Escaped, like all output of the command.
    pub stdout: String,
    pub stderr: String,
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

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalApprove {
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

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDeny {
    pub id: String,
}
