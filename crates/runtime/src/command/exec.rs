//! The walk of a mediated command, from request to report.
//!
//! Each step takes the one before by value, so a command that was not decided on cannot run, and one
//! that ran cannot go unreported. What a step holds is undone by its `Drop`.

use std::time::{Duration, Instant};

use avfs_policy::{Action, Decision, Request};
use avfs_sandbox::{Command, Isolation};
use avfs_vault::{Checkpoint, CheckpointLabel, CheckpointOrigin, ExecId, JournalEvent, RootId};
use serde_json::json;

use crate::command::approvals::{Answer, Asking, Grant};
use crate::command::branch::Fork;
use crate::command::call::{Call, ExecRequest};
use crate::command::check::{check_changes_limit, check_command, check_output_limit};
use crate::command::control::check_size;
use crate::command::network::ExecNetwork;
use crate::command::options::{Approving, Branch, CheckpointMode, Terms};
use crate::command::report::{ApprovalReport, ExecReport, ExecStatus, Timings, Uncommitted};
use crate::command::run::{Assignment, OutputSink, Ran, run};
use crate::gate::Verb;
use crate::history::changes::{Changes, left_out};
use crate::live::admission::unwatched;
use crate::live::reserve::Reserve;
use crate::live::shape::Access;
use crate::live::slot::{ExecSession, SessionOutcome};
use crate::retried::noting;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::{Error, Result};

/// What came of a request before anything ran.
pub(crate) enum Permit {
    Granted(Box<Permitted>),
    /// It will not run, or need not any more.
    Reported(Box<ExecReport>),
}

impl Session {
    /// The one door: decides, checkpoints, runs, commits, reports.
    ///
    /// An error means that the request itself could not be handled; whatever becomes of a command,
    /// denial and failure to start included, is a report.
    pub fn exec(&self, request: ExecRequest, sink: &dyn OutputSink) -> Result<ExecReport> {
        let begun = Instant::now();
        let report = match self.permit(request, sink)? {
            Permit::Granted(permitted) => permitted.carry_out(sink)?,
            Permit::Reported(report) => *report,
        };
        self.tell_ended(&report, begun.elapsed());
        Ok(report)
    }

    /// The walk up to where the command may begin; a job's begins with it, too.
    pub(crate) fn permit(&self, request: ExecRequest, sink: &dyn OutputSink) -> Result<Permit> {
        let resolved = self.resolve(request)?; // which vault, where in it, on what terms
        Ok(match resolved.decide()? {
            Verdict::Permitted(permitted) => Permit::Granted(Box::new(permitted)), // it may run
            Verdict::Refused(refused) => Permit::Reported(Box::new(refused.report()?)), // it may not
            Verdict::Asks(asking) => match asking.answer(sink)? {
                Answer::Granted(permitted) => Permit::Granted(permitted), // somebody lets it, once
                Answer::Reported(report) => Permit::Reported(report),     // somebody has been asked
            },
        })
    }

    fn resolve(&self, mut request: ExecRequest) -> Result<Resolved> {
        if request.terminal.is_some() {
            request.options.take_time();
        }
        let vault = self.vault(&request.vault, Verb::Work)?;
        let settings = self.settings_of(&vault)?;
        request.options.check(self.principal(), &settings)?;
        check_output_limit(&request.options)?;
        check_changes_limit(&request.options)?;
        request.terminal.map_or(Ok(()), check_size)?;
        if let Approving::Use(id) = request.options.approving
            && let Ok(approval) = self.inner.vaults.approval(id)
        {
            self.sees(&approval)?;
        }
        let cwd = match &request.cwd {
            Some(cwd) => cwd.clone(),
            None => self.default_cwd(vault.head)?,
        };
        let network = ExecNetwork::of(&request.options, &settings)?;
        let call = Call {
            runtime: self.clone(),
            exec: ExecId::new(),
            asked: vault.name.clone(),
            vault,
            cwd,
            terms: Terms::new(&request.options, &settings),
            env: settings.with_environment(&request.env, &network),
            network,
            inspection: settings.inspection,
            network_limits: settings.network_limits,
            lent: self
                .inner
                .host
                .lendings
                .key(&settings.lend.unwrap_or_default()),
            request,
        };
        check_command(&call.request.command, &call.env)?;
        // Now, when nothing is under way that an error could disturb.
        call.sandbox_limits().check()?;
        Ok(Resolved { call })
    }
}

struct Resolved {
    call: Call,
}

enum Verdict {
    Permitted(Permitted),
    Asks(Asking),
    Refused(Refused),
}

/// A command that may run.
pub(crate) struct Permitted {
    pub call: Call,
    pub decision: Decision,
    pub timings: Timings,
    pub admission: Admission,
}

/// By whose word a command runs, and so in what company.
pub(crate) enum Admission {
    /// Policy's: beside others.
    Policy,
    /// An approver's, given or still to be given: with nobody else.
    Alone(Alone),
}

/// A command that has its vault to itself, on a state that is known.
pub(crate) enum Alone {
    /// On the state that was approved. The approval is used up when it begins.
    Approved(Grant),
    /// In a fork that is at this root, to show an approver what it does.
    Trial(RootId),
}

impl Alone {
    /// The root that the command must find.
    fn root(&self, call: &Call) -> Result<RootId> {
        match self {
            Alone::Approved(grant) => Ok(grant.redeem(call)?.root),
            Alone::Trial(root) => Ok(*root),
        }
    }
}

struct Refused {
    call: Call,
    decision: Decision,
    timings: Timings,
}

struct Branched {
    permitted: Permitted,
    fork: Option<Fork>,
}

struct Viewed {
    branched: Branched,
    session: ExecSession,
}

struct Checkpointed {
    viewed: Viewed,
    checkpoint: Option<Checkpoint>,
}

struct Ended {
    checkpointed: Checkpointed,
    ran: Ran,
    duration: Duration,
}

/// A command whose work is in its vault, or kept beside it.
struct Committed {
    branched: Branched,
    checkpoint: Option<Checkpoint>,
    ran: Ran,
    duration: Duration,
    isolation: Isolation,
    outcome: SessionOutcome,
    uncommitted: Option<Uncommitted>,
    /// When the commit began.
    since: Instant,
}

impl Resolved {
    fn decide(self) -> Result<Verdict> {
        let started = Instant::now();
        let Resolved { call } = self;
        let request = Request {
            command: call.request.command.form(),
            cwd: call.cwd.as_bytes(),
            network: call.network.policy(),
            env: &call.env,
        };
        let mut decision = call.runtime.decision(&call.vault, &request)?;
        call.add_git_hint(&mut decision);
        let timings = Timings {
            decide_us: micros(started),
            ..Timings::default()
        };
        Ok(match decision.action {
            Action::Allow | Action::AllowWithCheckpoint => Verdict::Permitted(Permitted {
                call,
                decision,
                timings,
                admission: Admission::Policy,
            }),
            Action::RequireApproval => Verdict::Asks(Asking {
                call,
                decision,
                timings,
            }),
            Action::Deny => Verdict::Refused(Refused {
                call,
                decision,
                timings,
            }),
        })
    }
}

impl Refused {
    fn report(self) -> Result<ExecReport> {
        self.call
            .record(JournalEvent::ExecRefused, &self.decision)?;
        Ok(self
            .call
            .report_base(self.decision, ExecStatus::Denied, self.timings))
    }
}

impl Permitted {
    /// The walk from here to its end.
    pub fn carry_out(self, sink: &dyn OutputSink) -> Result<ExecReport> {
        let (report, retried) = noting(|| self.walk(sink));
        let report = report?;
        Ok(ExecReport { retried, ..report })
    }

    fn walk(self, sink: &dyn OutputSink) -> Result<ExecReport> {
        let branched = self.branch()?; // a fork of its own, if the caller wants one
        let viewed = match branched.view() {
            Ok(viewed) => viewed, // the vault as a directory, in a sandbox, at root R0
            Err((permitted, error)) => return permitted.unfit(error),
        };
        let checkpointed = viewed.checkpoint()?; // the way back to R0, if somebody asks for one
        let ended = checkpointed.run(sink)?; // the hostile part
        let committed = ended.commit(sink)?; // base + layer = R1: published and recorded
        committed.report() // R0 and R1 compared
    }

    fn branch(mut self) -> Result<Branched> {
        let fork = match self.call.request.options.branch {
            Branch::Here => None,
            Branch::Throwaway | Branch::KeepOnSuccess => {
                let fork = Fork::of(&self.call.runtime, &self.call.vault, self.call.exec)?;
                self.call.vault = fork.vault.clone();
                Some(fork)
            }
        };
        Ok(Branched {
            permitted: self,
            fork,
        })
    }
}

impl Branched {
    fn view(mut self) -> Result<Viewed, (Box<Permitted>, Error)> {
        let started = Instant::now();
        let session = match self.enter() {
            Ok(session) => session,
            Err(error) => return Err((Box::new(self.permitted), error)),
        };
        self.permitted.timings.view_us = micros(started);
        Ok(Viewed {
            branched: self,
            session,
        })
    }

    fn enter(&self) -> Result<ExecSession> {
        let Permitted { call, decision, .. } = &self.permitted;
        call.runtime.check_room()?;
        call.record(JournalEvent::ExecRequested, decision)?;
        let slot = call.runtime.slot(call.vault.id);
        let shape = call.shape();
        let (runtime, exec) = (&call.runtime, call.exec);
        match (call.request.options.access, &self.permitted.admission) {
            (Access::ReadWrite, Admission::Policy) => slot.enter(runtime, exec, shape),
            (Access::ReadOnly, Admission::Policy) => slot.look(runtime, shape),
            (Access::ReadWrite, Admission::Alone(alone)) => {
                slot.enter_alone(runtime, exec, shape, || alone.root(call))
            }
            (Access::ReadOnly, Admission::Alone(alone)) => {
                slot.look_alone(runtime, shape, || alone.root(call))
            }
        }
    }
}

impl Viewed {
    fn checkpoint(mut self) -> Result<Checkpointed> {
        let started = Instant::now();
        let Permitted { call, decision, .. } = &self.branched.permitted;
        let (name, origin) = match (&call.request.options.checkpoint, decision.action) {
            (CheckpointMode::Named(name), _) => (Some(name), Some(CheckpointOrigin::Asked)),
            (CheckpointMode::Auto, Action::AllowWithCheckpoint | Action::RequireApproval) => {
                (None, Some(CheckpointOrigin::Automatic))
            }
            (CheckpointMode::Auto | CheckpointMode::Never, _) => (None, None),
        };
        let before = call.before();
        let save = |origin| {
            let (vaults, by) = (&call.runtime.inner.vaults, call.by());
            let label = CheckpointLabel {
                name,
                description: before.as_ref(),
            };
            vaults.save_checkpoint(call.vault.id, label, self.session.before, origin, &by)
        };
        let checkpoint = origin.map(save).transpose()?;
        self.branched.permitted.timings.checkpoint_us = micros(started);
        Ok(Checkpointed {
            viewed: self,
            checkpoint,
        })
    }
}

impl Checkpointed {
    fn run(mut self, sink: &dyn OutputSink) -> Result<Ended> {
        let started = Instant::now();
        let Viewed { branched, session } = &mut self.viewed;
        let call = &mut branched.permitted.call;
        let secrets = call.runtime.secrets_of(&call.asked, &call.network)?;
        let mut env = call.environment(&session.inside);
        secrets.add_placeholders(&mut env);
        call.runtime.add_registries(&call.network, &mut env);
        let network = call.network_terms()?;
        let command = Command {
            argv: call.request.command.argv(),
            env,
            cwd: session.inside.path(&call.cwd),
            limits: call.sandbox_limits(),
            terminal: call.request.terminal,
            key: call.runtime.inner.networks.next_key(),
        };
        let reserve = call.terms.leaves_reserve();
        let reserve = reserve.then(|| Reserve::new(&call.runtime.inner.config.home));
        let assignment = Assignment {
            exec: call.exec,
            command,
            network: secrets.added_to(network),
            network_now: call.network_now(),
            network_journal: call.network_journal(),
            stdin: std::mem::take(&mut call.request.stdin),
            timeout: call.terms.timeout,
            output_limit: call.terms.output_limit,
            spills: call.runtime.inner.spills.of(call.exec),
            growth: call.terms.disk_growth(),
            disk_watch: session.disk_watch(call.terms.disk_growth())?,
            reserve: reserve.transpose()?,
            ending: session.ending.clone(),
            control: call.request.control.clone(),
            runtime: Runtime::clone(&call.runtime),
        };
        let ran = run(session, assignment, sink)?;
        if !ran.untold.is_empty() {
            call.record_network(&ran.untold)?;
        }
        self.viewed.branched.permitted.timings.run_us = micros(started);
        Ok(Ended {
            checkpointed: self,
            ran,
            duration: started.elapsed(),
        })
    }
}

impl Ended {
    fn commit(self, sink: &dyn OutputSink) -> Result<Committed> {
        let since = Instant::now();
        let Ended {
            checkpointed: Checkpointed { viewed, checkpoint },
            ran,
            duration,
        } = self;
        let Viewed { branched, session } = viewed;
        let Permitted { call, decision, .. } = &branched.permitted;
        let isolation = session.inside.sandbox.isolation().clone();
        let before = session.before;
        let stop = unwatched(|| sink.cancelled().is_some());
        let mut version = call.version(decision, &ran, duration);
        version.details["before"] = json!(before.to_string());
        let (outcome, uncommitted) = match session.leave(version.clone(), &stop) {
            Ok(outcome) => {
                let aside = outcome.aside.clone().map(Uncommitted::aside);
                (outcome, aside)
            }
            // It ran, and what it wrote is still there: that is to be told, not thrown.
            Err(error) => {
                // On a full disk not even this can be recorded; the report says it too.
                let _ = call.record_uncommitted(version, &error);
                let kept = Uncommitted::because(&error);
                (SessionOutcome::nothing(before), Some(kept))
            }
        };
        Ok(Committed {
            branched,
            checkpoint,
            ran,
            duration,
            isolation,
            outcome,
            uncommitted,
            since,
        })
    }
}

impl Committed {
    fn report(self) -> Result<ExecReport> {
        let (outcome, ran) = (self.outcome, self.ran);
        let Branched { permitted, fork } = self.branched;
        let Permitted {
            call,
            mut decision,
            mut timings,
            admission,
        } = permitted;
        let offline = call.network == ExecNetwork::default();
        decision.settle_network_hint(offline && !ran.attempts.denied.is_empty());
        let changes = call.changes(&outcome)?;
        let changed = outcome.before != outcome.after || self.uncommitted.is_some();
        let checkpoint = call.keep_checkpoint(self.checkpoint, changed)?;
        let fork = fork
            .map(|fork| fork.end(call.keeps_fork(&ran)))
            .transpose()?;
        timings.commit_us = micros(self.since);
        let patch = call.patch(&changes.outside)?;
        let Changes {
            outside,
            in_home,
            ignored,
        } = changes.cut_to(call.request.options.detail.changes_limit);
        Ok(ExecReport {
            checkpoint: checkpoint.map(|checkpoint| checkpoint.name),
            duration: self.duration,
            patch,
            changes: outside,
            ignored,
            home_changes: in_home.total,
            home_change_list: call.request.options.detail.home.then_some(in_home.listed),
            version: outcome.version,
            uncommitted: self.uncommitted,
            skipped: left_out(outcome.skipped),
            isolation: Some(self.isolation),
            usage: ran.usage,
            limits: ran.limits,
            default_limits: ran.default_limits,
            disk_reserve: ran.disk_reserve,
            limit_hit: ran.limit_hit,
            leftovers: ran.leftovers,
            attempts: ran.attempts,
            masked: ran.masked,
            shared_with: outcome.shared_with,
            shared_with_mount: outcome.with_mount,
            stdout: ran.stdout,
            stderr: ran.stderr,
            held: ran.held,
            fork,
            approval: match admission {
                Admission::Alone(Alone::Approved(grant)) => Some(ApprovalReport::Used(grant.id)),
                Admission::Policy | Admission::Alone(Alone::Trial(_)) => None,
            },
            ..call.report_base(decision, ran.status, timings)
        })
    }
}

fn micros(since: Instant) -> u64 {
    since.elapsed().as_micros() as u64
}
