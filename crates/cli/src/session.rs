//! A verb's connection to the daemon, which is started or replaced if necessary.

use crate::environment;
use crate::error::Result;
use crate::output::progress::{Bar, Waiting};
use crate::output::{self, Output};
use avfs_api::client::{Attached, Attachment, ExecIo, Signals};
use avfs_api::start::{self, Starter};
use avfs_api::wire::{
    CURRENT, Class, Envelope, Exec, ExecEvent, JobItem, JobLogs, Operation, RetriedWord, StreamWord,
};
use avfs_api::{Client, Error};
use avfs_runtime::IfLost;
use std::io::{Read, Write};
use std::ops::ControlFlow;

/// A writer that shows progress.
struct Counted<R> {
    bytes: R,
    bar: Option<Bar>,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.read += read as u64;
        if let Some(bar) = &mut self.bar {
            bar.show_bytes(self.read);
        }
        Ok(read)
    }
}

/// A callback for output: stream, offset, bytes.
type OnOutput<'a> = dyn FnMut(StreamWord, u64, &[u8]) -> ControlFlow<()> + 'a;

/// How often a request, or a followed job, survives the end of its daemon.
const BROKEN_MAX: u32 = 3;

/// A connection, made at the first call.
pub struct Session {
    starter: Starter,
    client: Option<Client>,
    /// The vault that the verb works on.
    vault: String,
    if_lost: IfLost,
}

impl Session {
    pub fn new(starter: Starter, vault: Option<String>) -> Session {
        Session {
            starter,
            client: None,
            vault: vault.unwrap_or_else(|| CURRENT.into()),
            if_lost: IfLost::Refuse,
        }
    }

    /// Lets a daemon that this session starts make a new database if there is none.
    pub fn rebuilds(&mut self) {
        if self.starter.place.class() == Class::Owner {
            self.if_lost = IfLost::Rebuild;
        }
    }

    /// A session with the daemon that the environment names.
    pub fn from_environment(vault: Option<String>) -> Result<Session> {
        let starter = environment::starter(environment::place()?)?;
        Ok(Session::new(starter, vault))
    }

    pub fn vault(&self) -> &str {
        &self.vault
    }

    /// Calls an operation on this session's vault.
    pub fn call<O: Operation>(&mut self, request: &O) -> Result<O::Response> {
        let vault = self.vault.clone();
        self.call_on(&vault, request)
    }

    /// Calls an operation on a vault by name.
    pub fn call_on<O: Operation>(&mut self, vault: &str, request: &O) -> Result<O::Response> {
        let _waiting = Waiting::begin();
        self.with_client(|client| client.call(vault, request))
    }

    /// Calls an operation that may take long, with a progress bar.
    pub fn call_watched<O: Operation>(
        &mut self,
        request: &O,
        output: Output,
        label: &'static str,
    ) -> Result<O::Response> {
        let Some(mut bar) = Bar::wanted(output, label) else {
            return self.call(request);
        };
        let vault = self.vault.clone();
        self.with_client(|client| {
            client.call_watched(&vault, request, &mut |progress| bar.show(progress))
        })
    }

    /// Calls an operation whose request has a byte stream. The stream can be sent only once, so make another call before: it
    /// replaces a daemon of another version.
    pub fn upload<O: Operation>(
        &mut self,
        request: &O,
        bytes: impl Read + Send + 'static,
        output: Output,
        label: &'static str,
    ) -> Result<O::Response> {
        let vault = self.vault.clone();
        let bytes = Counted {
            bytes,
            bar: Bar::wanted(output, label),
            read: 0,
        };
        self.ask_once(|client| client.upload(&vault, request, bytes))
    }

    /// Calls an operation whose answer is bytes, and writes them to standard output.
    pub fn download<O: Operation>(&mut self, request: &O) -> Result<()> {
        self.download_to(request, &mut std::io::stdout().lock())
    }

    /// Calls an operation whose answer is bytes.
    pub fn download_to<O: Operation>(&mut self, request: &O, out: &mut dyn Write) -> Result<()> {
        let vault = self.vault.clone();
        let mut out = out;
        match self.with_client(|client| client.download(&vault, request, &mut out)) {
            Err(crate::error::Error::Api(Error::Output(error))) => {
                Err(crate::error::Error::output(error))
            }
            done => done.map(drop),
        }
    }

    /// Runs a command in the vault this session works on. Signals that this program gets are the command's.
    pub fn exec(
        &mut self,
        request: &Exec,
        mut io: ExecIo,
        on_event: &mut dyn FnMut(ExecEvent) -> ControlFlow<()>,
    ) -> Result<Envelope> {
        let vault = self.vault.clone();
        io.signals = Signals::Commands;
        // A daemon of another version refuses before it takes any input.
        let mut envelope =
            self.with_client(|client| client.exec_with(&vault, request, &mut io, on_event))?;
        envelope.result.retried.extend(output::take_retried());
        Ok(envelope)
    }

    /// Calls an operation whose request has a byte stream, without a progress bar.
    pub fn bring<O: Operation>(
        &mut self,
        request: &O,
        bytes: impl Read + Send + 'static,
    ) -> Result<O::Response> {
        self.ask_once(|client| client.upload("", request, bytes))
    }

    /// Follows the output of a job until it has ended, even if the daemon is replaced meanwhile. `None` if `on_output`
    /// breaks off.
    pub fn job_follow(
        &mut self,
        request: &JobLogs,
        on_output: &mut OnOutput<'_>,
    ) -> Result<Option<JobItem>> {
        let mut request = request.clone();
        let mut broken = 0;
        loop {
            let mut next = request.clone();
            let followed = self.with_client(|client| {
                client.job_follow(&request, &mut |stream, bytes| {
                    let at = match stream {
                        StreamWord::Stdout => &mut next.stdout_offset,
                        StreamWord::Stderr => &mut next.stderr_offset,
                    };
                    let from = *at;
                    *at += bytes.len() as u64;
                    on_output(stream, from, bytes)
                })
            });
            match followed {
                Err(crate::error::Error::Api(Error::Broken { .. } | Error::Unheard { .. }))
                    if broken < BROKEN_MAX =>
                {
                    // The next daemon has the job's record.
                    broken += 1;
                    self.client = None;
                    request = next;
                }
                followed => return followed,
            }
        }
    }

    /// Connects the terminal to a job's terminal.
    pub fn job_attach(
        &mut self,
        attachment: Attachment,
        on_output: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Attached> {
        Ok(self.client()?.job_attach(attachment, on_output)?)
    }

    /// Stops the daemon if one runs; returns its pid.
    pub fn stop(&self, force: bool) -> Result<Option<u32>> {
        match Client::connect(&self.starter.place) {
            Ok(mut client) => Ok(Some(start::stop(&mut client, force)?)),
            Err(Error::NoDaemon { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a call that must not be repeated.
    fn ask_once<T>(&mut self, ask: impl FnOnce(&mut Client) -> avfs_api::Result<T>) -> Result<T> {
        let answered = ask(self.client()?);
        self.learn_retried();
        Ok(answered?)
    }

    /// Records what the daemon retried, to be reported with the answer.
    fn learn_retried(&mut self) {
        if let Some(client) = &mut self.client {
            output::note_retried(client.take_retried());
        }
    }

    fn with_client<T>(
        &mut self,
        mut ask: impl FnMut(&mut Client) -> avfs_api::Result<T>,
    ) -> Result<T> {
        let mut unheard = 0;
        loop {
            match ask(self.client()?) {
                Err(Error::OtherVersion { daemon, client }) => {
                    self.replace_daemon(daemon, client)?;
                    return Ok(ask(self.client()?)?);
                }
                // This daemon was about to end; ask the next one.
                Err(Error::Unheard { .. }) if unheard < BROKEN_MAX => {
                    unheard += 1;
                    self.client = None;
                    output::note_retried([RetriedWord::Daemon]);
                }
                answered => {
                    self.learn_retried();
                    let answered = answered?;
                    if let Some(note) = self.client.as_ref().and_then(Client::uncommitted) {
                        output::note_uncommitted(note)?;
                    }
                    return Ok(answered);
                }
            }
        }
    }

    fn client(&mut self) -> Result<&mut Client> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.starter.connect(&|| {
                let mut arguments = environment::daemon_arguments();
                arguments.extend((self.if_lost == IfLost::Rebuild).then(|| "--rebuild".into()));
                arguments
            })?,
        };
        Ok(self.client.insert(client))
    }

    /// A daemon of another version refuses every request before it does anything. So it can be stopped and the request
    /// repeated, unless it is busy.
    fn replace_daemon(&mut self, daemon: String, client: String) -> Result<()> {
        let Some(mut connected) = self.client.take() else {
            return Ok(());
        };
        let state = connected.daemon()?;
        if state.is_busy() {
            return Err(Error::OtherVersion { daemon, client }.into());
        }
        // If the note cannot be written, continue.
        let _ = writeln!(
            anstream::stderr(),
            "note: replacing the idle daemon of version {daemon} with one of version {client}"
        );
        start::stop(&mut connected, false)?;
        Ok(())
    }
}
