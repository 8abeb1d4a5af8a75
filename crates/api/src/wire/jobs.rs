//! Jobs: commands that continue without their callers, their output, and their results.

use super::base64::Data;
use super::{Base64, Ending, Envelope, Exec, StatusWord, StreamWord, WindowItem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Starts a job. Its input is kept open if `exec.stdin` is `live`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobStart {
    /// The command, and on what terms.
    pub exec: Exec,
    /// For whom it runs.
    #[serde(default)]
    pub lifetime: LifetimeWord,
    /// With the lifetime `client`: how long it runs without a request about it. Default: one minute.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_ms: Option<u64>,
}

/// What a job's life is tied to.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LifetimeWord {
    /// To its client.
    Client,
    /// To its vault.
    #[default]
    Vault,
    /// To nothing.
    Detached,
}

/// A job, or an envelope that says why there is none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum JobAnswer {
    /// There is a job.
    Started(JobStarted),
    /// There is none, and this is why.
    Refused(Box<Envelope>),
}

/// A job that was started.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobStarted {
    /// The id of the job.
    pub job_id: u64,
    /// Always `started`.
    pub status: StartedWord,
    /// The id of the exec.
    pub exec: String,
    /// The name of the vault.
    pub vault: String,
    /// For whom it runs.
    pub lifetime: LifetimeWord,
}

/// The status of a job that was just started.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartedWord {
    /// It was started.
    Started,
}

/// The state of a job: a word of its own, or how its command ended.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum JobStatus {
    /// A word of its own.
    Job(JobWord),
    /// How its command ended.
    Command(StatusWord),
}

/// How it stands with a job, beside the ways in which a command ends.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobWord {
    /// It runs.
    Running,
    /// The daemon ended before the job: its exit status is not known.
    Lost,
    /// avfs failed.
    Failed,
}

/// What is known of a job.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobItem {
    /// The id of the job.
    pub job_id: u64,
    /// Whether it runs.
    pub running: bool,
    /// How it stands with it.
    pub status: JobStatus,
    /// What the kernel said of its end, and the reason for it.
    #[serde(flatten)]
    pub ending: Ending,
    /// The id of the exec.
    pub exec: String,
    /// The name of the vault.
    pub vault: String,
    /// The command, as one line.
    pub command: String,
    /// Who did it: `owner`, `agent`, `agent:NAME` or `system`.
    pub by: String,
    /// For whom it runs.
    pub lifetime: LifetimeWord,
    /// How long it runs on when nobody asks after it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_ms: Option<u64>,
    /// The size of its terminal, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub terminal: Option<WindowItem>,
    /// When it began, as RFC 3339.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// The version with its changes; null while it runs, and if it changed nothing.
    pub version: Option<u64>,
    /// How much it wrote to standard output by now.
    pub stdout_bytes: u64,
    /// How much it wrote to standard error by now.
    pub stderr_bytes: u64,
}

/// Lists the jobs, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobList {
    /// Only those of this vault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vault: Option<String>,
    /// Only running jobs.
    #[serde(default)]
    pub running: bool,
    /// How many at most. Default: all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<NonZeroUsize>,
    /// Only what follows: `next_cursor` of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<String>,
}

/// The answer to [`JobList`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobListing {
    /// The newest first.
    pub jobs: Vec<JobItem>,
    /// Where the next page begins; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
}

/// Asks for the state of a job, and for its output from these offsets on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobPoll {
    /// The id of the job.
    pub job_id: u64,
    /// From this byte of standard output on.
    #[serde(default)]
    pub stdout_offset: u64,
    /// From this byte of standard error on.
    #[serde(default)]
    pub stderr_offset: u64,
    /// How many bytes of each stream at most. Default and maximum: 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
    /// Adds the envelope of a job that has ended.
    #[serde(default)]
    pub envelope: bool,
}

/// A job, and a part of its output. The next part begins at `offsets.….to`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobPolled {
    /// The job.
    #[serde(flatten)]
    pub job: JobItem,
    /// The part of standard output.
    pub stdout: String,
    /// The exact bytes of `stdout`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stdout_b64: Option<Base64>,
    /// The part of standard error.
    pub stderr: String,
    /// The exact bytes of `stderr`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stderr_b64: Option<Base64>,
    /// Where these parts are.
    pub offsets: JobOffsets,
    /// What became of its command, if that was asked for and it is over.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub envelope: Option<Box<Envelope>>,
}

/// Which part of each stream an answer holds.
#[derive(Copy, Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobOffsets {
    /// Of standard output.
    pub stdout: LogRange,
    /// Of standard error.
    pub stderr: LogRange,
}

/// A part of a log.
#[derive(Copy, Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogRange {
    /// The first byte of this part.
    pub from: u64,
    /// The byte after the last one of this part.
    pub to: u64,
    /// How many bytes can be read now.
    pub kept: u64,
    /// How many were written so far: more than are kept once the log is full.
    pub written: u64,
}

/// Follows the output of a job, as events; the id of each is the position to continue from. Without events it is as
/// [`JobPoll`].
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobLogs {
    /// The id of the job.
    pub job_id: u64,
    /// From this byte of standard output on.
    #[serde(default)]
    pub stdout_offset: u64,
    /// From this byte of standard error on.
    #[serde(default)]
    pub stderr_offset: u64,
    /// Only this stream.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stream: Option<StreamWord>,
}

/// The events for a client that follows a job, in order.
#[derive(Clone, Debug)]
pub enum JobEvent {
    /// Bytes that it wrote.
    Output(StreamWord, LogChunk),
    /// It has ended, and all of its output was sent.
    End(Box<JobItem>),
}

/// Bytes of a log: as `data` if they are UTF-8, else as `data_b64`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogChunk {
    /// Where they begin in their stream.
    pub offset: u64,
    #[serde(flatten)]
    data: Data,
}

impl LogChunk {
    /// These bytes of a log.
    pub fn new(offset: u64, bytes: Vec<u8>) -> LogChunk {
        let data = Data::new(bytes);
        LogChunk { offset, data }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }
}

/// Waits until a job has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobWait {
    /// The id of the job.
    pub job_id: u64,
    /// How long. Default and maximum: half a minute; then ask again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_ms: Option<u64>,
}

/// The answer to [`JobWait`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobWaited {
    /// The job.
    #[serde(flatten)]
    pub job: JobItem,
    /// Its envelope, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub envelope: Option<Box<Envelope>>,
}

/// Sends a signal to every process of a job. Default: SIGTERM, and SIGKILL after two seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobKill {
    /// The id of the job.
    pub job_id: u64,
    /// The signal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<i32>,
}

/// The answer to [`JobKill`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobKilled {
    /// The id of the job.
    pub job_id: u64,
    /// The first signal that was sent.
    pub signal: i32,
    /// What the signal did.
    pub status: KilledWord,
}

/// What a signal did.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KilledWord {
    /// No process of it is left.
    Killed,
    /// The signal was sent.
    Signaled,
}

/// Sends a job its input, as the body of the request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobStdin {
    /// The id of the job.
    pub job_id: u64,
    /// Closes the input afterwards.
    #[serde(default)]
    pub eof: bool,
}

/// The answer to [`JobStdin`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobStdinTaken {
    /// The id of the job.
    pub job_id: u64,
    /// How much the job read.
    pub bytes: u64,
    /// Whether nothing more will come.
    pub eof: bool,
}

/// Resizes a job's terminal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobResize {
    /// The id of the job.
    pub job_id: u64,
    /// Lines of the terminal.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_word() {
        let text = |status| serde_json::to_string(&status).unwrap();
        let words = [
            (JobStatus::Job(JobWord::Running), "\"running\""),
            (JobStatus::Job(JobWord::Lost), "\"lost\""),
            (JobStatus::Command(StatusWord::Exited), "\"exited\""),
            (JobStatus::Command(StatusWord::TimedOut), "\"timed_out\""),
        ];
        for (status, word) in words {
            assert_eq!(text(status), word);
            assert_eq!(serde_json::from_str::<JobStatus>(word).unwrap(), status);
        }
    }

    /// Text that older programs wrote and read: its fields, their order, and what is left out.
    #[test]
    fn a_job_is_written_as_ever() {
        let running = r#"{"job_id":3,"running":true,"status":"running","exit_code":null,"signal":null,"exec":"e","vault":"v","command":"c","by":"owner","lifetime":"vault","started_at":"s","ended_at":null,"version":null,"stdout_bytes":1,"stderr_bytes":2}"#;
        let ended = r#"{"job_id":3,"running":false,"status":"signaled","exit_code":null,"signal":9,"reason":"killed","exec":"e","vault":"v","command":"c","by":"owner","lifetime":"vault","started_at":"s","ended_at":"t","version":4,"stdout_bytes":1,"stderr_bytes":2}"#;
        for text in [running, ended] {
            let item: JobItem = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&item).unwrap(), text);
            let waited: JobWaited = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&waited).unwrap(), text);
        }
    }

    #[test]
    fn a_log_keeps_its_bytes() {
        for bytes in [b"text".as_slice(), b"\xff\x00", b""] {
            let text = serde_json::to_string(&LogChunk::new(3, bytes.to_vec())).unwrap();
            let back: LogChunk = serde_json::from_str(&text).unwrap();
            assert_eq!((back.offset, back.bytes()), (3, bytes));
        }
    }
}
