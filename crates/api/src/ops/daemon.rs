//! The daemon: its state, and its end.

use super::{Ask, Reply};
use crate::wire::{Daemon, DaemonState, DaemonStop, DaemonStopping, VERSION};
use std::time::Duration;

pub(crate) fn state(ask: &Ask, _: Daemon) -> Reply<Daemon> {
    let activity = ask.session.activity();
    Ok(DaemonState {
        pid: std::process::id(),
        version: VERSION.into(),
        home: ask.app.place.home().to_string_lossy().into_owned(),
        socket: ask.app.place.socket().to_string_lossy().into_owned(),
        uptime_ms: ask.app.started.elapsed().as_millis() as u64,
        idle_timeout_s: ask.app.idle_timeout.as_ref().map(Duration::as_secs),
        running_execs: activity.running_execs,
        live_views: activity.live_views,
        mounts: activity.mounts,
        forwards: activity.forwards,
        running_jobs: activity.running_jobs,
        keeper_pid: activity.keeper_pid,
        read_only: ask.session.check_writable().is_err(),
        listening: ask
            .app
            .listening
            .get()
            .map(ToString::to_string)
            .into_iter()
            .collect(),
    })
}

pub(crate) fn stop(ask: &Ask, request: DaemonStop) -> Reply<DaemonStop> {
    if !request.force {
        super::jobs::detached(&ask.session)?;
    }
    ask.app.stop.notify_one();
    Ok(DaemonStopping {
        stopping: true,
        pid: std::process::id(),
    })
}
