//! The story of a mediated command, from request to report.
//!
//! Each step takes the one before by value, so a command that was not decided on cannot run, and one
//! that ran cannot go unreported. What a step holds is undone by its `Drop`.

use std::time::{Duration, Instant};

use avfs_policy::{Action, Decision, Network, Request};
use avfs_sandbox::Command;
use avfs_vault::{
    Cause, Change, ChangeKind, Checkpoint, CheckpointOrigin, ExecId, NewJournalEntry, NewVersion,
    Principal, RootId, Vault, VaultPath, pair_renames,
};
use serde_json::json;

use crate::host::{HOME, shell};
use crate::live::{Entered, Left};
use crate::report::{Captured, ExecReport, ExecStatus, Timings, Uncommitted};
use crate::run::{Limits, OutputSink, Ran, run};
use crate::runtime::{Runtime, Select};
use crate::{Error, Result, Skipped};

/// One top-level command that somebody wants run.
#[derive(Debug, Clone)]
pub struct ExecRequest {
    pub vault: Select,
    pub command: ExecCommand,
    /// Where it starts; without one, `/workspace` if there is one, else `/`.
    pub cwd: Option<VaultPath>,
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    pub timeout: Option<Duration>,
    /// Bytes of each output stream that the report keeps.
    pub output_limit: usize,
    pub by: Principal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecCommand {
    Argv(Vec<Vec<u8>>),
    Shell(String),
}

impl Runtime {
    /// The one door: decides, checkpoints, runs, commits, reports.
    ///
    /// An error means that the request itself could not be handled; whatever becomes of a command,
    /// denial and failure to start included, is a report.
    pub fn exec(&self, request: ExecRequest, sink: &dyn OutputSink) -> Result<ExecReport> {
        let resolved = self.resolve(request)?; // which vault, and where in it
        let permitted = match resolved.decide()? {
            Verdict::Permitted(permitted) => permitted, // it may run
            Verdict::Refused(refused) => return refused.report(), // it may not: recorded, and said why
        };
        let viewed = permitted.view()?; // the vault as a directory, in a sandbox, at root R0
        let checkpointed = viewed.checkpoint()?; // the way back to R0, if the decision asks for one
        let ran = checkpointed.run(sink)?; // the hostile part
        ran.finish() // base + layer = R1: published, recorded, compared with R0
    }

    fn resolve(&self, request: ExecRequest) -> Result<Resolved> {
        let vault = self.vault(&request.vault)?;
        let cwd = match &request.cwd {
            Some(cwd) => cwd.clone(),
            None => self.default_cwd(vault.head)?,
        };
        let call = Call {
            runtime: self.clone(),
            exec: ExecId::new(),
            vault,
            cwd,
            request,
        };
        Ok(Resolved { call })
    }

    pub(crate) fn default_cwd(&self, head: RootId) -> Result<VaultPath> {
        let workspace = VaultPath::parse(b"/workspace")?;
        let entry = self.inner.vaults.trees().entry(head, &workspace)?;
        Ok(if entry.is_some_and(|entry| entry.is_dir()) {
            workspace
        } else {
            VaultPath::root()
        })
    }
}

/// What every step carries along.
struct Call {
    runtime: Runtime,
    exec: ExecId,
    vault: Vault,
    cwd: VaultPath,
    request: ExecRequest,
}

struct Resolved {
    call: Call,
}

enum Verdict {
    Permitted(Permitted),
    Refused(Refused),
}

struct Permitted {
    call: Call,
    decision: Decision,
    timings: Timings,
}

struct Refused {
    call: Call,
    decision: Decision,
    status: ExecStatus,
    timings: Timings,
}

struct Viewed {
    permitted: Permitted,
    entered: Entered,
}

struct Checkpointed {
    viewed: Viewed,
    checkpoint: Option<Checkpoint>,
}

struct Finished {
    checkpointed: Checkpointed,
    ran: Ran,
    duration: Duration,
}

impl Resolved {
    fn decide(self) -> Result<Verdict> {
        let started = Instant::now();
        let Resolved { call } = self;
        let request = Request {
            command: call.request.command.form(),
            cwd: call.cwd.as_bytes(),
            network: Network::None,
            env: &call.request.env,
        };
        let decision = call.runtime.decision(&call.vault, &request)?;
        let timings = Timings {
            decide_us: micros(started),
            ..Timings::default()
        };
        let status = match decision.action {
            Action::Allow | Action::AllowWithCheckpoint => {
                return Ok(Verdict::Permitted(Permitted {
                    call,
                    decision,
                    timings,
                }));
            }
            Action::RequireApproval => ExecStatus::NeedsApproval,
            Action::Deny => ExecStatus::Denied,
        };
        Ok(Verdict::Refused(Refused {
            call,
            decision,
            status,
            timings,
        }))
    }
}

impl Refused {
    fn report(self) -> Result<ExecReport> {
        let Refused {
            call,
            decision,
            status,
            timings,
        } = self;
        call.record("exec_refused", &decision)?;
        Ok(ExecReport {
            exec: call.exec,
            vault: call.vault.name.clone(),
            cwd: call.cwd,
            decision,
            checkpoint: None,
            status,
            stdout: Captured::default(),
            stderr: Captured::default(),
            duration: Duration::ZERO,
            changes: Vec::new(),
            home_changes: 0,
            version: None,
            uncommitted: None,
            skipped: Vec::new(),
            isolation: None,
            usage: None,
            leftovers: 0,
            shared_with: Vec::new(),
            timings,
        })
    }
}

impl Permitted {
    fn view(mut self) -> Result<Viewed> {
        let started = Instant::now();
        self.call.record("exec_requested", &self.decision)?;
        let slot = self.call.runtime.slot(self.call.vault.id);
        let entered = slot.enter(&self.call.runtime, self.call.exec)?;
        self.timings.view_us = micros(started);
        Ok(Viewed {
            permitted: self,
            entered,
        })
    }
}

impl Viewed {
    fn checkpoint(mut self) -> Result<Checkpointed> {
        let started = Instant::now();
        let call = &self.permitted.call;
        let checkpoint = match self.permitted.decision.action {
            Action::AllowWithCheckpoint => Some(call.runtime.inner.vaults.save_checkpoint(
                call.vault.id,
                None,
                self.entered.before,
                CheckpointOrigin::Automatic,
                &call.request.by,
            )?),
            _ => None,
        };
        self.permitted.timings.checkpoint_us = micros(started);
        Ok(Checkpointed {
            viewed: self,
            checkpoint,
        })
    }
}

impl Checkpointed {
    fn run(mut self, sink: &dyn OutputSink) -> Result<Finished> {
        let started = Instant::now();
        let call = &self.viewed.permitted.call;
        let command = Command {
            argv: call.request.command.argv(),
            env: call
                .runtime
                .inner
                .host
                .environment(&call.vault.name, &call.request.env),
            cwd: call.cwd.as_bytes().to_vec(),
            limits: avfs_sandbox::Limits::default(),
        };
        let limits = Limits {
            timeout: call.request.timeout,
            output_limit: call.request.output_limit,
        };
        let ran = run(&self.viewed.entered.sandbox, &command, &limits, sink)?;
        self.viewed.permitted.timings.run_us = micros(started);
        Ok(Finished {
            checkpointed: self,
            ran,
            duration: started.elapsed(),
        })
    }
}

impl Finished {
    fn finish(self) -> Result<ExecReport> {
        let started = Instant::now();
        let Finished {
            checkpointed: Checkpointed { viewed, checkpoint },
            ran,
            duration,
        } = self;
        let Viewed {
            permitted:
                Permitted {
                    call,
                    decision,
                    mut timings,
                },
            entered,
        } = viewed;
        let isolation = entered.sandbox.isolation().clone();
        let before = entered.before;
        let (left, uncommitted) = match entered.leave(call.version(&decision, &ran)) {
            Ok(left) => {
                let aside = left.aside.clone().map(Uncommitted::aside);
                (left, aside)
            }
            // It ran, and what it wrote is still there: that is to be told, not thrown.
            Err(error) => {
                // On a full disk not even this can be recorded; the report says it too.
                let _ = call.record_uncommitted(&decision, &ran, &error);
                (Left::nothing(before), Some(Uncommitted::because(&error)))
            }
        };
        let (changes, home_changes) = call.changes(&left)?;
        let changed = left.before != left.after || uncommitted.is_some();
        let checkpoint = call.keep_checkpoint(checkpoint, changed)?;
        timings.commit_us = micros(started);
        Ok(ExecReport {
            exec: call.exec,
            vault: call.vault.name.clone(),
            cwd: call.cwd,
            decision,
            checkpoint: checkpoint.map(|checkpoint| checkpoint.name),
            status: ran.status,
            stdout: ran.stdout,
            stderr: ran.stderr,
            duration,
            changes,
            home_changes,
            version: left.version,
            uncommitted,
            skipped: left.skipped.into_iter().map(skipped).collect(),
            isolation: Some(isolation),
            usage: ran.usage,
            leftovers: ran.leftovers,
            shared_with: left.shared_with,
            timings,
        })
    }
}

impl Call {
    /// What happened between two roots: what the vault shows, and how much in the home.
    fn changes(&self, left: &Left) -> Result<(Vec<Change>, usize)> {
        let home = VaultPath::parse(HOME.as_bytes())?;
        let trees = self.runtime.inner.vaults.trees();
        let changes = trees.diff(left.before, left.after)?.into_iter();
        let changes = changes.filter(|change| change.kind != ChangeKind::Times);
        // The directories above it come with its first file.
        let (in_home, outside): (Vec<_>, Vec<_>) = changes.partition(|change| {
            change.path.starts_with(&home)
                || (change.kind == ChangeKind::Created && home.starts_with(&change.path))
        });
        Ok((pair_renames(outside), in_home.len()))
    }

    /// An automatic checkpoint before a command that changed nothing is of no use to anyone.
    fn keep_checkpoint(
        &self,
        checkpoint: Option<Checkpoint>,
        changed: bool,
    ) -> Result<Option<Checkpoint>> {
        let Some(checkpoint) = checkpoint else {
            return Ok(None);
        };
        if changed {
            return Ok(Some(checkpoint));
        }
        let vaults = &self.runtime.inner.vaults;
        vaults.drop_automatic_checkpoint(self.vault.id, &checkpoint.name, &self.request.by)?;
        Ok(None)
    }

    fn version(&self, decision: &Decision, ran: &Ran) -> NewVersion {
        let mut details = self.details(decision);
        details["status"] = json!(format!("{:?}", ran.status));
        NewVersion {
            by: self.request.by,
            exec: Some(self.exec),
            cause: match ran.status {
                ExecStatus::Interrupted => Cause::Interrupted,
                _ => Cause::Exec,
            },
            details,
        }
    }

    fn record(&self, operation: &str, decision: &Decision) -> Result<()> {
        self.record_with(operation, self.details(decision))
    }

    fn record_uncommitted(&self, decision: &Decision, ran: &Ran, error: &Error) -> Result<()> {
        let mut details = self.version(decision, ran).details;
        details["error"] = json!(error.to_string());
        self.record_with("exec_uncommitted", details)
    }

    fn record_with(&self, operation: &str, details: serde_json::Value) -> Result<()> {
        self.runtime.inner.vaults.record(NewJournalEntry {
            vault: Some(self.vault.id),
            exec: Some(self.exec),
            principal: self.request.by,
            operation: operation.into(),
            details,
        })?;
        Ok(())
    }

    fn details(&self, decision: &Decision) -> serde_json::Value {
        let categories: Vec<_> = decision
            .categories
            .iter()
            .map(|category| category.as_str())
            .collect();
        json!({
            "command": self.request.command.text(),
            "cwd": self.cwd.to_string(),
            "decision": decision.action.as_str(),
            "categories": categories,
            "rule": decision.rule,
        })
    }
}

impl ExecCommand {
    fn argv(&self) -> Vec<Vec<u8>> {
        match self {
            ExecCommand::Argv(argv) => argv.clone(),
            ExecCommand::Shell(text) => {
                vec![shell().into(), b"-c".to_vec(), text.clone().into_bytes()]
            }
        }
    }

    /// The command on one line, for people.
    pub fn text(&self) -> String {
        match self {
            ExecCommand::Shell(text) => text.clone(),
            ExecCommand::Argv(argv) => {
                let words: Vec<_> = argv
                    .iter()
                    .map(|word| String::from_utf8_lossy(word))
                    .collect();
                words.join(" ")
            }
        }
    }
}

fn skipped(skipped: avfs_view::Skipped) -> Skipped {
    Skipped {
        path: skipped.path,
        reason: skipped.reason.to_owned(),
    }
}

fn micros(since: Instant) -> u64 {
    since.elapsed().as_micros() as u64
}
