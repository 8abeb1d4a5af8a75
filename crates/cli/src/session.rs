//! A verb's line to the daemon, which is started, or replaced, when need be.

use crate::environment;
use crate::error::Result;
use crate::output::Output;
use crate::output::progress::{Bar, Waiting};
use avfs_api::client::Input;
use avfs_api::start::{self, Starter};
use avfs_api::wire::{CURRENT, Envelope, Exec, ExecEvent, Operation};
use avfs_api::{Client, Error};
use std::io::{Read, Write};
use std::ops::ControlFlow;

/// Bytes on their way out, shown as they go.
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

/// A connection made at the first call.
pub struct Session {
    starter: Starter,
    client: Option<Client>,
    /// The vault the verbs work on.
    vault: String,
}

impl Session {
    pub fn new(starter: Starter, vault: Option<String>) -> Session {
        Session {
            starter,
            client: None,
            vault: vault.unwrap_or_else(|| CURRENT.into()),
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

    /// Asks for an operation on the vault this session works on.
    pub fn call<O: Operation>(&mut self, request: &O) -> Result<O::Response> {
        let vault = self.vault.clone();
        self.call_on(&vault, request)
    }

    /// Asks for an operation on a vault by name.
    pub fn call_on<O: Operation>(&mut self, vault: &str, request: &O) -> Result<O::Response> {
        let _waiting = Waiting::begin();
        self.with_client(|client| client.call(vault, request))
    }

    /// Asks for an operation that may take long, with a bar for whoever waits.
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

    /// Asks for an operation whose request carries bytes. They can be sent only once, so the daemon
    /// should have been asked something before.
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
        Ok(self.client()?.upload(&vault, request, bytes)?)
    }

    /// Asks for an operation whose answer is bytes, which go to standard output.
    pub fn download<O: Operation>(&mut self, request: &O) -> Result<()> {
        let vault = self.vault.clone();
        let mut out = std::io::stdout().lock();
        match self.with_client(|client| client.download(&vault, request, &mut out)) {
            Err(crate::error::Error::Api(Error::Output(error))) => {
                Err(crate::error::Error::output(error))
            }
            done => done.map(drop),
        }
    }

    /// Runs a command in the vault this session works on; `input` is for a request with live input.
    pub fn exec(
        &mut self,
        request: &Exec,
        mut input: Option<Input>,
        on_event: &mut dyn FnMut(ExecEvent) -> ControlFlow<()>,
    ) -> Result<Envelope> {
        let vault = self.vault.clone();
        // A daemon of another version refuses before it takes any input.
        self.with_client(|client| client.exec_with_input(&vault, request, &mut input, on_event))
    }

    /// Ends the daemon if one runs; gives its pid.
    pub fn stop(&self) -> Result<Option<u32>> {
        match Client::connect(&self.starter.place) {
            Ok(mut client) => Ok(Some(start::stop(&mut client)?)),
            Err(Error::NoDaemon { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn with_client<T>(
        &mut self,
        mut ask: impl FnMut(&mut Client) -> avfs_api::Result<T>,
    ) -> Result<T> {
        match ask(self.client()?) {
            Err(Error::OtherVersion { daemon, client }) => {
                self.replace_daemon(daemon, client)?;
                Ok(ask(self.client()?)?)
            }
            answered => Ok(answered?),
        }
    }

    fn client(&mut self) -> Result<&mut Client> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.starter.connect(&environment::daemon_arguments)?,
        };
        Ok(self.client.insert(client))
    }

    /// A daemon of another version refuses every request before doing anything, so it can be
    /// ended and the request repeated, unless it has work.
    fn replace_daemon(&mut self, daemon: String, client: String) -> Result<()> {
        let Some(mut connected) = self.client.take() else {
            return Ok(());
        };
        let state = connected.daemon()?;
        if state.running_execs > 0 || state.mounts > 0 {
            return Err(Error::OtherVersion { daemon, client }.into());
        }
        // A note that cannot be written is no reason to stop.
        let _ = writeln!(
            anstream::stderr(),
            "note: replacing the idle daemon of version {daemon} by one of version {client}"
        );
        start::stop(&mut connected)?;
        Ok(())
    }
}
