//! The two faces behind one set of methods: a daemon, or a home in this process.

use crate::daemon::Daemon;
use crate::error::{Error, ErrorKind, Result};
use avfs_api::Embedded;
use avfs_api::bounds::STREAM;
use avfs_api::client::ExecIo;
use avfs_api::table::Method;
use avfs_api::wire::{
    Envelope, Exec, ExecEvent, JobItem, JobLogs, Operation, ProgressEvent, StreamWord,
};
use std::io::{Read, Write};
use std::ops::ControlFlow;

pub(crate) enum Face {
    Daemon(Box<Daemon>),
    Embedded(Box<Embedded>),
}

impl Face {
    /// Asks for one operation that carries no stream.
    pub fn call<O: Operation + Clone>(&self, vault: &str, request: &O) -> Result<O::Response> {
        refuse_streams::<O>()?;
        note(O::NAME);
        match self {
            Face::Daemon(daemon) => daemon.call(vault, request),
            Face::Embedded(home) => Ok(home.call(vault, request)?),
        }
    }

    /// Asks for one operation that may take long; `on_progress` is called on this thread.
    pub fn call_watched<O: Operation + Clone + Sync>(
        &self,
        vault: &str,
        request: &O,
        on_progress: &mut dyn FnMut(ProgressEvent),
    ) -> Result<O::Response> {
        refuse_streams::<O>()?;
        note(O::NAME);
        match self {
            Face::Daemon(daemon) => daemon.call_watched(vault, request, on_progress),
            Face::Embedded(home) => Ok(home.call_watched(vault, request, on_progress)?),
        }
    }

    /// Asks for one operation whose request carries bytes.
    pub fn upload<O: Operation + Clone>(
        &self,
        vault: &str,
        request: &O,
        mut bytes: impl Read + Send + 'static,
    ) -> Result<O::Response> {
        note(O::NAME);
        match self {
            Face::Daemon(daemon) => daemon.upload(vault, request, bytes),
            Face::Embedded(home) => Ok(home.upload(vault, request, &mut bytes)?),
        }
    }

    /// Asks for one operation whose answer is bytes; gives how many there were.
    pub fn download<O: Operation + Clone>(
        &self,
        vault: &str,
        request: &O,
        out: &mut (dyn Write + Send),
    ) -> Result<u64> {
        note(O::NAME);
        match self {
            Face::Daemon(daemon) => daemon.download(vault, request, out),
            Face::Embedded(home) => Ok(home.download(vault, request, out)?),
        }
    }

    /// Runs a command. `on_event` must not ask for anything itself: with a daemon it is called in an event loop.
    pub fn exec(
        &self,
        vault: &str,
        request: &Exec,
        io: &mut ExecIo,
        on_event: &mut dyn FnMut(ExecEvent) -> ControlFlow<()>,
    ) -> Result<Envelope> {
        note(Exec::NAME);
        if io.input.is_some() {
            note("exec_input");
        }
        match self {
            Face::Daemon(daemon) => daemon.exec(vault, request, io, on_event),
            Face::Embedded(home) => Ok(home.exec(vault, request, io, on_event)?),
        }
    }

    /// Tells what a job writes until it is over; none if `on_output` breaks off.
    pub fn job_follow(
        &self,
        request: &JobLogs,
        on_output: &mut dyn FnMut(StreamWord, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<JobItem>> {
        note(JobLogs::NAME);
        match self {
            Face::Daemon(daemon) => daemon.job_follow(request, on_output),
            Face::Embedded(home) => Ok(home.job_follow(request, on_output)?),
        }
    }

    /// Ends the daemon.
    pub fn stop(&self, force: bool) -> Result<()> {
        match self {
            Face::Daemon(daemon) => {
                note("daemon_stop");
                daemon.stop(force)
            }
            Face::Embedded(_) => Err(Error::new(ErrorKind::Invalid, "there is no daemon to stop")
                .with_hint("an embedded home ends when it is dropped")),
        }
    }
}

/// What an operation with a stream answers is no JSON.
fn refuse_streams<O: Operation>() -> Result<()> {
    let is_stream = O::METHOD == Method::Put || O::ROW.lane == STREAM;
    match is_stream {
        false => Ok(()),
        true => {
            let what = format!("{} carries a stream of bytes", O::NAME);
            let error = Error::new(ErrorKind::Invalid, what);
            Err(error.with_hint("the vault has a method for it"))
        }
    }
}

/// For the test that asks for every operation of the table.
#[cfg(test)]
pub(crate) static ASKED: std::sync::Mutex<std::collections::BTreeSet<&'static str>> =
    std::sync::Mutex::new(std::collections::BTreeSet::new());

#[cfg(test)]
fn note(name: &'static str) {
    ASKED.lock().unwrap().insert(name);
}

#[cfg(not(test))]
fn note(_: &'static str) {}
