//! Jobs: commands that go on without their caller.

use crate::avfs::Avfs;
use crate::error::{Error, ErrorKind, Result};
use crate::face::Face;
use crate::result::CommandResult;
use crate::vault::Vault;
use avfs_api::wire::{
    Exec, JobAnswer, JobItem, JobKill, JobKilled, JobList, JobLogs, JobPoll, JobPolled, JobResize,
    JobStart, JobStdin, JobWait, LifetimeWord, StreamWord,
};
use std::fmt;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// How long a job lives.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    /// For whom it runs. Left out: for its vault.
    pub lifetime: LifetimeWord,
    /// With the lifetime `Client`: how long it runs on when nobody asks after it. Left out: a minute.
    pub lease: Option<Duration>,
}

/// There is a job, or a result that says why there is none.
#[derive(Debug)]
pub enum Started {
    /// It runs.
    Job(Job),
    /// It was not let run: denied, or to be approved first.
    Refused(Box<CommandResult>),
}

impl Started {
    /// The job; an error of kind `Denied` or `NeedsApproval` if there is none.
    pub fn job(self) -> Result<Job> {
        let refused = match self {
            Started::Job(job) => return Ok(job),
            Started::Refused(refused) => refused,
        };
        let reason = refused.decision.reason.clone();
        let reason = reason.unwrap_or_else(|| format!("rule {}", refused.decision.rule));
        Err(match &refused.approval_id {
            Some(id) => Error::new(ErrorKind::NeedsApproval, reason)
                .with_hint(format!("have {id} approved, then use `Command::approval`")),
            None => Error::new(ErrorKind::Denied, reason),
        })
    }
}

pub(crate) fn start(vault: &Vault, exec: Exec, options: &JobOptions) -> Result<Started> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let answer = vault.ask(&JobStart {
        exec,
        lifetime: options.lifetime,
        lease_ms: options.lease.map(millis),
    })?;
    Ok(match answer {
        JobAnswer::Started(started) => Started::Job(Job {
            face: Arc::clone(&vault.face),
            id: started.job_id,
        }),
        JobAnswer::Refused(envelope) => Started::Refused(Box::new(CommandResult::new(*envelope))),
    })
}

impl Avfs {
    /// The jobs of all vaults, the newest first.
    pub fn jobs(&self) -> Result<Vec<JobItem>> {
        Ok(self.ask(&JobList::default())?.jobs)
    }

    /// A job by its id, for whoever started it earlier. Whether there is one shows when it is asked.
    pub fn job(&self, id: u64) -> Job {
        Job {
            face: Arc::clone(&self.face),
            id,
        }
    }
}

/// A job. Cheap to clone; dropping it does nothing to the job.
#[derive(Clone)]
pub struct Job {
    face: Arc<Face>,
    id: u64,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Job").field(&self.id).finish()
    }
}

impl Job {
    /// Its id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How it stands with it.
    pub fn status(&self) -> Result<JobItem> {
        Ok(self.poll_up_to(0, 0, Some(0))?.job)
    }

    /// How it stands with it, and up to 1 MiB of what it wrote to each stream from these offsets on.
    pub fn poll(&self, stdout_offset: u64, stderr_offset: u64) -> Result<JobPolled> {
        self.poll_up_to(stdout_offset, stderr_offset, None)
    }

    fn poll_up_to(
        &self,
        stdout_offset: u64,
        stderr_offset: u64,
        limit: Option<u64>,
    ) -> Result<JobPolled> {
        let request = JobPoll {
            job_id: self.id,
            stdout_offset,
            stderr_offset,
            limit,
            envelope: false,
        };
        self.face.call("", &request)
    }

    /// Has `on_output` called with what it writes, from the first byte on, until it is over; none if `on_output` broke
    /// off.
    pub fn follow(
        &self,
        mut on_output: impl FnMut(StreamWord, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<JobItem>> {
        let request = JobLogs {
            job_id: self.id,
            ..JobLogs::default()
        };
        self.face.job_follow(&request, &mut on_output)
    }

    /// Waits until it is over. An error of kind `Unavailable` if it was lost: its daemon was gone before it.
    pub fn wait(&self) -> Result<CommandResult> {
        loop {
            let request = JobWait {
                job_id: self.id,
                timeout_ms: None,
            };
            let waited = self.face.call("", &request)?;
            if let Some(envelope) = waited.envelope {
                return Ok(CommandResult::new(*envelope));
            }
            if !waited.job.running {
                let reason = waited.job.ending.reason;
                let reason = reason.unwrap_or_else(|| "how it ended is not known".into());
                let what = format!("job {} was lost: {reason}", self.id);
                return Err(Error::new(ErrorKind::Unavailable, what));
            }
        }
    }

    /// Ends it: it is asked to, and soon killed.
    pub fn kill(&self) -> Result<JobKilled> {
        self.send(None)
    }

    /// Sends a signal to every process of it.
    pub fn signal(&self, number: i32) -> Result<JobKilled> {
        self.send(Some(number))
    }

    fn send(&self, signal: Option<i32>) -> Result<JobKilled> {
        let request = JobKill {
            job_id: self.id,
            signal,
        };
        self.face.call("", &request)
    }

    /// Brings it what it reads, with [`Command::stdin_piped`](crate::Command::stdin_piped); says how much it took.
    pub fn write_stdin(&self, content: impl Into<Vec<u8>>) -> Result<u64> {
        self.bring(Cursor::new(content.into()), false)
    }

    /// Brings it all that a reader yields; says how much it took.
    pub fn write_stdin_from(&self, content: impl Read + Send + 'static) -> Result<u64> {
        self.bring(content, false)
    }

    /// Tells it that nothing more will come.
    pub fn close_stdin(&self) -> Result<()> {
        self.bring(std::io::empty(), true).map(drop)
    }

    fn bring(&self, content: impl Read + Send + 'static, eof: bool) -> Result<u64> {
        let request = JobStdin {
            job_id: self.id,
            eof,
        };
        Ok(self.face.upload("", &request, content)?.bytes)
    }

    /// Gives its terminal another size.
    pub fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        let request = JobResize {
            job_id: self.id,
            rows,
            columns,
        };
        self.face.call("", &request)?;
        Ok(())
    }
}
