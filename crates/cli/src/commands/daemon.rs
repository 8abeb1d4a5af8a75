//! `avfs daemon`: whether the daemon runs, and its end.

use crate::args::DaemonVerb;
use crate::environment;
use crate::error::Result;
use crate::exit;
use crate::output::Output;
use crate::output::table::table;
use crate::session::Session;
use avfs_api::wire::DaemonState;
use avfs_api::{Client, Error};
use serde::Serialize;

/// The daemon's state, or that there is none.
#[derive(Serialize)]
struct Status {
    running: bool,
    #[serde(flatten)]
    state: Option<DaemonState>,
}

#[derive(Serialize)]
struct Stopped {
    stopped: bool,
    pid: Option<u32>,
}

pub fn run(verb: DaemonVerb, output: Output) -> Result<u8> {
    match verb {
        DaemonVerb::Status => status(output),
        DaemonVerb::Stop => stop(output),
    }
}

/// Neither verb starts a daemon only to ask it something.
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
        ("up", format!("{} s", state.uptime_ms / 1000)),
        ("running commands", state.running_execs.to_string()),
        ("live views", state.live_views.to_string()),
        ("keeper", keeper),
    ];
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![name.into(), value])
        .collect();
    table(&[], rows).trim_fmt()
}

fn stop(output: Output) -> Result<u8> {
    let pid = Session::from_environment(None)?.stop()?;
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
