//! A command that somebody must approve: it asks, waits, or brings an approval along.

use std::time::Duration;

use avfs_policy::Decision;
use avfs_vault::{
    Approval, ApprovalId, ApprovalState, ApprovalUse, Error as VaultError, JournalEvent,
    NewApproval, NewJournalEntry, Unfit,
};
use serde_json::json;

use super::speculate::Tried;
use super::{WAITS, binding, in_seconds, shown};
use crate::bounds::head_of;
use crate::command::call::Call;
use crate::command::exec::{Admission, Alone, Permitted};
use crate::command::options::Approving;
use crate::command::report::{ApprovalReport, ExecReport, ExecStatus, Timings};
use crate::command::run::OutputSink;
use crate::{Error, Result};

/// How often somebody who waits looks whether there is an answer.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A command that policy will not let run by itself.
pub(crate) struct Asking {
    pub call: Call,
    pub decision: Decision,
    pub timings: Timings,
}

/// What came of asking.
pub(crate) enum Answer {
    Granted(Box<Permitted>),
    Reported(Box<ExecReport>),
}

/// An approval that is used when the command begins.
pub(crate) struct Grant {
    pub id: ApprovalId,
    pub using: ApprovalUse,
}

impl Asking {
    pub fn answer(self, sink: &dyn OutputSink) -> Result<Answer> {
        match self.call.request.options.approving {
            Approving::Use(id) => self.bring(id),
            Approving::Ask => self.ask(),
            Approving::Wait => self.wait(sink),
            Approving::Speculate => self.speculate(sink),
        }
    }

    /// Goes on with an approval that was given before.
    fn bring(self, id: ApprovalId) -> Result<Answer> {
        let binding = match binding::binding(&self.call) {
            Ok(binding) => binding,
            Err(error) => return self.pending(Err(error)),
        };
        let grant = self.grant(id, binding);
        if let Some(tried) = self.call.runtime.inner.vaults.speculation(id)? {
            return self.publish(grant, tried);
        }
        Ok(self.granted(grant))
    }

    fn ask(self) -> Result<Answer> {
        let asked = self.request(None);
        self.pending(asked)
    }

    fn wait(self, sink: &dyn OutputSink) -> Result<Answer> {
        let approval = match self.request(None) {
            Ok(approval) => approval,
            refused => return self.pending(refused),
        };
        self.call.record(JournalEvent::ExecWaits, &self.decision)?;
        sink.waiting(approval.id);
        let vaults = self.call.runtime.inner.vaults.clone();
        loop {
            let now = vaults.approval(approval.id)?;
            match now.state {
                // For what it would be now: not for what it was when it was asked for.
                ApprovalState::Approved => return self.bring(approval.id),
                ApprovalState::Pending if !now.is_expired() => {}
                ApprovalState::Denied => {
                    return self.report(ExecStatus::Denied, ApprovalReport::Pending(now.id));
                }
                ApprovalState::Pending | ApprovalState::Used => return self.pending(Ok(now)),
            }
            if sink.cancelled().is_some() {
                return self.report(ExecStatus::Cancelled, ApprovalReport::Pending(now.id));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Records the request, for somebody to answer.
    pub(super) fn request(&self, tried: Option<Tried>) -> Result<Approval> {
        let call = &self.call;
        let binding = binding::binding(call)?;
        // What running commands have written by now is part of what is approved.
        let slot = call.runtime.slot(call.vault.id);
        let (root, version) =
            slot.current(&call.runtime, |vault| Ok((vault.head, vault.version)))?;
        if tried.as_ref().is_some_and(|tried| tried.on != root) {
            let vault = call.vault.name.to_string();
            return Err(Error::MovedWhileTried { vault });
        }
        Ok(call.runtime.inner.vaults.request_approval(NewApproval {
            vault: call.vault.id,
            exec: call.exec,
            root,
            version,
            binding,
            request: shown::request(call, &self.decision),
            expires: in_seconds(WAITS),
            speculation: tried.map(|tried| tried.left),
            by: call.by(),
        })?)
    }

    /// Tells whom to ask, or why nobody can be asked.
    pub(super) fn pending(self, asked: Result<Approval>) -> Result<Answer> {
        let approval = match asked {
            Ok(approval) => ApprovalReport::Pending(approval.id),
            Err(error) => match &error {
                Error::CannotBind { .. } | Error::Vault(VaultError::TooManyApprovals { .. }) => {
                    ApprovalReport::Refused {
                        reason: error.to_string(),
                        hint: error.hint(),
                    }
                }
                _ => return Err(error),
            },
        };
        self.report(ExecStatus::NeedsApproval, approval)
    }

    /// The report of a command whose approval is not for it, or not any more.
    pub fn unfit(self, error: Error) -> Result<ExecReport> {
        let status = match &error {
            Error::Vault(VaultError::ApprovalUnfit {
                reason: Unfit::Pending,
                ..
            }) => ExecStatus::NeedsApproval,
            Error::Vault(
                VaultError::ApprovalUnfit { .. } | VaultError::ApprovalNotFound { .. },
            ) => ExecStatus::Denied,
            _ => return Err(error),
        };
        let refused = ApprovalReport::Refused {
            reason: error.to_string(),
            hint: error.hint(),
        };
        self.report_of(status, refused)
    }

    pub(super) fn report(self, status: ExecStatus, approval: ApprovalReport) -> Result<Answer> {
        let report = self.report_of(status, approval)?;
        Ok(Answer::Reported(Box::new(report)))
    }

    fn report_of(self, status: ExecStatus, approval: ApprovalReport) -> Result<ExecReport> {
        self.call
            .record(JournalEvent::ExecRefused, &self.decision)?;
        let set_up = self.call.runtime.approval_is_set_up()?;
        let report = self.call.report_base(self.decision, status, self.timings);
        Ok(ExecReport {
            approval: Some(approval),
            approver_set_up: set_up,
            ..report
        })
    }

    pub(super) fn grant(&self, id: ApprovalId, binding: [u8; 32]) -> Grant {
        Grant {
            id,
            using: ApprovalUse {
                vault: self.call.vault.id,
                binding,
                exec: self.call.exec,
                by: self.call.by(),
            },
        }
    }

    fn granted(self, grant: Grant) -> Answer {
        Answer::Granted(Box::new(Permitted {
            call: self.call,
            decision: self.decision,
            timings: self.timings,
            admission: Admission::Alone(Alone::Approved(grant)),
        }))
    }
}

impl Permitted {
    /// An approval that does not fit is told in the command's report; any other error is the caller's.
    pub fn unfit(self, error: Error) -> Result<ExecReport> {
        let asking = Asking {
            call: self.call,
            decision: self.decision,
            timings: self.timings,
        };
        asking.unfit(error)
    }
}

impl Grant {
    /// Uses the approval up, if the vault is in the state that was approved. To be called while it cannot move.
    pub fn redeem(&self, call: &Call) -> Result<Approval> {
        let vaults = &call.runtime.inner.vaults;
        match vaults.use_approval(self.id, &self.using) {
            Ok(approval) => Ok(approval),
            Err(error) => {
                let details = json!({ "approval": self.id.to_string(), "why": error.to_string(),
                    "command": head_of(call.request.command.text()) });
                vaults.record(NewJournalEntry {
                    vault: Some(self.using.vault),
                    exec: Some(call.exec),
                    principal: call.by(),
                    operation: JournalEvent::ApprovalRefused.into(),
                    details,
                })?;
                Err(error.into())
            }
        }
    }
}
