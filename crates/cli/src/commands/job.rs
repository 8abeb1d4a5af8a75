//! `avfs job`: commands in the background.

use super::exec;
use crate::args::{
    JobKillArgs, JobListArgs, JobLogsArgs, JobPollArgs, JobStartArgs, JobStdinArgs, JobVerb,
    JobWaitArgs, LifetimeName, StreamName, Time,
};
use crate::error::{Error, Result};
use crate::exit;
use crate::output::changes::{printable, printable_lines};
use crate::output::table::{table, time};
use crate::output::{self, Output, note, raw};
use crate::screen::Screen;
use crate::session::Session;
use avfs_api::wire::{
    Base64, CURRENT, Exec, JobAnswer, JobItem, JobKill, JobKilled, JobList, JobListing, JobLogs,
    JobPoll, JobPolled, JobStart, JobStatus, JobStdin, JobWait, JobWaited, JobWord, KilledWord,
    LifetimeWord, LogChunk, StdinItem, StreamWord,
};
use std::fs::File;
use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long one request waits before it is repeated.
const WAIT_STEP: Duration = Duration::from_secs(25);
/// How much of a command fits into a line.
const COMMAND_MAX: usize = 60;

pub fn run(verb: JobVerb, session: &mut Session, output: Output) -> Result<u8> {
    match verb {
        JobVerb::Start(args) => start(*args, session, output),
        JobVerb::Poll(args) => poll(args, session, output),
        JobVerb::List(args) => list(&args, session, output),
        JobVerb::Logs(args) => logs(&args, session, output),
        JobVerb::Wait(args) => wait(&args, session, output),
        JobVerb::Kill(args) => kill(&args, session, output),
        JobVerb::Stdin(args) => stdin(args, session, output),
    }
}

fn start(mut args: JobStartArgs, session: &mut Session, output: Output) -> Result<u8> {
    let file = args.run.stdin_file.take();
    let input = file.as_deref().map(open).transpose()?;
    let tty = match (args.run.tty, args.run.size) {
        (false, _) => None,
        (true, Some(size)) => Some(exec::tty(size)),
        (true, None) => Some(exec::tty(Screen::open()?.size())),
    };
    let exec = exec::request(args.run)?;
    let request = JobStart {
        exec: Exec {
            stdin: match input {
                Some(_) => Some(StdinItem::Live),
                None => exec.stdin.clone(),
            },
            tty,
            ..exec
        },
        lifetime: match args.lifetime {
            LifetimeName::Client => LifetimeWord::Client,
            LifetimeName::Vault => LifetimeWord::Vault,
            LifetimeName::Detached => LifetimeWord::Detached,
        },
        lease_ms: args.lease.map(Time::millis),
    };
    let started = match session.call(&request)? {
        JobAnswer::Started(started) => started,
        JobAnswer::Refused(envelope) => {
            match output.is_json() {
                true => output.value(&envelope)?,
                false => note(&output::exec::report(&envelope))?,
            }
            return Ok(envelope.exit_code());
        }
    };
    if let Some(input) = input {
        let job_id = started.job_id;
        session.bring(&JobStdin { job_id, eof: true }, input)?;
    }
    output.answer(&started, |started| {
        let id = started.job_id;
        format!("job {id} started; `avfs job logs -f {id}` follows it")
    })?;
    Ok(exit::OK)
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| Error::Invalid {
        text: format!("{} cannot be read: {error}", path.display()),
        hint: None,
    })
}

fn poll(args: JobPollArgs, session: &mut Session, output: Output) -> Result<u8> {
    let polled = session.call(&JobPoll {
        job_id: args.job,
        stdout_offset: args.offset,
        stderr_offset: args.stderr_offset,
        limit: args.limit,
        envelope: args.envelope,
    })?;
    if output.is_json() {
        output.value(&polled)?;
        return Ok(exit::OK);
    }
    print(&polled)?;
    note(&headline(&polled.job))?;
    Ok(exit::OK)
}

/// Copies the output of a job to our own.
fn print(polled: &JobPolled) -> Result<()> {
    raw(exact(&polled.stdout, polled.stdout_b64.as_ref()))?;
    let stderr = exact(&polled.stderr, polled.stderr_b64.as_ref());
    std::io::stderr()
        .lock()
        .write_all(stderr)
        .map_err(Error::output)
}

fn exact<'a>(text: &'a str, exact: Option<&'a Base64>) -> &'a [u8] {
    exact.map_or(text.as_bytes(), |exact| &exact.0)
}

/// The state of a job, in a line or two.
fn headline(job: &JobItem) -> String {
    let mut text = format!("avfs: job {} {}", job.job_id, outcome(job));
    if let Some(reason) = &job.ending.reason {
        text.push_str(&format!("\n  {}", printable_lines(reason)));
    }
    text
}

fn outcome(job: &JobItem) -> String {
    match (job.ending.exit_code, job.ending.signal) {
        (Some(code), _) => format!("exited {code}"),
        (None, Some(signal)) => format!("{} by signal {signal}", word(job.status)),
        (None, None) => word(job.status),
    }
}

fn word(status: JobStatus) -> String {
    let value = serde_json::to_value(status).unwrap_or_default();
    value.as_str().unwrap_or_default().replace('_', " ")
}

fn list(args: &JobListArgs, session: &mut Session, output: Output) -> Result<u8> {
    let listing = session.call(&JobList {
        vault: Some(session.vault().to_owned()).filter(|vault| vault != CURRENT),
        running: args.running,
        ..JobList::default()
    })?;
    output.answer(&listing, list_text)?;
    Ok(exit::OK)
}

fn list_text(listing: &JobListing) -> String {
    let row = |job: &JobItem| {
        let command: String = printable(&job.command).chars().take(COMMAND_MAX).collect();
        vec![
            job.job_id.to_string(),
            outcome(job),
            job.vault.clone(),
            time(&job.started_at),
            command,
        ]
    };
    let rows = listing.jobs.iter().map(row).collect();
    table(&["JOB", "STATUS", "VAULT", "STARTED", "COMMAND"], rows).trim_fmt()
}

fn logs(args: &JobLogsArgs, session: &mut Session, output: Output) -> Result<u8> {
    let (stdout_offset, stderr_offset) = match args.stream {
        Some(StreamName::Stderr) => (0, args.offset),
        Some(StreamName::Stdout) => (args.offset, 0),
        None => (args.offset, args.stderr_offset),
    };
    let request = JobLogs {
        job_id: args.job,
        stdout_offset,
        stderr_offset,
        stream: args.stream.map(|stream| match stream {
            StreamName::Stdout => StreamWord::Stdout,
            StreamName::Stderr => StreamWord::Stderr,
        }),
    };
    if args.follow {
        follow(&request, session, output)?;
    } else if output.is_json() {
        output.value(&session.call(&request)?)?;
    } else {
        print_all(request, session)?;
    }
    Ok(exit::OK)
}

/// Prints the output so far, in parts.
fn print_all(mut request: JobLogs, session: &mut Session) -> Result<()> {
    loop {
        let polled = session.call(&request)?;
        let (stdout, stderr) = (polled.offsets.stdout, polled.offsets.stderr);
        print(&polled)?;
        if stdout.from == stdout.to && stderr.from == stderr.to {
            return Ok(());
        }
        (request.stdout_offset, request.stderr_offset) = (stdout.to, stderr.to);
    }
}

fn follow(request: &JobLogs, session: &mut Session, output: Output) -> Result<()> {
    let mut closed = false;
    let followed = session.job_follow(request, &mut |stream, from, bytes| {
        let told = match (output.is_json(), stream) {
            (true, StreamWord::Stdout) => line("stdout", from, bytes),
            (true, StreamWord::Stderr) => line("stderr", from, bytes),
            (false, StreamWord::Stdout) => raw(bytes).map_err(|_| ()),
            (false, StreamWord::Stderr) => {
                std::io::stderr().lock().write_all(bytes).map_err(|_| ())
            }
        };
        if told.is_ok() {
            return ControlFlow::Continue(());
        }
        closed = true;
        ControlFlow::Break(())
    })?;
    match followed {
        _ if closed => Err(Error::OutputClosed),
        Some(job) if output.is_json() => exec::line("end", &job).map_err(Error::output),
        Some(job) => note(&headline(&job)),
        None => Ok(()),
    }
}

fn line(event: &str, from: u64, bytes: &[u8]) -> Result<(), ()> {
    exec::line(event, &LogChunk::new(from, bytes.to_vec())).map_err(|_| ())
}

fn wait(args: &JobWaitArgs, session: &mut Session, output: Output) -> Result<u8> {
    let limit = args.timeout.map(Time::millis).filter(|millis| *millis > 0);
    let deadline = limit.map(|millis| Instant::now() + Duration::from_millis(millis));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let step = left.unwrap_or(WAIT_STEP).min(WAIT_STEP);
        let waited = session.call(&JobWait {
            job_id: args.job,
            timeout_ms: Some(step.as_millis() as u64),
        })?;
        if !waited.job.running {
            return tell_end(&waited, output);
        }
        if left.is_some_and(|left| left.is_zero()) {
            match output.is_json() {
                true => output.value(&waited)?,
                false => note(&headline(&waited.job))?,
            }
            return Ok(exit::TIMED_OUT);
        }
    }
}

/// Reports how a job ended; returns the exit code for it.
pub fn over(session: &mut Session, job_id: u64, output: Output) -> Result<u8> {
    let waited = session.call(&JobWait {
        job_id,
        timeout_ms: None,
    })?;
    tell_end(&waited, output)
}

fn tell_end(waited: &JobWaited, output: Output) -> Result<u8> {
    if output.is_json() {
        output.value(waited)?;
    } else if let Some(envelope) = &waited.envelope {
        note(&output::exec::report(envelope))?;
    } else {
        note(&headline(&waited.job))?;
    }
    Ok(match (&waited.envelope, waited.job.status) {
        (Some(envelope), _) => envelope.exit_code(),
        (None, JobStatus::Job(JobWord::Running)) => exit::OK,
        (None, _) => exit::FAILED,
    })
}

fn kill(args: &JobKillArgs, session: &mut Session, output: Output) -> Result<u8> {
    let killed = session.call(&JobKill {
        job_id: args.job,
        signal: args.signal,
    })?;
    output.answer(&killed, |killed: &JobKilled| match killed.status {
        KilledWord::Killed => format!("job {} is over", killed.job_id),
        KilledWord::Signaled => format!("sent signal {} to job {}", killed.signal, killed.job_id),
    })?;
    Ok(exit::OK)
}

fn stdin(args: JobStdinArgs, session: &mut Session, output: Output) -> Result<u8> {
    let request = JobStdin {
        job_id: args.job,
        eof: args.eof,
    };
    // A call before the stream: the stream can be sent only once.
    session.call(&JobPoll {
        job_id: args.job,
        limit: Some(0),
        ..JobPoll::default()
    })?;
    let taken = match args.text {
        Some(text) if text != "-" => {
            let mut bytes = text.into_vec();
            if !args.no_newline {
                bytes.push(b'\n');
            }
            session.bring(&request, Cursor::new(bytes))?
        }
        None if args.eof => session.bring(&request, std::io::empty())?,
        Some(_) | None => session.bring(&request, std::io::stdin())?,
    };
    output.answer(&taken, |_| String::new())?;
    Ok(exit::OK)
}
