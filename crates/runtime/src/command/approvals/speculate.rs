//! Trying a command before anybody approves it: in a throwaway fork, in the namespace sandbox, without network. What it
//! did is shown to the approver, and is what is published if it is approved; nothing runs a second time.

use avfs_policy::{Decision, HostList};
use avfs_vault::{
    Cause, CheckpointLabel, CheckpointOrigin, ExecId, NewVersion, RootId, Speculation,
};
use serde_json::json;

use super::ask::{Answer, Asking, Grant};
use crate::command::branch::Fork;
use crate::command::call::{Call, ExecRequest};
use crate::command::exec::{Admission, Alone, Permitted};
use crate::command::network::{ExecNetwork, NetworkAsk};
use crate::command::options::{Branch, CheckpointMode, Stdin};
use crate::command::report::{ApprovalReport, Captured, ExecReport, ExecStatus, SpeculationReport};
use crate::command::run::OutputSink;
use crate::history::changes::Changes;
use crate::live::shape::Driver;
use crate::live::slot::SessionOutcome;
use crate::{Error, Result};

/// How much of each output stream is kept with a speculation.
const KEPT_OUTPUT: usize = 64 * 1024;

/// What a trial left, and the root that it began on.
pub(super) struct Tried {
    pub on: RootId,
    pub left: Speculation,
}

impl Asking {
    /// Runs the command where it can do no harm, and asks with what it did.
    pub(super) fn speculate(self, sink: &dyn OutputSink) -> Result<Answer> {
        // Before it is run: what cannot be approved need not be tried.
        if let Err(error) = super::binding::binding(&self.call) {
            return self.pending(Err(error));
        }
        let fork = Fork::of(&self.call.runtime, &self.call.vault, self.call.exec)?;
        let on = fork.vault.head;
        let tried = self.in_fork(&fork).carry_out(sink)?;
        if let Some(uncommitted) = &tried.uncommitted {
            let why = format!("what it did could not be kept: {}", uncommitted.message);
            return self.pending(Err(Error::CannotBind { why }));
        }
        let left = self.call.runtime.inner.vaults.by_id(fork.vault.id)?;
        // The fork has a name, and since the command ended somebody may have worked in it.
        let alone = match tried.version {
            Some(number) => left.version == number,
            None => left.head == on,
        };
        if !alone {
            let vault = self.call.vault.name.to_string();
            return Err(Error::MovedWhileTried { vault });
        }
        let left = Speculation {
            root: left.head,
            outcome: json!(tried.status),
            stdout: kept(&tried.stdout),
            stderr: kept(&tried.stderr),
        };
        let asked = self.request(Some(Tried { on, left }));
        let approval = match asked {
            Ok(approval) => approval,
            refused => return self.pending(refused),
        };
        // Its state is now kept by the request.
        fork.end(false)?;
        let answer = self.report(
            ExecStatus::NeedsApproval,
            ApprovalReport::Pending(approval.id),
        )?;
        Ok(match answer {
            Answer::Reported(report) => Answer::Reported(Box::new(ExecReport {
                speculation: Some(SpeculationReport {
                    status: tried.status,
                    stdout: tried.stdout,
                    stderr: tried.stderr,
                    changes: tried.changes,
                    ignored: tried.ignored,
                    duration: tried.duration,
                }),
                ..*report
            })),
            granted => granted,
        })
    }

    /// A request for the same command in a fork.
    fn in_fork(&self, fork: &Fork) -> Permitted {
        let call = &self.call;
        let mut options = call.request.options.clone();
        // Whatever was asked for: nobody has approved it yet.
        options.driver = Driver::Namespace;
        options.network = NetworkAsk::Listed(HostList::default());
        options.allow = HostList::default();
        options.branch = Branch::Here;
        options.checkpoint = CheckpointMode::Never;
        let request = ExecRequest {
            vault: call.request.vault.clone(),
            command: call.request.command.clone(),
            cwd: call.request.cwd.clone(),
            env: call.request.env.clone(),
            stdin: Stdin::Empty,
            terminal: None,
            control: call.request.control.clone(),
            options,
        };
        Permitted {
            call: Call {
                runtime: call.runtime.clone(),
                exec: ExecId::new(),
                asked: call.asked.clone(),
                vault: fork.vault.clone(),
                cwd: call.cwd.clone(),
                terms: call.terms.clone(),
                network: ExecNetwork::default(),
                inspection: call.inspection.clone(),
                network_limits: call.network_limits,
                lent: call.lent,
                env: call.env.clone(),
                request,
            },
            decision: self.decision.clone(),
            timings: self.timings,
            admission: Admission::Alone(Alone::Trial(fork.vault.head)),
        }
    }

    /// Makes what was tried the vault's state, byte for byte, if it is approved and nothing moved.
    pub(super) fn publish(self, grant: Grant, tried: Speculation) -> Result<Answer> {
        let Asking {
            call,
            decision,
            timings,
        } = self;
        let runtime = call.runtime.clone();
        let vaults = &runtime.inner.vaults;
        // One that an older avfs wrote down in words of its own says no more than that it ended.
        let status: ExecStatus =
            serde_json::from_value(tried.outcome.clone()).unwrap_or(ExecStatus::Interrupted);
        let published = runtime.slot(call.vault.id).settled(&runtime, |vault| {
            let approval = grant.redeem(&call)?;
            let (automatic, asked) = (CheckpointOrigin::Automatic, CheckpointOrigin::Asked);
            let (name, origin) = match &call.request.options.checkpoint {
                CheckpointMode::Named(name) => (Some(name), Some(asked)),
                CheckpointMode::Auto if tried.root != approval.root => (None, Some(automatic)),
                CheckpointMode::Auto | CheckpointMode::Never => (None, None),
            };
            let by = &call.by();
            let description = call.before();
            let label = CheckpointLabel {
                name,
                description: description.as_ref(),
            };
            let save = |origin| vaults.save_checkpoint(vault.id, label, vault.head, origin, by);
            let checkpoint = origin.map(save).transpose()?;
            let mut version = call.tried(&decision, &status, approval.root);
            version.details["approval"] = json!(grant.id.to_string());
            let version = vaults.publish(vault.id, approval.root, tried.root, version)?;
            Ok((approval, checkpoint, version.number))
        });
        let (approval, checkpoint, number) = match published {
            Ok(published) => published,
            Err(error) => {
                let asking = Asking {
                    call,
                    decision,
                    timings,
                };
                return Ok(Answer::Reported(Box::new(asking.unfit(error)?)));
            }
        };
        let outcome = SessionOutcome {
            after: tried.root,
            ..SessionOutcome::nothing(approval.root)
        };
        let changes = call.changes(&outcome)?;
        let patch = call.patch(&changes.outside)?;
        let Changes {
            outside,
            in_home,
            ignored,
        } = changes.cut_to(call.request.options.detail.changes_limit);
        Ok(Answer::Reported(Box::new(ExecReport {
            checkpoint: checkpoint.map(|checkpoint| checkpoint.name),
            patch,
            changes: outside,
            ignored,
            home_changes: in_home.total,
            version: (tried.root != approval.root).then_some(number),
            stdout: captured(tried.stdout),
            stderr: captured(tried.stderr),
            approval: Some(ApprovalReport::Used(grant.id)),
            ..call.report_base(decision, status, timings)
        })))
    }
}

impl Call {
    /// What is written down of it when what it did in a fork becomes the vault's state.
    fn tried(&self, decision: &Decision, status: &ExecStatus, before: RootId) -> NewVersion {
        let mut details = self.details(decision);
        details["status"] = json!(status);
        details["before"] = json!(before.to_string());
        NewVersion {
            by: self.by(),
            exec: Some(self.exec),
            cause: Cause::Exec,
            details,
        }
    }
}

fn kept(captured: &Captured) -> Vec<u8> {
    let end = captured.bytes.len().min(KEPT_OUTPUT);
    captured.bytes[..end].to_vec()
}

fn captured(bytes: Vec<u8>) -> Captured {
    Captured {
        total: bytes.len() as u64,
        truncated: bytes.len() == KEPT_OUTPUT,
        bytes,
        ..Captured::default()
    }
}
