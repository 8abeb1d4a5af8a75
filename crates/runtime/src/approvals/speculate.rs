//! Trying a command before anybody approves it: in a throwaway fork, without network. What it did is shown to the
//! approver, and is what is published if it is approved.

use avfs_sandbox::Network;
use avfs_vault::{Cause, CheckpointLabel, CheckpointOrigin, ExecId, NewVersion, Speculation};
use serde_json::json;

use super::ask::{Answer, Asking, Grant};
use crate::Result;
use crate::branch::Fork;
use crate::call::{Call, Changes};
use crate::entered::Left;
use crate::exec::{ExecRequest, Permitted};
use crate::options::{Branch, CheckpointMode, Stdin};
use crate::report::{ApprovalReport, Captured, ExecReport, ExecStatus, SpeculationReport};
use crate::run::OutputSink;

/// How much of each output stream is kept with a speculation.
const KEPT_OUTPUT: usize = 64 * 1024;

impl Asking {
    /// Runs the command where it can do no harm, and asks with what it did.
    pub(super) fn speculate(self, sink: &dyn OutputSink) -> Result<Answer> {
        // Before it is run: what cannot be approved need not be tried.
        super::binding::binding(&self.call)?;
        let fork = Fork::of(&self.call.runtime, &self.call.vault, self.call.exec)?;
        let tried = self.in_fork(&fork).carry_out(sink)?;
        let root = self.call.runtime.inner.vaults.by_id(fork.vault.id)?.head;
        let speculation = Speculation {
            root,
            outcome: json!(tried.status),
            stdout: kept(&tried.stdout),
            stderr: kept(&tried.stderr),
        };
        let approval = self.request(Some(speculation))?;
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
                    duration: tried.duration,
                }),
                ..*report
            })),
            granted => granted,
        })
    }

    /// The same command in a fork.
    fn in_fork(&self, fork: &Fork) -> Permitted {
        let call = &self.call;
        let mut options = call.request.options.clone();
        options.network = Network::None;
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
                env: call.env.clone(),
                request,
            },
            decision: self.decision.clone(),
            timings: self.timings,
            grant: None,
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
            let (by, origin) = (&call.by(), CheckpointOrigin::Automatic);
            let checkpoint = match tried.root == approval.root {
                true => None,
                false => Some(vaults.save_checkpoint(
                    vault.id,
                    CheckpointLabel::default(),
                    vault.head,
                    origin,
                    by,
                )?),
            };
            let mut details = call.details(&decision);
            details["approval"] = json!(grant.id.to_string());
            details["status"] = json!(status);
            let version = NewVersion {
                by: call.by(),
                exec: Some(call.exec),
                cause: Cause::Exec,
                details,
            };
            let version = vaults.publish(vault.id, approval.root, tried.root, version)?;
            Ok((approval, checkpoint, version.number))
        })?;
        let (approval, checkpoint, number) = published;
        let left = Left {
            after: tried.root,
            ..Left::nothing(approval.root)
        };
        let Changes { outside, in_home } = call.changes(&left)?;
        Ok(Answer::Reported(Box::new(ExecReport {
            checkpoint: checkpoint.map(|checkpoint| checkpoint.name),
            patch: call.patch(&outside)?,
            changes: outside,
            home_changes: in_home.len(),
            version: (tried.root != approval.root).then_some(number),
            stdout: captured(tried.stdout),
            stderr: captured(tried.stderr),
            approval: Some(ApprovalReport::Used(grant.id)),
            ..call.never_ran(decision, status, timings)
        })))
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
