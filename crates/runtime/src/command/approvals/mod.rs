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
    Approval, ApprovalAnswer, ApprovalId, ApprovalState, ApprovalVerdict, RootId, Speculation,
    Time, VaultName,
};
use serde_json::{Value, json};

pub(crate) use ask::{Answer, Asking, Grant};
pub use proof::Proof;
pub use shown::{ChangedSince, Shown, safe};

use crate::command::settings::HIDDEN;
use crate::gate::Verb;
use crate::history::changes::{ChangeSet, Patch, each_change};
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

/// How long a request waits for an answer.
const WAITS: Duration = Duration::from_secs(24 * 3600);
/// How long an approval can be used, unless something else is said.
pub const APPROVAL_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// The longest that can be said.
const LONGEST_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// How many changed paths an approver is told.
const MOST_CHANGED: usize = 100;

/// A request for approval, as it is listed.
#[derive(Debug, Clone)]
pub struct ApprovalInfo {
    pub approval: Approval,
    /// None when the vault is gone.
    pub vault: Option<VaultName>,
    /// Whether it waits, and the vault is not as it was when it was asked for, or is gone.
    pub stale: bool,
    pub speculated: bool,
}

/// A request for approval with all that there is to know before answering it.
#[derive(Debug)]
pub struct ApprovalDetails {
    /// With the state that is shown in the place of the one that it was asked for in.
    pub info: ApprovalInfo,
    pub shown: Shown,
    pub tried: Option<SpeculationDetails>,
}

/// What a command did when it was tried.
#[derive(Debug)]
pub struct SpeculationDetails {
    pub outcome: Value,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub changes: ChangeSet,
    pub patch: Patch,
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

    /// All that an approver should see, on the state that the vault is in now.
    pub fn approval_show(&self, id: ApprovalId) -> Result<ApprovalDetails> {
        let approval = self.inner.vaults.approval(id)?;
        self.sees(&approval)?;
        let tried = self.inner.vaults.speculation(id)?;
        let shown = self.shown(&approval, tried.as_ref())?;
        let tried = match tried {
            None => None,
            Some(tried) => Some(self.speculation_details(approval.root, tried)?),
        };
        let mut info = self.describe_approval(approval)?;
        (info.approval.root, info.approval.version) = (shown.root, shown.version);
        if self.principal().is_agent() {
            hide_values(&mut info.approval.request);
        }
        Ok(ApprovalDetails { info, shown, tried })
    }

    /// The state that the vault is in, with what running commands have written, or that was approved already.
    fn shown(&self, approval: &Approval, tried: Option<&Speculation>) -> Result<Shown> {
        let waits = approval.state == ApprovalState::Pending && !approval.is_expired();
        let (root, version) = match waits {
            true => self
                .slot(approval.vault)
                .current(self, |vault| Ok((vault.head, vault.version)))?,
            false => (approval.root, approval.version),
        };
        let trees = self.inner.vaults.trees();
        // The state of then may have been forgotten, and what it refers to collected.
        let mut changed = ChangedSince::default();
        let compared = each_change(trees, approval.root, root, &mut |change| {
            changed.count += 1;
            if changed.paths.len() < MOST_CHANGED {
                changed.paths.push(change.path);
            }
        });
        let changed = compared.ok().map(|()| changed);
        Ok(Shown {
            root,
            version,
            changed,
            fingerprint: shown::fingerprint(approval, (root, version), tried),
        })
    }

    fn speculation_details(&self, base: RootId, tried: Speculation) -> Result<SpeculationDetails> {
        let trees = self.inner.vaults.trees();
        let changes = ChangeSet::between(trees, base, tried.root)?;
        let patch = changes.patch(trees)?;
        Ok(SpeculationDetails {
            outcome: tried.outcome,
            stdout: tried.stdout,
            stderr: tried.stderr,
            changes,
            patch,
        })
    }

    /// Lets a request run once, on the state that was shown, if whoever says so may. `fingerprint` names what was shown;
    /// if something else would be shown now, nothing is approved.
    pub fn approval_approve(
        &self,
        id: ApprovalId,
        fingerprint: &str,
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
        let approval = self.inner.vaults.approval(id)?;
        let shown = self.shown(&approval, self.inner.vaults.speculation(id)?.as_ref())?;
        if approval.state == ApprovalState::Pending && shown.fingerprint != fingerprint {
            return Err(avfs_vault::Error::ApprovalShownOtherwise { id }.into());
        }
        let Shown { root, version, .. } = shown;
        self.answer(
            id,
            ApprovalVerdict::Approve { root, version },
            lifetime,
            proof,
        )
    }

    pub fn approval_deny(&self, id: ApprovalId) -> Result<ApprovalInfo> {
        self.answer(id, ApprovalVerdict::Deny, WAITS, json!({ "kind": "none" }))
    }

    fn answer(
        &self,
        id: ApprovalId,
        verdict: ApprovalVerdict,
        lifetime: Duration,
        proof: Value,
    ) -> Result<ApprovalInfo> {
        self.govern("an approval")?;
        let answer = ApprovalAnswer {
            verdict,
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
            stale: approval.state == ApprovalState::Pending
                && vault
                    .as_ref()
                    .is_none_or(|vault| vault.head != approval.root),
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
