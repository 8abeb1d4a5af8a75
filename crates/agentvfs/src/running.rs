//! A command that runs: what it writes, and what can be done to it.

use crate::command::Ready;
use crate::error::{Error, ErrorKind, Result};
use crate::face::Face;
use crate::result::CommandResult;
use avfs_api::client::ExecIo;
use avfs_api::wire::{CallId, Envelope, Exec, ExecCancel, ExecEvent, ExecResize};
use std::fmt;
use std::io::PipeWriter;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Events that may wait for a slow reader before the command has to wait itself.
const QUEUE: usize = 64;

/// What happens while a command runs, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// The request was taken.
    Started,
    /// Bytes that it wrote to standard output.
    Stdout(Vec<u8>),
    /// Bytes that it wrote to standard error.
    Stderr(Vec<u8>),
    /// It is held until somebody approves it: the id of the request for approval.
    WaitingForApproval(String),
}

impl Event {
    pub(crate) fn new(event: ExecEvent) -> Event {
        match event {
            ExecEvent::Started(_) => Event::Started,
            ExecEvent::Stdout(chunk) => Event::Stdout(chunk.bytes().to_vec()),
            ExecEvent::Stderr(chunk) => Event::Stderr(chunk.bytes().to_vec()),
            ExecEvent::Waiting(waiting) => Event::WaitingForApproval(waiting.approval_id),
        }
    }
}

/// Does something to a command that runs. Cheap to clone; it may be used from any thread.
#[derive(Clone)]
pub struct Handle {
    face: Arc<Face>,
    state: Arc<Mutex<State>>,
}

#[derive(Copy, Clone, Debug)]
enum State {
    /// Nobody has taken the request yet.
    Asked,
    /// It is to be ended as soon as somebody has.
    Cancelled {
        interrupt: bool,
    },
    Running(CallId),
    Over,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&*self.state()).finish()
    }
}

impl Handle {
    pub(crate) fn new(face: Arc<Face>) -> Handle {
        Handle {
            face,
            state: Arc::new(Mutex::new(State::Asked)),
        }
    }

    /// Ends the command: it is asked to, and soon killed. Its result still comes, with what it wrote and changed. Once
    /// it has ended, this does nothing.
    pub fn cancel(&self) -> Result<()> {
        self.end(false)
    }

    /// Sends it SIGINT, as Ctrl-C does.
    pub fn interrupt(&self) -> Result<()> {
        self.end(true)
    }

    fn end(&self, interrupt: bool) -> Result<()> {
        let call = {
            let mut state = self.state();
            match *state {
                State::Running(call) => call,
                State::Asked => {
                    *state = State::Cancelled { interrupt };
                    return Ok(());
                }
                State::Cancelled { .. } | State::Over => return Ok(()),
            }
        };
        self.face.call("", &ExecCancel { call, interrupt })?;
        Ok(())
    }

    /// Gives its terminal another size. An error of kind `Conflict` if it has not started, or has ended.
    pub fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        let State::Running(call) = *self.state() else {
            return Err(Error::new(ErrorKind::Conflict, "the command does not run"));
        };
        self.face.call(
            "",
            &ExecResize {
                call,
                rows,
                columns,
            },
        )?;
        Ok(())
    }

    /// Runs a command and notes how far it is, so that it can be ended.
    pub(crate) fn exec(
        &self,
        vault: &str,
        request: &Exec,
        io: &mut ExecIo,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Envelope> {
        let ran = self.face.exec(vault, request, io, &mut |event| {
            if let ExecEvent::Started(started) = &event {
                self.started(started.call);
            }
            on_event(Event::new(event))
        });
        *self.state() = State::Over;
        ran
    }

    fn started(&self, call: CallId) {
        let before = std::mem::replace(&mut *self.state(), State::Running(call));
        if let State::Cancelled { interrupt } = before {
            // Events are told in an event loop, which must not be entered again.
            let this = self.clone();
            std::thread::spawn(move || this.end(interrupt));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command that runs: an iterator of what happens, until it has ended.
///
/// Once it has more to say than fits a short queue, the command waits until somebody takes it. Dropping this ends the
/// command, as if its caller had gone away; [`Running::wait`] waits for its end.
///
/// ```standalone_crate
/// use agentvfs::Event;
/// use std::io::Write;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # agentvfs::init();
/// # let dir = std::env::temp_dir().join(format!("agentvfs-spawn-{}", std::process::id()));
/// # let avfs = agentvfs::Avfs::embedded(&dir)?;
/// # let vault = avfs.create_vault("demo")?;
/// let mut running = vault.command("cat").stdin_piped().spawn()?;
/// let mut stdin = running.take_stdin().expect("it is piped");
/// stdin.write_all(b"hello")?;
/// drop(stdin); // the end of its input
///
/// let events: Vec<Event> = running.by_ref().collect();
/// assert_eq!(events, [Event::Started, Event::Stdout(b"hello".to_vec())]);
/// assert_eq!(running.wait()?.exit_code, 0);
/// # drop((avfs, vault));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it ends the command"]
pub struct Running {
    handle: Handle,
    stdin: Option<PipeWriter>,
    events: Receiver<Event>,
    /// There until it has been waited for.
    worker: Option<JoinHandle<Result<Envelope>>>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Running").field(&self.handle).finish()
    }
}

impl Running {
    pub(crate) fn start(ready: Ready) -> Result<Running> {
        let Ready {
            vault,
            request,
            mut io,
            stdin,
        } = ready;
        let handle = Handle::new(Arc::clone(&vault.face));
        let (teller, events): (SyncSender<Event>, _) = sync_channel(QUEUE);
        let teller_handle = handle.clone();
        let worker = std::thread::Builder::new()
            .name("agentvfs-exec".into())
            .spawn(move || {
                let tell = &mut |event| match teller.send(event) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                };
                teller_handle.exec(vault.name(), &request, &mut io, tell)
            })
            .map_err(|error| {
                Error::new(ErrorKind::Unavailable, "a thread cannot be made").because(error)
            })?;
        Ok(Running {
            handle,
            stdin,
            events,
            worker: Some(worker),
        })
    }

    /// By which it can be ended and resized, also from other threads.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Where its input is written to, with [`Command::stdin_piped`](crate::Command::stdin_piped). Dropping it is the end
    /// of the input.
    pub fn take_stdin(&mut self) -> Option<PipeWriter> {
        self.stdin.take()
    }

    /// Waits for its end, and for its input to be at an end if nobody took that. What it still says is not told; the
    /// result has its output.
    pub fn wait(mut self) -> Result<CommandResult> {
        self.stdin = None;
        for _ in self.events.iter() {}
        let worker = self.worker.take();
        let done = worker.map(JoinHandle::join);
        match done {
            Some(Ok(envelope)) => Ok(CommandResult::new(envelope?)),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(Error::new(ErrorKind::Bug, "it was waited for twice")),
        }
    }
}

impl Iterator for Running {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.events.recv().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.worker.is_some() {
            // A daemon that cannot be asked any more has ended it.
            let _ = self.handle.cancel();
        }
    }
}
