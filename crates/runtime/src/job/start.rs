//! How a job begins: as any exec does up to where it may run, and from there on a thread of its own.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use avfs_vault::{JournalEvent, NewJournalEntry};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};

use super::handle::{Job, LogFile, index};
use super::record::{JobState, Lifetime, Record, now};
use super::{JobInfo, JobRequest, JobStart};
use crate::bounds::head_of;
use crate::command::exec::{Permit, Permitted};
use crate::command::options::Stdin;
use crate::command::report::ExecReport;
use crate::command::run::{Cancel, OutputSink};
use crate::common::Stream;
use crate::runtime::{Runtime, lock};
use crate::session::Session;
use crate::{Error, Result};

/// Whether the program of a new job runs, or what came instead.
enum Begun {
    Yes,
    No(Box<Result<ExecReport>>),
}

impl Session {
    /// Starts a command that goes on without its caller. What is refused, has to be approved first, or cannot
    /// start is reported, and is no job. `asker` may be told that it is held until somebody answers.
    pub fn job_start(&self, request: JobRequest, asker: &dyn OutputSink) -> Result<JobStart> {
        let begun = Instant::now();
        let JobRequest {
            mut exec,
            lifetime,
            takes_input,
        } = request;
        exec.options.take_time();
        let mut input = None;
        // At a terminal there is somebody who may type.
        if takes_input || exec.terminal.is_some() {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::Io {
                what: "making a pipe for the job's input".into(),
                source: errno.into(),
            })?;
            exec.stdin = Stdin::From(read);
            input = Some(write);
        }
        match self.permit(exec, asker)? {
            Permit::Reported(report) => {
                self.tell_ended(&report, begun.elapsed());
                Ok(JobStart::Reported(report))
            }
            Permit::Granted(permitted) => self.launch(*permitted, lifetime, input, begun),
        }
    }

    fn launch(
        &self,
        permitted: Permitted,
        lifetime: Lifetime,
        input: Option<OwnedFd>,
        begun: Instant,
    ) -> Result<JobStart> {
        self.check_room()?;
        let call = &permitted.call;
        let job = self
            .inner
            .jobs
            .add(input, call.request.control.clone(), |id| Record {
                id,
                exec: call.exec,
                vault_id: call.vault.id,
                vault: call.asked.clone(),
                by: call.by(),
                command: head_of(call.request.command.text()),
                lifetime,
                terminal: call.request.terminal,
                started: now(),
                ended: None,
                state: JobState::Running,
                written: None,
            })?;
        let attending = job.attend();
        let (tell, told) = sync_channel(1);
        let sink = JobSink::new(self, &job, &permitted, tell);
        let sink = sink.inspect_err(|_| self.inner.jobs.remove(&job))?;
        let worker = Worker {
            session: self.clone(),
            job: job.clone(),
            begun,
            over: false,
        };
        let thread = std::thread::Builder::new().name("job".into());
        let spawned = thread.spawn(move || worker.work(permitted, &sink));
        if let Err(source) = spawned {
            self.inner.jobs.remove(&job);
            let what = "starting a thread for the job".into();
            return Err(Error::Io { what, source });
        }
        let begun = told.recv();
        drop(attending);
        match begun {
            Ok(Begun::Yes) => Ok(JobStart::Started(Box::new(JobInfo::of(&job)))),
            Ok(Begun::No(outcome)) => outcome.map(|report| JobStart::Reported(Box::new(report))),
            Err(_) => Err(Error::JobFailed {
                id: job.sight().record.id,
            }),
        }
    }
}

/// Where a job's output goes, and what is wanted of it.
struct JobSink {
    runtime: Runtime,
    job: Arc<Job>,
    lifetime: Lifetime,
    logs: [Mutex<LogFile>; 2],
    /// Until the program runs.
    begun: Mutex<Option<SyncSender<Begun>>>,
    /// What the journal says of its start.
    details: Value,
}

impl JobSink {
    fn new(
        runtime: &Runtime,
        job: &Arc<Job>,
        permitted: &Permitted,
        begun: SyncSender<Begun>,
    ) -> Result<JobSink> {
        let log = |stream| LogFile::create(&job.dir, stream).map(Mutex::new);
        let record = job.sight().record;
        let mut details = permitted.call.details(&permitted.decision);
        details["job"] = json!(record.id);
        details["lifetime"] = json!(record.lifetime.as_str());
        if record.terminal.is_some() {
            details["terminal"] = json!(true);
        }
        Ok(JobSink {
            runtime: runtime.clone(),
            job: job.clone(),
            lifetime: record.lifetime,
            logs: [log(Stream::Stdout)?, log(Stream::Stderr)?],
            begun: Mutex::new(Some(begun)),
            details,
        })
    }

    /// Who waits for the program to run; nobody once it does.
    fn take_begun(&self) -> Option<SyncSender<Begun>> {
        lock(&self.begun).take()
    }
}

impl OutputSink for JobSink {
    fn output(&self, stream: Stream, bytes: &[u8], _: Option<std::time::Instant>) {
        let (kept, written) = lock(&self.logs[index(stream)]).append(bytes);
        self.job.grew(stream, kept, written);
    }

    fn started(&self) {
        let Some(begun) = self.take_begun() else {
            return;
        };
        let record = self.job.sight().record;
        if let Err(error) =
            self.runtime
                .record_job(&record, JournalEvent::JobStart, self.details.clone())
        {
            // What cannot be recorded is not done.
            self.job
                .want_end(&format!("its start could not be recorded: {error}"));
        }
        // Nobody waits for it: the job goes on without.
        let _ = begun.send(Begun::Yes);
    }

    fn cancelled(&self) -> Option<Cancel> {
        self.job.wanted_end(self.lifetime)
    }
}

/// Sees a job through. If it cannot, the job is not left looking as if it ran.
struct Worker {
    session: Session,
    job: Arc<Job>,
    /// When it was asked for.
    begun: Instant,
    over: bool,
}

impl Worker {
    fn work(mut self, permitted: Permitted, sink: &JobSink) {
        let outcome = permitted.carry_out(sink);
        if let Ok(report) = &outcome {
            self.session.tell_ended(report, self.begun.elapsed());
        }
        if let Some(begun) = sink.take_begun() {
            // It never ran, so it never was a job.
            self.session.inner.jobs.remove(&self.job);
            self.over = true;
            let _ = begun.send(Begun::No(Box::new(outcome)));
            return;
        }
        let (state, report) = match outcome {
            Ok(report) => {
                let state = JobState::Ended {
                    status: report.status.clone(),
                    why: self.job.end_reason(),
                    version: report.version,
                };
                (state, Some(report))
            }
            Err(error) => {
                let error = error.to_string();
                (JobState::Failed { error }, None)
            }
        };
        self.session.finish_job(&self.job, state, report.as_ref());
        self.over = true;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.over {
            let error = "internal error; see `avfs daemon logs`".into();
            self.session
                .finish_job(&self.job, JobState::Failed { error }, None);
        }
    }
}

impl Runtime {
    /// Writes down that a job is over: with the job, then in the journal.
    pub(super) fn finish_job(&self, job: &Arc<Job>, state: JobState, report: Option<&ExecReport>) {
        let event = match state {
            JobState::Lost { .. } => JournalEvent::JobLost,
            _ => JournalEvent::JobEnd,
        };
        let mut details = json!({ "job": job.sight().record.id });
        match &state {
            JobState::Running => {}
            JobState::Ended { status, why, .. } => {
                details["status"] = json!(status);
                details["why"] = json!(why);
            }
            JobState::Failed { error } => details["error"] = json!(error),
            JobState::Lost { why } => details["why"] = json!(why),
        }
        // On a full disk neither can be written; the next start then says that it was lost.
        let _ = job.conclude(state, report);
        let _ = self.record_job(&job.sight().record, event, details);
        self.inner.jobs.sweep();
    }

    pub(super) fn record_job(
        &self,
        record: &Record,
        event: JournalEvent,
        details: Value,
    ) -> Result<()> {
        self.inner.vaults.record(NewJournalEntry {
            vault: Some(record.vault_id),
            exec: Some(record.exec),
            principal: record.by,
            operation: event.into(),
            details,
        })?;
        Ok(())
    }
}
