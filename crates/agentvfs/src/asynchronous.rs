//! Handles for async code, on tokio: calls block a thread of tokio's pool for blocking work, not the executor.

use crate::avfs::Avfs;
use crate::builder::Builder;
use crate::command::{Command, Ready};
use crate::error::{Error, ErrorKind, Result};
use crate::result::CommandResult;
use crate::running::{Event, Handle};
use crate::types::{CheckpointItem, CheckpointRestored, ListedEntry, Operation, Written};
use crate::vault::Vault;
use futures_core::Stream;
use std::ffi::OsString;
use std::fmt;
use std::io::PipeWriter;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

/// Events that may wait for a slow reader before the command has to wait itself.
const QUEUE: usize = 64;

/// Does something that blocks where that does no harm.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => {
                let what = "tokio is shutting down";
                Err(Error::new(ErrorKind::Unavailable, what).because(error))
            }
        },
    }
}

/// An [`Avfs`] for async code.
///
/// The most used methods are here. [`AsyncAvfs::with`] gives all others, and [`AsyncAvfs::ask`] every operation with every
/// option.
#[derive(Clone, Debug)]
pub struct AsyncAvfs {
    inner: Avfs,
}

impl AsyncAvfs {
    /// See [`Avfs::connect`].
    pub async fn connect() -> Result<AsyncAvfs> {
        AsyncAvfs::connect_with(Builder::default()).await
    }

    /// See [`Builder::connect`].
    pub async fn connect_with(builder: Builder) -> Result<AsyncAvfs> {
        let inner = blocking(|| builder.connect()).await?;
        Ok(AsyncAvfs { inner })
    }

    /// See [`Avfs::embedded`].
    pub async fn embedded(home: impl Into<PathBuf>) -> Result<AsyncAvfs> {
        AsyncAvfs::embedded_with(Builder::default().home(home)).await
    }

    /// See [`Builder::embedded`].
    pub async fn embedded_with(builder: Builder) -> Result<AsyncAvfs> {
        let inner = blocking(|| builder.embedded()).await?;
        Ok(AsyncAvfs { inner })
    }

    /// See [`Avfs::vault`].
    pub async fn vault(&self, name: impl Into<String>) -> Result<AsyncVault> {
        let name = name.into();
        self.vault_of(move |avfs| avfs.vault(name)).await
    }

    /// See [`Avfs::create_vault`].
    pub async fn create_vault(&self, name: impl Into<String>) -> Result<AsyncVault> {
        let name = name.into();
        self.vault_of(move |avfs| avfs.create_vault(name)).await
    }

    async fn vault_of(
        &self,
        get: impl FnOnce(&Avfs) -> Result<Vault> + Send + 'static,
    ) -> Result<AsyncVault> {
        let inner = self.with(get).await?;
        Ok(AsyncVault { inner })
    }

    /// See [`Avfs::ask`].
    pub async fn ask<O: Operation + Clone>(&self, request: O) -> Result<O::Response> {
        self.with(move |avfs| avfs.ask(&request)).await
    }

    /// Does with the blocking face whatever there is no method for here.
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Avfs) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let avfs = self.inner.clone();
        blocking(move || work(&avfs)).await
    }

    /// The blocking face of it.
    pub fn blocking(&self) -> &Avfs {
        &self.inner
    }
}

/// A [`Vault`] for async code.
///
/// The most used methods are here. [`AsyncVault::with`] gives all others, and [`AsyncVault::ask`] every operation with
/// every option.
#[derive(Clone, Debug)]
pub struct AsyncVault {
    inner: Vault,
}

impl AsyncVault {
    /// See [`Vault::name`].
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// See [`Vault::command`].
    pub fn command(&self, program: impl Into<OsString>) -> AsyncCommand {
        AsyncCommand(self.inner.command(program))
    }

    /// See [`Vault::shell`].
    pub fn shell(&self, text: impl Into<String>) -> AsyncCommand {
        AsyncCommand(self.inner.shell(text))
    }

    /// See [`Vault::fork`].
    pub async fn fork(&self, name: impl Into<String>) -> Result<AsyncVault> {
        let name = name.into();
        let inner = self.with(move |vault| vault.fork(name)).await?;
        Ok(AsyncVault { inner })
    }

    /// See [`Vault::delete`].
    pub async fn delete(self) -> Result<()> {
        blocking(move || self.inner.delete()).await
    }

    /// See [`Vault::checkpoint`].
    pub async fn checkpoint(&self, name: impl Into<String>) -> Result<CheckpointItem> {
        let name = name.into();
        self.with(move |vault| vault.checkpoint(name)).await
    }

    /// See [`Vault::restore`].
    pub async fn restore(&self, name: impl Into<String>) -> Result<CheckpointRestored> {
        let name = name.into();
        self.with(move |vault| vault.restore(name)).await
    }

    /// See [`Vault::read`].
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = path.as_ref().to_owned();
        self.with(move |vault| vault.read(path)).await
    }

    /// See [`Vault::read_text`].
    pub async fn read_text(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = path.as_ref().to_owned();
        self.with(move |vault| vault.read_text(path)).await
    }

    /// See [`Vault::write`].
    pub async fn write(
        &self,
        path: impl AsRef<Path>,
        content: impl Into<Vec<u8>>,
    ) -> Result<Written> {
        let (path, content) = (path.as_ref().to_owned(), content.into());
        self.with(move |vault| vault.write(path, content)).await
    }

    /// See [`Vault::list`].
    pub async fn list(&self, path: impl AsRef<Path>) -> Result<Vec<ListedEntry>> {
        let path = path.as_ref().to_owned();
        self.with(move |vault| vault.list(path)).await
    }

    /// See [`Vault::ask`].
    pub async fn ask<O: Operation + Clone>(&self, request: O) -> Result<O::Response> {
        self.with(move |vault| vault.ask(&request)).await
    }

    /// Does with the blocking face whatever there is no method for here.
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Vault) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let vault = self.inner.clone();
        blocking(move || work(&vault)).await
    }

    /// The blocking face of it.
    pub fn blocking(&self) -> &Vault {
        &self.inner
    }
}

/// A [`Command`] for async code. [`AsyncCommand::with`] sets every option that a command has.
#[derive(Debug)]
#[must_use = "nothing runs before it is run or spawned"]
pub struct AsyncCommand(Command);

impl AsyncCommand {
    /// See [`Command::arg`].
    pub fn arg(self, word: impl Into<OsString>) -> AsyncCommand {
        self.with(|command| command.arg(word))
    }

    /// See [`Command::args`].
    pub fn args<W: Into<OsString>>(self, words: impl IntoIterator<Item = W>) -> AsyncCommand {
        self.with(|command| command.args(words))
    }

    /// Sets options: `command.with(|it| it.cwd("/src").readonly())`.
    pub fn with(self, set: impl FnOnce(Command) -> Command) -> AsyncCommand {
        AsyncCommand(set(self.0))
    }

    /// Runs it to its end. A future that is dropped before has the command ended.
    pub async fn run(self) -> Result<CommandResult> {
        let mut running = self.spawn()?;
        // What is piped is for whoever spawns it.
        drop(running.take_stdin());
        running.wait().await
    }

    /// Begins to run it. What is given back is a stream of events.
    pub fn spawn(self) -> Result<AsyncRunning> {
        AsyncRunning::start(self.0.ready()?)
    }
}

/// A command that runs: a stream of what happens, until it has ended. Dropping it ends the command.
#[must_use = "dropping it ends the command"]
pub struct AsyncRunning {
    handle: Handle,
    stdin: Option<PipeWriter>,
    events: mpsc::Receiver<Event>,
    /// There until it has been waited for.
    done: Option<oneshot::Receiver<Result<CommandResult>>>,
}

impl fmt::Debug for AsyncRunning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncRunning").field(&self.handle).finish()
    }
}

impl AsyncRunning {
    fn start(ready: Ready) -> Result<AsyncRunning> {
        let Ready {
            vault,
            request,
            mut io,
            stdin,
        } = ready;
        let handle = Handle::new(std::sync::Arc::clone(&vault.face));
        let (teller, events) = mpsc::channel(QUEUE);
        let (finish, done) = oneshot::channel();
        let own = handle.clone();
        let work = move || {
            // On a thread of its own, which is in no event loop but that of its connection.
            let tell = &mut |event| match teller_send(&teller, event) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            };
            let ran = own.exec(vault.name(), &request, &mut io, tell);
            // Nobody may be left to be told.
            let _ = finish.send(ran.map(CommandResult::new));
        };
        let thread = std::thread::Builder::new().name("agentvfs-exec".into());
        thread.spawn(work).map_err(|error| {
            Error::new(ErrorKind::Unavailable, "a thread cannot be made").because(error)
        })?;
        Ok(AsyncRunning {
            handle,
            stdin,
            events,
            done: Some(done),
        })
    }

    /// Ends the command; its result still comes.
    pub async fn cancel(&self) -> Result<()> {
        let handle = self.handle.clone();
        blocking(move || handle.cancel()).await
    }

    /// The blocking handle, by which it is also resized.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Where its input is written to, with [`Command::stdin_piped`]. Writing to it blocks.
    pub fn take_stdin(&mut self) -> Option<PipeWriter> {
        self.stdin.take()
    }

    /// The next event; none once it has ended.
    pub async fn next_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Waits for its end. What it still says is not told; the result has its output.
    pub async fn wait(mut self) -> Result<CommandResult> {
        self.stdin = None;
        while self.events.recv().await.is_some() {}
        let lost = || Error::new(ErrorKind::Bug, "the thread of the command has panicked");
        let Some(done) = self.done.as_mut() else {
            return Err(lost());
        };
        let done = done.await;
        self.done = None;
        done.unwrap_or_else(|_| Err(lost()))
    }
}

/// Waits for room in the queue; false when nobody is left to be told.
///
/// With a daemon this is called in the event loop of a connection, where tokio's own way to block is refused.
fn teller_send(teller: &mpsc::Sender<Event>, event: Event) -> bool {
    let mut waiting = event;
    loop {
        match teller.try_send(waiting) {
            Ok(()) => return true,
            Err(mpsc::error::TrySendError::Closed(_)) => return false,
            Err(mpsc::error::TrySendError::Full(event)) => waiting = event,
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

impl Stream for AsyncRunning {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_recv(context)
    }
}

impl Drop for AsyncRunning {
    fn drop(&mut self) {
        if self.done.is_some() {
            // Not here: it blocks. A daemon that cannot be asked any more has ended the command.
            let handle = self.handle.clone();
            std::thread::spawn(move || handle.cancel());
        }
    }
}
