//! `avfs daemon`: status, logs and stop.

use crate::args::DaemonVerb;
use crate::environment;
use crate::error::{Error as Failure, Result};
use crate::exit;
use crate::output::changes::printable_line;
use crate::output::table::table;
use crate::output::{Output, raw};
use crate::session::Session;
use avfs_api::wire::{Daemon, DaemonState};
use avfs_api::{Client, Error};
use serde::Serialize;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// The daemon's state, or that there is none.
#[derive(Serialize)]
struct Status {
    running: bool,
    #[serde(flatten)]
    state: Option<DaemonState>,
}

/// How often the log is polled for more.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Serialize)]
struct Log {
    path: String,
    lines: Vec<String>,
}

#[derive(Serialize)]
struct Stopped {
    stopped: bool,
    pid: Option<u32>,
}

pub fn run(verb: DaemonVerb, output: Output) -> Result<u8> {
    match verb {
        DaemonVerb::Status => status(output),
        DaemonVerb::Start => start(output),
        DaemonVerb::Stop { force } => stop(force, output),
        DaemonVerb::Logs { lines, follow } => logs(lines, follow, output),
    }
}

/// For programs that need a daemon and are not this one.
fn start(output: Output) -> Result<u8> {
    let state = Session::from_environment(None)?.call(&Daemon {})?;
    let status = Status {
        running: true,
        state: Some(state),
    };
    output.answer(&status, text)?;
    Ok(exit::OK)
}

/// Neither this nor `stop` starts a daemon only to ask it something.
fn status(output: Output) -> Result<u8> {
    let state = match Client::connect(&environment::place()?) {
        Ok(mut client) => Some(client.daemon()?),
        Err(Error::NoDaemon { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let status = Status {
        running: state.is_some(),
        state,
    };
    output.answer(&status, text)?;
    Ok(if status.running { exit::OK } else { 1 })
}

fn text(status: &Status) -> String {
    let Some(state) = &status.state else {
        return "the daemon is not running; the next command starts it".into();
    };
    let keeper = state
        .keeper_pid
        .map_or_else(|| "none".into(), |pid| pid.to_string());
    let rows = [
        ("pid", state.pid.to_string()),
        ("version", state.version.clone()),
        ("home", state.home.clone()),
        ("socket", state.socket.clone()),
        (
            "network",
            match state.listening.is_empty() {
                true => "not listening".into(),
                false => state.listening.join(", "),
            },
        ),
        ("up", format!("{} s", state.uptime_ms / 1000)),
        ("running commands", state.running_execs.to_string()),
        ("running jobs", state.running_jobs.to_string()),
        ("live views", state.live_views.to_string()),
        ("mounts", state.mounts.to_string()),
        ("keeper", keeper),
        (
            "home can be",
            if state.read_only {
                "read only"
            } else {
                "changed"
            }
            .into(),
        ),
    ];
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![name.into(), value])
        .collect();
    table(&[], rows).trim_fmt()
}

/// The log of this home's daemons, also of one that has ended.
fn logs(lines: usize, follow: bool, output: Output) -> Result<u8> {
    let path = environment::place()?.log();
    let failed = || Failure::io(format!("cannot read {}", path.display()));
    let text = match std::fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed()(error)),
    };
    let all: Vec<&str> = text.lines().collect();
    let newest = &all[all.len().saturating_sub(lines)..];
    let log = Log {
        path: path.display().to_string(),
        lines: newest.iter().map(|line| (*line).to_owned()).collect(),
    };
    output.answer(&log, |log| {
        let lines: Vec<String> = log.lines.iter().map(|line| printable_line(line)).collect();
        lines.join("\n")
    })?;
    if follow {
        follow_log(&path, text.len() as u64)?;
    }
    Ok(exit::OK)
}

/// Prints what follows the first `read` bytes, until it is interrupted.
fn follow_log(path: &Path, mut read: u64) -> Result<()> {
    let failed = || Failure::io(format!("cannot read {}", path.display()));
    loop {
        std::thread::sleep(LOOK_AGAIN);
        let Ok(mut file) = File::open(path) else {
            continue;
        };
        if file.metadata().map_err(failed())?.len() < read {
            // A new daemon truncated the log.
            read = 0;
        }
        file.seek(SeekFrom::Start(read)).map_err(failed())?;
        let mut more = Vec::new();
        file.read_to_end(&mut more).map_err(failed())?;
        read += more.len() as u64;
        raw(&more)?;
    }
}

fn stop(force: bool, output: Output) -> Result<u8> {
    let pid = Session::from_environment(None)?.stop(force)?;
    let stopped = Stopped {
        stopped: pid.is_some(),
        pid,
    };
    output.answer(&stopped, |stopped| match stopped.pid {
        Some(pid) => format!("the daemon (pid {pid}) has ended"),
        None => "the daemon was not running".into(),
    })?;
    Ok(exit::OK)
}
