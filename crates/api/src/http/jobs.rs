//! Jobs over HTTP.

use super::envelope::{self, Asked, Ended};
use super::errors::Failure;
use super::exec::{Silent, accepts_events, event};
use super::exec_input::{give_all, pass_on};
use super::items;
use super::routes::{Reply, Routes, blocking, by_method, parse, parse_vault, query, receive};
use super::{App, Ask};
use crate::bounds::lane_of;
use crate::wire::{
    Envelope, JobAnswer, JobItem, JobKill, JobKilled, JobList, JobListing, JobLogs, JobOffsets,
    JobPoll, JobPolled, JobResize, JobStart, JobStarted, JobStatus, JobStdin, JobStdinTaken,
    JobWait, JobWaited, JobWord, KilledWord, LifetimeWord, LogChunk, LogRange, Operation,
    StartedWord, StdinItem, StreamWord, WindowItem, to_text,
};
use avfs_runtime::{
    Control, ErrorKind, JobId, JobInfo, JobRequest, JobStart as Begun, JobState, Lifetime,
    PART_MAX, Runtime, Session, Stdin, Stream, VaultName, WindowSize,
};
use axum::body::BodyDataStream;
use axum::extract::{Path, Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// How long a job with the lifetime `client` runs on by itself, if nobody says otherwise.
const LEASE: Duration = Duration::from_secs(60);
/// The longest wait within one request.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often somebody who follows a silent job is looked after.
const LOOK: Duration = Duration::from_secs(1);
/// How long what nobody takes is still listened to.
const DRAIN: Duration = Duration::from_millis(500);
/// The most bytes in one event.
const CHUNK: u64 = 16 << 10;
/// Events a slow reader may leave waiting. The job itself never waits.
const QUEUE: usize = 4;
const TERM: i32 = 15;
const KILL: i32 = 9;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .add::<JobStart>(post(start))
        .plain::<JobList>(list)
        .plain::<JobPoll>(poll)
        .add::<JobLogs>(get(logs))
        .plain::<JobWait>(wait)
        .plain::<JobKill>(kill)
        .add::<JobStdin>(by_method::<JobStdin, _, _>(stdin))
        .plain::<JobResize>(resize)
}

async fn start(
    State(app): State<Arc<App>>,
    Path(vault): Path<String>,
    request: Request,
) -> Result<Json<JobAnswer>, Failure> {
    let at_work = app.enter();
    let (caller, request) = receive::<JobStart>(&at_work, request).await?;
    let lifetime = lifetime(&request)?;
    let asked = Asked::for_job(parse_vault(&vault)?, request.exec)?;
    let turn = app.lanes.enter(lane_of(JobStart::NAME), &caller).await?;
    let log = app.place.log();
    let session = app.runtime.by(caller.principal);
    // It ends with this request: whoever goes away while the job is held for approval is not waited for.
    let call = app.calls.begin(caller.principal)?;
    let asker = Silent {
        wishes: call.wishes(),
    };
    let begun = tokio::task::spawn_blocking(move || {
        let _under_way = (at_work, turn);
        begin(&session, asked, lifetime, &asker)
    });
    let answer = begun.await.map_err(|_| Failure::panicked(&log))?;
    drop(call);
    answer.map(Json)
}

fn begin(
    runtime: &Session,
    asked: Asked,
    lifetime: Lifetime,
    asker: &Silent,
) -> Result<JobAnswer, Failure> {
    let stdin = asked.stdin().cloned();
    let exec = asked.request(Stdin::Empty, Arc::<Control>::default());
    let request = JobRequest {
        exec,
        lifetime,
        takes_input: stdin.is_some(),
        write_report: Box::new(move |report| {
            let envelope = envelope::envelope(&asked, report);
            serde_json::to_value(envelope).expect("wire types are plain data")
        }),
    };
    let info = match runtime.job_start(request, asker)? {
        Begun::Started(info) => info,
        Begun::Reported(report) => {
            let envelope = serde_json::from_value::<Envelope>(report);
            let envelope = envelope.expect("it was an envelope before");
            return Ok(JobAnswer::Refused(Box::new(envelope)));
        }
    };
    let whole = match stdin {
        None | Some(StdinItem::Live) => None,
        Some(StdinItem::Text(text)) => Some(text.into_bytes()),
        Some(StdinItem::Base64(bytes)) => Some(bytes.0),
    };
    // A job that is over already reads nothing.
    if let (Some(whole), Ok(input)) = (whole, runtime.job_input(info.id)) {
        runtime.job_end_input(info.id)?;
        // It ends when all is read, or when the command does.
        tokio::runtime::Handle::current().spawn(give_all(input.into(), whole));
    }
    Ok(JobAnswer::Started(JobStarted {
        job_id: info.id.number(),
        status: StartedWord::Started,
        exec: info.exec.to_string(),
        vault: info.vault.to_string(),
        lifetime: lifetime_word(info.lifetime),
    }))
}

fn lifetime(request: &JobStart) -> Result<Lifetime, Failure> {
    match (request.lifetime, request.lease_ms) {
        (LifetimeWord::Client, Some(0)) => Err(Failure::invalid(
            "a lease of no time at all ends the job at once",
        )),
        (LifetimeWord::Client, lease) => Ok(Lifetime::Client {
            lease: lease.map_or(LEASE, Duration::from_millis),
        }),
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

fn list(ask: &Ask, request: JobList) -> Reply<JobList> {
    let vault: Option<VaultName> = request.vault.as_deref().map(parse).transpose()?;
    let mut jobs = ask.session.job_list(vault.as_ref());
    jobs.retain(|job| !request.running || job.is_running());
    let jobs = jobs.iter().map(item).collect();
    Ok(JobListing { jobs })
}

fn item(info: &JobInfo) -> JobItem {
    let mut item = JobItem {
        job_id: info.id.number(),
        running: info.is_running(),
        status: JobStatus::Job(JobWord::Running),
        exit_code: None,
        signal: None,
        reason: None,
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
            item.exit_code = status.exit_code();
            item.signal = ended.signal;
            item.reason = why.clone().or(ended.reason);
            item.version = *version;
        }
        JobState::Failed { error } => {
            item.status = JobStatus::Job(JobWord::Failed);
            item.reason = Some(error.clone());
        }
        JobState::Lost { why } => {
            item.status = JobStatus::Job(JobWord::Lost);
            item.reason = Some(why.clone());
        }
    }
    item
}

fn poll(ask: &Ask, request: JobPoll) -> Reply<JobPoll> {
    let id = JobId::new(request.job_id);
    let _attending = ask.session.job_attend(id)?;
    // Before the logs: of a job that is over now, they are whole.
    let info = ask.session.job(id)?;
    let most = request.limit.unwrap_or(PART_MAX).min(PART_MAX);
    let part = |stream, from| -> Result<_, Failure> {
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

/// Leaves a character that is not all there yet to the next part.
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
    let report = runtime.job_report(id)?;
    // One that an older version wrote may lack what this one wants to know.
    Ok(report.and_then(|report| serde_json::from_value(report).ok()))
}

fn wait(ask: &Ask, request: JobWait) -> Reply<JobWait> {
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

fn kill(ask: &Ask, request: JobKill) -> Reply<JobKill> {
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

fn resize(ask: &Ask, request: JobResize) -> Reply<JobResize> {
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

async fn stdin(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<JobStdinTaken>, Failure> {
    let _at_work = app.enter();
    let (caller, JobStdin { job_id, eof }, body) = query(request)?;
    let session = app.runtime.by(caller.principal);
    let id = JobId::new(job_id);
    let mut body = body.into_data_stream();
    let taken = take_input(&session, id, &mut body).await;
    // Whoever is still sending would not hear the answer.
    let _ = tokio::time::timeout(DRAIN, async { while body.next().await.is_some() {} }).await;
    let bytes = taken?;
    if eof {
        session.job_end_input(id)?;
    }
    Ok(Json(JobStdinTaken { job_id, bytes, eof }))
}

async fn take_input(
    runtime: &Session,
    id: JobId,
    body: &mut BodyDataStream,
) -> Result<u64, Failure> {
    let _attending = runtime.job_attend(id)?;
    let input = runtime.job_input(id)?;
    Ok(pass_on(body, input.into()).await)
}

async fn logs(State(app): State<Arc<App>>, request: Request) -> Result<Response, Failure> {
    let at_work = app.enter();
    let wants_events = accepts_events(request.headers());
    let resumed = resumed(&request);
    let (caller, mut request) = receive::<JobLogs>(&at_work, request).await?;
    if let Some([stdout, stderr]) = resumed {
        (request.stdout_offset, request.stderr_offset) = (stdout, stderr);
    }
    if !wants_events {
        let poll_request = JobPoll {
            job_id: request.job_id,
            stdout_offset: request.stdout_offset,
            stderr_offset: request.stderr_offset,
            ..JobPoll::default()
        };
        return blocking::<JobPoll, _>(app, at_work, caller, move |ask| poll(ask, poll_request))
            .await;
    }
    let turn = app.lanes.enter(lane_of(JobLogs::NAME), &caller).await?;
    let ask = Ask::new(app, caller);
    ask.session.job(JobId::new(request.job_id))?;
    let (events, queue) = mpsc::channel::<Event>(QUEUE);
    tokio::task::spawn_blocking(move || {
        let _under_way = (at_work, turn);
        if let Err(Some(failure)) = follow(&ask.session, &request, &events) {
            // An error here means that nobody is left to be told.
            let _ = events.blocking_send(event("error", failure.problem()));
        }
    });
    let events = ReceiverStream::new(queue).map(Ok::<_, Infallible>);
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

/// The offsets after the last event that a client has seen.
fn resumed(request: &Request) -> Option<[u64; 2]> {
    let last = request.headers().get("last-event-id")?.to_str().ok()?;
    let (stdout, stderr) = last.split_once('-')?;
    Some([stdout.parse().ok()?, stderr.parse().ok()?])
}

/// Tells what a job writes until it is over, or, with no failure, until nobody listens.
fn follow(
    runtime: &Session,
    request: &JobLogs,
    events: &mpsc::Sender<Event>,
) -> Result<(), Option<Failure>> {
    let failed = |error: avfs_runtime::Error| Some(Failure::from(error));
    let id = JobId::new(request.job_id);
    let _attending = runtime.job_attend(id).map_err(failed)?;
    let mut at = [request.stdout_offset, request.stderr_offset];
    let wanted: Vec<(usize, Stream)> = [(0, Stream::Stdout), (1, Stream::Stderr)]
        .into_iter()
        .filter(|(_, stream)| request.stream.is_none_or(|only| word(*stream) == only))
        .collect();
    loop {
        // Of a stream that is not wanted there is never more.
        let reached = [0, 1].map(|n| match wanted.iter().any(|(index, _)| *index == n) {
            true => at[n],
            false => u64::MAX,
        });
        let info = runtime.job_more(id, reached, LOOK).map_err(failed)?;
        for (index, stream) in &wanted {
            while at[*index] < info.kept[*index] {
                let part = runtime.job_read(id, *stream, at[*index], CHUNK);
                let part = part.map_err(failed)?;
                at[*index] += part.bytes.len() as u64;
                let chunk = LogChunk::new(part.from, part.bytes);
                let told = event(stream.name(), &chunk).id(format!("{}-{}", at[0], at[1]));
                events.blocking_send(told).map_err(|_| None)?;
            }
        }
        if events.is_closed() {
            return Err(None);
        }
        if !info.is_running() {
            let end = event("end", &item(&info)).id(format!("{}-{}", at[0], at[1]));
            return events.blocking_send(end).map_err(|_| None);
        }
    }
}

fn word(stream: Stream) -> StreamWord {
    match stream {
        Stream::Stdout => StreamWord::Stdout,
        Stream::Stderr => StreamWord::Stderr,
    }
}

/// Jobs that a daemon is not stopped under.
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
