//! Jobs.

use super::envelope::{self, Asked, Ended};
use super::failure::Failure;
use super::handler::{Feed, Listener, Reply, Resume};
use super::page::{self, Page};
use super::{Ask, input, items};
use crate::wire::{
    Ending, Envelope, JobAnswer, JobEvent, JobItem, JobKill, JobKilled, JobList, JobListing,
    JobLogs, JobOffsets, JobPoll, JobPolled, JobResize, JobStart, JobStarted, JobStatus, JobStdin,
    JobStdinTaken, JobWait, JobWaited, JobWord, KilledWord, LifetimeWord, LogChunk, LogRange,
    StartedWord, StreamWord, WindowItem, to_text,
};
use avfs_runtime::{
    Cancel, Control, Error, ErrorKind, JobId, JobInfo, JobRequest, JobStart as Begun, JobState,
    KeptReport, Lifetime, OutputSink, PART_MAX, Runtime, Select, Session, Stdin, Stream, VaultName,
    Watcher, WindowSize,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest wait within one request.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often a client that follows a silent job is checked.
const LOOK: Duration = Duration::from_secs(1);
/// The most bytes in one event.
const CHUNK: u64 = 16 << 10;
const TERM: i32 = 15;
const KILL: i32 = 9;

/// Starts a job. If the caller disconnects while it waits for approval, the request is dropped.
pub(crate) fn start(
    ask: &Ask,
    vault: Select,
    request: JobStart,
    watcher: &dyn Watcher,
) -> Reply<JobStart> {
    let lifetime = lifetime(&request)?;
    let asked = Asked::new(vault, request.exec)?;
    let stdin = asked.stdin().cloned();
    let exec = asked.request(Stdin::Empty, Arc::<Control>::default());
    let request = JobRequest {
        exec,
        lifetime,
        takes_input: stdin.is_some(),
    };
    let info = match ask.session.job_start(request, &Asker(watcher))? {
        Begun::Started(info) => info,
        Begun::Reported(report) => {
            let envelope = envelope::envelope(*report);
            return Ok(JobAnswer::Refused(Box::new(envelope)));
        }
    };
    let (exec, by) = (info.exec.to_string(), ask.session.principal());
    ask.app.logs.job(info.id.number(), &exec, by);
    // A job that has ended reads nothing.
    if let Some(whole) = stdin.as_ref().and_then(input::whole)
        && let Ok(pipe) = ask.session.job_input(info.id)
    {
        ask.session.job_end_input(info.id)?;
        input::give_all(pipe.into(), whole);
    }
    Ok(JobAnswer::Started(JobStarted {
        job_id: info.id.number(),
        status: StartedWord::Started,
        exec,
        vault: info.vault.to_string(),
        lifetime: lifetime_word(info.lifetime),
    }))
}

/// The caller of `job start` gets no events.
struct Asker<'a>(&'a dyn Watcher);

impl OutputSink for Asker<'_> {
    fn output(&self, _: Stream, _: &[u8], _: Option<Instant>) {}

    fn cancelled(&self) -> Option<Cancel> {
        self.0.cancelled().then_some(Cancel::Leave)
    }
}

fn lifetime(request: &JobStart) -> Result<Lifetime, Failure> {
    match (request.lifetime, request.lease_ms) {
        (LifetimeWord::Client, lease) => {
            let lease = lease.map(Duration::from_millis);
            Ok(Lifetime::client(lease)?)
        }
        (_, Some(_)) => Err(Failure::invalid(
            "a lease is for jobs with the lifetime `client`",
        )),
        (LifetimeWord::Vault, None) => Ok(Lifetime::Vault),
        (LifetimeWord::Detached, None) => Ok(Lifetime::Detached),
    }
}

fn lifetime_word(lifetime: Lifetime) -> LifetimeWord {
    match lifetime {
        Lifetime::Client { .. } => LifetimeWord::Client,
        Lifetime::Vault => LifetimeWord::Vault,
        Lifetime::Detached => LifetimeWord::Detached,
    }
}

pub(crate) fn list(ask: &Ask, request: JobList) -> Reply<JobList> {
    let vault: Option<VaultName> = ask.named_if_any(request.vault.as_deref())?;
    let mut jobs = ask.session.job_list(vault.as_ref());
    jobs.retain(|job| !request.running || job.is_running());
    if let Some(cursor) = &request.cursor {
        let before: u64 = cursor.parse().map_err(|_| page::no_cursor(cursor))?;
        jobs.retain(|job| job.id.number() < before);
    }
    let page = Page::of(jobs, request.limit, |job| job.id.to_string());
    Ok(JobListing {
        jobs: page.items.iter().map(item).collect(),
        next_cursor: page.next,
    })
}

fn item(info: &JobInfo) -> JobItem {
    let mut item = JobItem {
        job_id: info.id.number(),
        running: info.is_running(),
        status: JobStatus::Job(JobWord::Running),
        ending: Ending::default(),
        exec: info.exec.to_string(),
        vault: info.vault.to_string(),
        command: info.command.clone(),
        by: info.by.to_string(),
        lifetime: lifetime_word(info.lifetime),
        lease_ms: match info.lifetime {
            Lifetime::Client { lease } => Some(lease.as_millis() as u64),
            Lifetime::Vault | Lifetime::Detached => None,
        },
        terminal: info.terminal.map(|size| WindowItem {
            rows: size.rows,
            columns: size.columns,
        }),
        started_at: items::time(info.started),
        ended_at: info.ended.map(items::time),
        version: None,
        stdout_bytes: info.written[0],
        stderr_bytes: info.written[1],
    };
    match &info.state {
        JobState::Running => {}
        JobState::Ended {
            status,
            why,
            version,
        } => {
            let ended = Ended::of(status);
            item.status = JobStatus::Command(ended.status);
            item.ending = ended.ending;
            if let Some(why) = why {
                item.ending.reason = Some(why.clone());
            }
            item.version = *version;
        }
        JobState::Failed { error } => {
            item.status = JobStatus::Job(JobWord::Failed);
            item.ending.reason = Some(error.clone());
        }
        JobState::Lost { why } => {
            item.status = JobStatus::Job(JobWord::Lost);
            item.ending.reason = Some(why.clone());
        }
    }
    item
}

pub(crate) fn poll(ask: &Ask, request: JobPoll) -> Reply<JobPoll> {
    part_of(ask, request, None)
}

/// A job, and a part of its output: of both streams, or of one.
fn part_of(ask: &Ask, request: JobPoll, only: Option<StreamWord>) -> Result<JobPolled, Failure> {
    let id = JobId::new(request.job_id);
    let _attending = ask.session.job_attend(id)?;
    // Before the logs: if the job has ended, they are complete.
    let info = ask.session.job(id)?;
    let most = request.limit.unwrap_or(PART_MAX).min(PART_MAX);
    let part = |stream, from| -> Result<_, Failure> {
        let wanted = only.is_none_or(|only| word(stream) == only);
        let most = if wanted { most } else { 0 };
        let mut part = ask.session.job_read(id, stream, from, most)?;
        let reached = from + part.bytes.len() as u64;
        whole_characters(&mut part.bytes, info.is_running() || reached < part.kept);
        let range = LogRange {
            from,
            to: from + part.bytes.len() as u64,
            kept: part.kept,
            written: part.written,
        };
        Ok((range, to_text(part.bytes)))
    };
    let (stdout_range, (stdout, stdout_b64)) = part(Stream::Stdout, request.stdout_offset)?;
    let (stderr_range, (stderr, stderr_b64)) = part(Stream::Stderr, request.stderr_offset)?;
    Ok(JobPolled {
        job: item(&info),
        stdout,
        stdout_b64,
        stderr,
        stderr_b64,
        offsets: JobOffsets {
            stdout: stdout_range,
            stderr: stderr_range,
        },
        envelope: match request.envelope {
            true => kept_envelope(&ask.session, id)?,
            false => None,
        },
    })
}

/// Leaves an incomplete UTF-8 character for the next part.
fn whole_characters(bytes: &mut Vec<u8>, more_may_come: bool) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
        && more_may_come
        && (error.valid_up_to() > 0 || bytes.len() < 4)
    {
        bytes.truncate(error.valid_up_to());
    }
}

fn kept_envelope(runtime: &Session, id: JobId) -> Result<Option<Box<Envelope>>, Failure> {
    Ok(match runtime.job_report(id)? {
        None => None,
        Some(KeptReport::Report(report)) => Some(Box::new(envelope::envelope(*report))),
        // An envelope of an older version may lack fields.
        Some(KeptReport::Envelope(kept)) => serde_json::from_value(kept).ok(),
    })
}

pub(crate) fn wait(ask: &Ask, request: JobWait) -> Reply<JobWait> {
    let id = JobId::new(request.job_id);
    let _attending = ask.session.job_attend(id)?;
    let patience = request.timeout_ms.map_or(WAIT_MAX, Duration::from_millis);
    let info = ask.session.job_wait(id, patience.min(WAIT_MAX))?;
    Ok(JobWaited {
        job: item(&info),
        envelope: match info.is_running() {
            true => None,
            false => kept_envelope(&ask.session, id)?,
        },
    })
}

pub(crate) fn kill(ask: &Ask, request: JobKill) -> Reply<JobKill> {
    let id = JobId::new(request.job_id);
    let info = ask.session.job_kill(id, request.signal)?;
    Ok(JobKilled {
        job_id: request.job_id,
        signal: request.signal.unwrap_or(TERM),
        status: match (info.is_running(), request.signal) {
            (false, None | Some(KILL)) => KilledWord::Killed,
            _ => KilledWord::Signaled,
        },
    })
}

pub(crate) fn resize(ask: &Ask, request: JobResize) -> Reply<JobResize> {
    let id = JobId::new(request.job_id);
    let _attending = ask.session.job_attend(id)?;
    let size = WindowSize {
        rows: request.rows,
        columns: request.columns,
    };
    ask.session.job_resize(id, size)?;
    Ok(WindowItem {
        rows: request.rows,
        columns: request.columns,
    })
}

/// Refuses a job that has no terminal.
pub(crate) fn has_terminal(ask: &Ask, job_id: u64) -> Result<(), Failure> {
    let id = JobId::new(job_id);
    match ask.session.job(id)?.terminal {
        Some(_) => Ok(()),
        None => Err(Error::NoTerminal { id }.into()),
    }
}

pub(crate) fn stdin(ask: &Ask, request: JobStdin) -> Result<Feed<JobStdin>, Failure> {
    let JobStdin { job_id, eof } = request;
    let (id, session) = (JobId::new(job_id), ask.session.clone());
    let attending = session.job_attend(id)?;
    let pipe = session.job_input(id)?.into();
    let done = move |bytes| {
        drop(attending);
        if eof {
            session.job_end_input(id)?;
        }
        Ok(JobStdinTaken { job_id, bytes, eof })
    };
    Ok(Feed {
        pipe,
        done: Box::new(done),
    })
}

/// A part of the logs.
pub(crate) fn logs(ask: &Ask, request: JobLogs, resume: Resume) -> Reply<JobLogs> {
    let [stdout_offset, stderr_offset] = offsets(&request, resume);
    let only = request.stream;
    let request = JobPoll {
        job_id: request.job_id,
        stdout_offset,
        stderr_offset,
        ..JobPoll::default()
    };
    part_of(ask, request, only)
}

fn offsets(request: &JobLogs, resume: Resume) -> [u64; 2] {
    resume.unwrap_or([request.stdout_offset, request.stderr_offset])
}

/// All logs from there on, for a listener.
pub(crate) fn follow(ask: &Ask, request: JobLogs, resume: Resume) -> Result<Following, Failure> {
    let id = JobId::new(request.job_id);
    ask.session.job(id)?;
    Ok(Following {
        session: ask.session.clone(),
        id,
        at: offsets(&request, resume),
        only: request.stream,
    })
}

/// A job whose logs are followed.
pub(crate) struct Following {
    session: Session,
    id: JobId,
    /// The first offset in each stream.
    pub at: [u64; 2],
    only: Option<StreamWord>,
}

impl Following {
    /// Sends the output of the job until it has ended, or the listener disconnects.
    pub fn tell(self, listener: &dyn Listener<JobEvent>) -> Result<(), Failure> {
        let _attending = self.session.job_attend(self.id)?;
        let mut at = self.at;
        let wanted: Vec<(usize, Stream)> = [(0, Stream::Stdout), (1, Stream::Stderr)]
            .into_iter()
            .filter(|(_, stream)| self.only.is_none_or(|only| word(*stream) == only))
            .collect();
        loop {
            // A stream that is not wanted has no more data.
            let reached = [0, 1].map(|n| match wanted.iter().any(|(index, _)| *index == n) {
                true => at[n],
                false => u64::MAX,
            });
            let info = self.session.job_more(self.id, reached, LOOK)?;
            for (index, stream) in &wanted {
                while at[*index] < info.kept[*index] && !listener.is_gone() {
                    let part = self.session.job_read(self.id, *stream, at[*index], CHUNK)?;
                    at[*index] += part.bytes.len() as u64;
                    let chunk = LogChunk::new(part.from, part.bytes);
                    listener.tell(JobEvent::Output(word(*stream), chunk), &|| true);
                }
            }
            if listener.is_gone() {
                return Ok(());
            }
            if !info.is_running() {
                listener.tell(JobEvent::End(Box::new(item(&info))), &|| true);
                return Ok(());
            }
        }
    }
}

fn word(stream: Stream) -> StreamWord {
    match stream {
        Stream::Stdout => StreamWord::Stdout,
        Stream::Stderr => StreamWord::Stderr,
    }
}

/// Jobs that keep a daemon from being stopped.
pub(crate) fn detached(runtime: &Runtime) -> Result<(), Failure> {
    let jobs = runtime.detached_jobs();
    if jobs.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = jobs.iter().map(|id| format!("job {id}")).collect();
    let failure = Failure::new(
        ErrorKind::Conflict,
        format!("detached and running: {}", names.join(", ")),
    );
    Err(failure.hint("`avfs job kill` ends one; `avfs daemon stop --force` ends them all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_not_cut_while_more_may_come() {
        let cut = |bytes: &[u8], more| {
            let mut bytes = bytes.to_vec();
            whole_characters(&mut bytes, more);
            bytes
        };
        assert_eq!(cut("aä".as_bytes(), true), "aä".as_bytes());
        assert_eq!(cut(b"a\xc3", true), b"a");
        assert_eq!(cut(b"\xc3", true), b"");
        assert_eq!(cut(b"a\xc3", false), b"a\xc3");
        assert_eq!(cut(b"a\xff", true), b"a\xff", "that will never be text");
    }
}
