//! The face that talks to a daemon: connections that are kept and used again, and a daemon that is started if need be.

use crate::error::{Error, ErrorKind, Result};
use crate::{binary, told};
use avfs_api::client::ExecIo;
use avfs_api::wire::{
    Envelope, Exec, ExecEvent, JobItem, JobLogs, Operation, ProgressEvent, StreamWord,
};
use avfs_api::{Client, DaemonPaths, Error as ApiError};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections that are kept for the next call.
const IDLE_MAX: usize = 8;
/// How many daemons may end under one call.
const UNHEARD_MAX: u32 = 3;

/// The daemon of a home.
pub(crate) struct Daemon {
    place: DaemonPaths,
    /// As the program said.
    binary: Option<PathBuf>,
    /// The runtime directory that the program chose.
    runtime_dir: Option<PathBuf>,
    idle: Mutex<Vec<Client>>,
}

impl Daemon {
    /// Connects, so that what is wrong is known at once.
    pub fn connect(
        place: DaemonPaths,
        binary: Option<PathBuf>,
        runtime_dir: Option<PathBuf>,
    ) -> Result<Daemon> {
        let daemon = Daemon {
            place,
            binary,
            runtime_dir,
            idle: Mutex::default(),
        };
        let client = daemon.fresh()?;
        daemon.keep(client);
        Ok(daemon)
    }

    pub fn call<O: Operation>(&self, vault: &str, request: &O) -> Result<O::Response> {
        self.ask(|client| client.call(vault, request))
    }

    pub fn call_watched<O: Operation + Sync>(
        &self,
        vault: &str,
        request: &O,
        on_progress: &mut dyn FnMut(ProgressEvent),
    ) -> Result<O::Response> {
        let each = |step| {
            on_progress(step);
            ControlFlow::Continue(())
        };
        told::meanwhile(each, |tell| {
            self.ask(|client| {
                client.call_watched(vault, request, &mut |step| {
                    let _ = tell(step);
                })
            })
        })
    }

    /// The bytes can be sent only once, so the connection is a new one: an old one may have been closed.
    pub fn upload<O: Operation>(
        &self,
        vault: &str,
        request: &O,
        bytes: impl Read + Send + 'static,
    ) -> Result<O::Response> {
        let mut client = self.fresh()?;
        let answer = client.upload(vault, request, bytes)?;
        self.keep(client);
        Ok(answer)
    }

    pub fn download<O: Operation>(
        &self,
        vault: &str,
        request: &O,
        out: &mut dyn Write,
    ) -> Result<u64> {
        // What was written to `out` stays there, so an answer that breaks off is not asked for again.
        let mut client = self.fresh()?;
        let size = client.download(vault, request, out)?;
        self.keep(client);
        Ok(size)
    }

    pub fn exec(
        &self,
        vault: &str,
        request: &Exec,
        io: &mut ExecIo,
        on_event: &mut dyn FnMut(ExecEvent) -> ControlFlow<()>,
    ) -> Result<Envelope> {
        self.ask(|client| client.exec_with(vault, request, io, on_event))
    }

    pub fn job_follow(
        &self,
        request: &JobLogs,
        on_output: &mut dyn FnMut(StreamWord, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<JobItem>> {
        let each = |(stream, bytes): (StreamWord, Vec<u8>)| on_output(stream, &bytes);
        told::meanwhile(each, |tell| {
            self.ask(|client| {
                client.job_follow(request, &mut |stream, bytes| tell((stream, bytes.to_vec())))
            })
        })
    }

    /// Ends the daemon and waits until it is gone.
    pub fn stop(&self, force: bool) -> Result<()> {
        self.idle().clear();
        match Client::connect(&self.place) {
            Ok(mut client) => {
                avfs_api::start::stop(&mut client, force)?;
                Ok(())
            }
            Err(ApiError::NoDaemon { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks, and asks again where the daemon surely did nothing: it was about to end.
    fn ask<T>(&self, mut ask: impl FnMut(&mut Client) -> avfs_api::Result<T>) -> Result<T> {
        let mut unheard = 0;
        loop {
            let idle = self.idle().pop();
            let mut client = match idle {
                Some(client) => client,
                None => self.fresh()?,
            };
            match ask(&mut client) {
                Err(ApiError::Unheard { .. } | ApiError::NoDaemon { .. })
                    if unheard < UNHEARD_MAX =>
                {
                    unheard += 1;
                    // The others are as old.
                    self.idle().clear();
                }
                answered => {
                    if answered.is_ok() {
                        self.keep(client);
                    }
                    return Ok(answered?);
                }
            }
        }
    }

    fn keep(&self, client: Client) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(client);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection, to a daemon that is started if there is none.
    fn fresh(&self) -> Result<Client> {
        match Client::connect(&self.place) {
            Err(ApiError::NoDaemon { .. }) => {}
            connected => return Ok(connected?),
        }
        self.start()?;
        Ok(Client::connect(&self.place)?)
    }

    /// `avfs` starts it: it keeps this program's descriptors and environment away from the daemon, without touching them
    /// here.
    fn start(&self) -> Result<()> {
        let binary = binary::avfs(self.binary.as_deref())?;
        let mut command = Command::new(&binary);
        command
            .args(["--json", "daemon", "start"])
            .env("AVFS_HOME", self.place.home())
            .env_remove("AVFS_CLASS")
            .env_remove("AVFS_AGENT")
            .current_dir("/")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        if let Some(dir) = &self.runtime_dir {
            command.env("XDG_RUNTIME_DIR", dir);
        }
        let asked = command.output().map_err(|error| {
            let what = format!("{} cannot be run", binary.display());
            Error::new(ErrorKind::Unavailable, what).because(error)
        })?;
        match asked.status.success() {
            true => Ok(()),
            false => Err(why(&asked.stdout, &binary)),
        }
    }
}

/// Why `avfs` did not start a daemon, as it says.
fn why(said: &[u8], binary: &std::path::Path) -> Error {
    let said: serde_json::Value = serde_json::from_slice(said).unwrap_or_default();
    let text = |key: &str| said.get(key).and_then(serde_json::Value::as_str);
    let kind = text("error").and_then(ErrorKind::parse);
    let error = match text("message") {
        Some(message) => Error::new(kind.unwrap_or(ErrorKind::Unavailable), message),
        None => {
            let what = format!("{} did not start a daemon", binary.display());
            return Error::new(ErrorKind::Unavailable, what).with_hint("run `avfs doctor`");
        }
    };
    match text("hint") {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn what_avfs_says_is_the_error() {
        let said = br#"{"error":"Conflict","message":"no","hint":"wait"}"#;
        let error = why(said, Path::new("avfs"));
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(
            (error.to_string().as_str(), error.hint()),
            ("no", Some("wait"))
        );
        for nonsense in [b"".as_slice(), b"{}", b"[1]", b"\xff"] {
            let error = why(nonsense, Path::new("avfs"));
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.hint().is_some());
        }
    }
}
