//! Commands that go on without their caller.

use crate::mcp::answer::{Object, beginning, bytes_of, fitting, word};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{CURRENT, JobItem, JobKill, JobList, JobPoll, JobWait};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a command that its line shows.
const COMMAND: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobTool {
    action: JobAction,
    job_id: Option<u64>,
    /// For list.
    vault: Option<String>,
    /// Where to go on reading.
    #[serde(default)]
    stdout_offset: u64,
    #[serde(default)]
    stderr_offset: u64,
    /// For wait: at most 30.
    timeout_secs: Option<u64>,
    /// For kill; left out: ended.
    signal: Option<i32>,
    max_tokens: Option<usize>,
}

#[derive(Copy, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobAction {
    List,
    Poll,
    Wait,
    Kill,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct JobSaid {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<JobLine>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    job: Option<JobLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_offset: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    changed_files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct JobLine {
    job_id: u64,
    running: bool,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    command: String,
    vault: String,
}

impl Asked for JobTool {
    const NAME: &'static str = "job";
    const SENTENCE: &'static str = "Follow background jobs: list, poll (output from offsets on), wait for the end, kill. \
        Jobs survive this client.";
    const ROWS: &'static [&'static str] = &["job_list", "job_poll", "job_wait", "job_kill"];
    const IF_MISSING: Option<&'static str> = Some("job {\"action\":\"list\"}");
    type Answer = Object<JobSaid>;

    async fn run(self, hands: &Hands) -> Result<Object<JobSaid>, Failure> {
        if let JobAction::List = self.action {
            return self.list(hands).await.map(Object);
        }
        let job_id = self.job_id.ok_or_else(|| {
            Failure::invalid("this action needs a job_id").hint("list gives the ids")
        })?;
        match self.action {
            JobAction::Wait => {
                let wait = JobWait {
                    job_id,
                    timeout_ms: self.timeout_secs.map(|secs| secs.saturating_mul(1000)),
                };
                hands.ask("", &wait).await?;
            }
            JobAction::Kill => {
                let signal = self.signal;
                hands.ask("", &JobKill { job_id, signal }).await?;
            }
            JobAction::List | JobAction::Poll => {}
        }
        self.poll(hands, job_id).await.map(Object)
    }
}

impl JobTool {
    async fn list(self, hands: &Hands) -> Result<JobSaid, Failure> {
        let named = hands.vault(self.vault.as_deref());
        let request = JobList {
            vault: (named != CURRENT).then(|| named.to_owned()),
            running: false,
            ..JobList::default()
        };
        let listing = hands.ask("", &request).await?;
        let jobs = listing.jobs.into_iter().map(line).collect();
        let (jobs, whole) = fitting(jobs, bytes_of(self.max_tokens));
        Ok(JobSaid {
            jobs,
            next: (!whole).then(|| "there are older ones; name a vault".into()),
            ..JobSaid::default()
        })
    }

    async fn poll(self, hands: &Hands, job_id: u64) -> Result<JobSaid, Failure> {
        let poll = JobPoll {
            job_id,
            stdout_offset: self.stdout_offset,
            stderr_offset: self.stderr_offset,
            limit: Some(bytes_of(self.max_tokens) as u64 / 2),
            envelope: true,
        };
        let polled = hands.ask("", &poll).await?;
        let (out, err) = (polled.offsets.stdout, polled.offsets.stderr);
        let more = out.to < out.kept || err.to < err.kept;
        let next = match (more, polled.job.running) {
            (true, _) => Some("poll again with these offsets: there is more output".into()),
            (false, true) => Some("wait, or poll again with these offsets".into()),
            (false, false) => None,
        };
        let envelope = polled.envelope;
        let changed = envelope.map_or_else(Vec::new, |it| it.result.changed_files);
        Ok(JobSaid {
            stdout: Some(polled.stdout),
            stderr: Some(polled.stderr),
            stdout_offset: Some(out.to),
            stderr_offset: Some(err.to),
            changed_files: fitting(changed, bytes_of(self.max_tokens) / 4).0,
            next,
            job: Some(line(polled.job)),
            ..JobSaid::default()
        })
    }
}

fn line(job: JobItem) -> JobLine {
    JobLine {
        job_id: job.job_id,
        running: job.running,
        status: word(job.status),
        exit_code: job.ending.exit_code,
        command: beginning(&job.command, COMMAND).to_owned(),
        vault: job.vault,
    }
}
