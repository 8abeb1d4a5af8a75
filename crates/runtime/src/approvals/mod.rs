//! Approvals: the owner's answer to a command that policy will not let run by itself.
//!
//! `ask.rs` is where a command waits for one, `binding.rs` says what an approval is for, `proof.rs` who may give one,
//! `shown.rs` what the approver sees, `speculate.rs` how a command is tried beforehand.

mod ask;
mod binding;
mod proof;
mod shown;
mod speculate;

use std::time::Duration;

use avfs_vault::{
    Approval, ApprovalAnswer, ApprovalId, ApprovalState, Change, ChangeKind, Time, VaultName,
    pair_renames,
};
use serde_json::{Value, json};

pub(crate) use ask::{Answer, Asking, Grant};
pub(crate) use proof::Attempts;
pub use proof::Proof;
pub use shown::safe;

use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;
use crate::settings::HIDDEN;
use crate::{Error, Result, patch};

/// How long a request waits for an answer.
const WAITS: Duration = Duration::from_secs(24 * 3600);
/// How long an approval can be used, unless something else is said.
pub const APPROVAL_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// The longest that can be said.
const LONGEST_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A request for approval, as it is listed.
#[derive(Debug, Clone)]
pub struct ApprovalInfo {
    pub approval: Approval,
    /// None when the vault is gone.
    pub vault: Option<VaultName>,
    pub speculated: bool,
}

/// What a command did when it was tried.
#[derive(Debug)]
pub struct SpeculationDetails {
    pub outcome: Value,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub changes: Vec<Change>,
    pub patch: String,
}

impl Session {
    /// The requests of one vault or of all, newest first; those that wait, or all that are kept.
    pub fn approval_list(&self, vault: Option<Select>, all: bool) -> Result<Vec<ApprovalInfo>> {
        let vault = match vault {
            Some(select) => Some(self.vault(&select, Verb::Read)?.id),
            None => None,
        };
        let mut approvals = self.inner.vaults.approvals(vault)?;
        approvals.retain(|a| self.sees(a).is_ok());
        approvals.retain(|a| all || a.state == ApprovalState::Pending && !a.is_expired());
        approvals
            .into_iter()
            .map(|a| self.describe_approval(a))
            .collect()
    }

    pub fn approval_show(
        &self,
        id: ApprovalId,
    ) -> Result<(ApprovalInfo, Option<SpeculationDetails>)> {
        let mut approval = self.inner.vaults.approval(id)?;
        self.sees(&approval)?;
        if self.principal().is_agent() {
            hide_values(&mut approval.request);
        }
        let tried = match self.inner.vaults.speculation(id)? {
            None => None,
            Some(tried) => {
                let trees = self.inner.vaults.trees();
                let mut changes = trees.diff(approval.root, tried.root)?;
                changes.retain(|change| change.kind != ChangeKind::Times);
                let changes = pair_renames(changes);
                let mut text = String::new();
                for change in &changes {
                    let old = match &change.kind {
                        ChangeKind::Renamed { from } => from,
                        _ => &change.path,
                    };
                    text += &patch::patch(trees, change, old)?;
                }
                Some(SpeculationDetails {
                    outcome: tried.outcome,
                    stdout: tried.stdout,
                    stderr: tried.stderr,
                    changes,
                    patch: text,
                })
            }
        };
        Ok((self.describe_approval(approval)?, tried))
    }

    /// Lets a request run once, if whoever says so may.
    pub fn approval_approve(
        &self,
        id: ApprovalId,
        proof: &Proof,
        lifetime: Duration,
    ) -> Result<ApprovalInfo> {
        self.govern("an approval")?;
        let proof = self.prove(proof)?;
        if lifetime.is_zero() || lifetime > LONGEST_LIFETIME {
            return Err(Error::Invalid {
                what: "lifetime",
                reason: "an approval can be used for one second up to a day".into(),
            });
        }
        self.answer(id, ApprovalState::Approved, lifetime, proof)
    }

    pub fn approval_deny(&self, id: ApprovalId) -> Result<ApprovalInfo> {
        self.answer(id, ApprovalState::Denied, WAITS, json!({ "kind": "none" }))
    }

    fn answer(
        &self,
        id: ApprovalId,
        state: ApprovalState,
        lifetime: Duration,
        proof: Value,
    ) -> Result<ApprovalInfo> {
        self.govern("an approval")?;
        let answer = ApprovalAnswer {
            state,
            expires: in_seconds(lifetime),
            proof,
            by: self.principal(),
        };
        let approval = self.inner.vaults.answer_approval(id, answer)?;
        self.describe_approval(approval)
    }

    /// Refuses whoever neither asked for it nor can answer.
    pub(crate) fn sees(&self, approval: &Approval) -> Result<()> {
        self.check_exec(approval.exec)
    }

    fn describe_approval(&self, approval: Approval) -> Result<ApprovalInfo> {
        let vault = self.inner.vaults.by_id(approval.vault).ok();
        Ok(ApprovalInfo {
            speculated: self.inner.vaults.speculation(approval.id)?.is_some(),
            vault: vault.map(|vault| vault.name),
            approval,
        })
    }
}

/// Leaves the names of variables alone.
fn hide_values(request: &mut Value) {
    let variables = request["env"].as_array_mut().into_iter().flatten();
    for variable in variables {
        let name = variable.as_str().and_then(|text| text.split_once('='));
        let name = name.map_or("", |(name, _)| name);
        *variable = json!(format!("{name}={HIDDEN}"));
    }
}

fn in_seconds(lifetime: Duration) -> i64 {
    let seconds = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    Time::now().secs.saturating_add(seconds)
}
