//! Approvals: what waits for the owner, and the owner's answer.

use super::ChangeItem;
use serde::{Deserialize, Serialize};

/// Sets the passphrase with which the owner approves.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalSetup {
    pub passphrase: String,
    /// The one that is set up already.
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
    /// Also those that were answered or have expired.
    #[serde(default)]
    pub all: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalListing {
    /// Newest first.
    pub approvals: Vec<ApprovalItem>,
    /// Whether there is a passphrase to approve with.
    pub set_up: bool,
}

/// A request for approval. All text from the command is escaped so that it is what it looks like.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalItem {
    pub id: String,
    pub vault: Option<String>,
    /// `pending`, `approved`, `denied`, `used` or `expired`.
    pub state: String,
    /// `argv`: one line per word; `shell`: the text's lines.
    pub kind: String,
    pub lines: Vec<String>,
    pub cwd: String,
    pub env: Vec<String>,
    pub network: String,
    /// What holds it: `namespace`, or `process`, which is nothing.
    pub driver: String,
    /// Its limits, and what else it was asked for with.
    pub terms: Vec<String>,
    pub categories: Vec<String>,
    pub rule: String,
    pub reason: Option<String>,
    pub asked: String,
    pub expires: String,
    /// The exec that asked.
    pub exec: String,
    /// The state of the vault that it is for. While it waits: in the list, the one that it was asked for in; where it is
    /// shown, the present one.
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
    /// Names all that is shown here; an approval gives it back.
    pub shown: String,
    /// Paths of the vault that changed since the command was asked for, escaped; the first of them. Null if that is not
    /// known any more.
    pub changed_since_asked: Option<Vec<String>>,
    /// How many there are.
    pub changed_since_asked_count: u64,
    /// What the command did when it was tried.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speculation: Option<TriedItem>,
}

/// What a command did in a throwaway fork, in the namespace sandbox and without network; publishing it makes exactly
/// this the vault's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TriedItem {
    /// What held it while it was tried.
    pub driver: String,
    pub network: String,
    pub outcome: serde_json::Value,
    /// Escaped, like all that the command wrote.
    pub stdout: String,
    pub stderr: String,
    pub changes: Vec<ChangeItem>,
    /// How many paths differ; a rename counts with both its names.
    #[serde(default)]
    pub changes_total: u64,
    /// Whether there are more than are listed: one answer has 10,000 of them. `avfs diff` has the rest.
    #[serde(default)]
    pub changes_truncated: bool,
    /// The changes in unified form, escaped line by line.
    pub patch: Vec<String>,
    /// Whether the patch ends before the last change.
    #[serde(default)]
    pub patch_truncated: bool,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalApprove {
    pub id: String,
    /// What `approval_show` called all that it showed. If it would show something else now, nothing is approved.
    pub shown: String,
    /// Needed unless another user asks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passphrase: Option<String>,
    /// How long it can be used. Left out: fifteen minutes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lifetime_ms: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDeny {
    pub id: String,
}
