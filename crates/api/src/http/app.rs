//! What every handler shares: the runtime, the daemon's place, and who is at work.

use super::errors::Failure;
use crate::place::Place;
use avfs_runtime::{Cancel, Control, ErrorKind, Runtime, WindowSize};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The state of one daemon.
pub(crate) struct App {
    pub runtime: Runtime,
    pub place: Place,
    pub idle_timeout: Option<Duration>,
    pub started: Instant,
    /// Told when the daemon shall end.
    pub stop: Notify,
    pub calls: Arc<Calls>,
    busy: Arc<Mutex<Busyness>>,
}

struct Busyness {
    requests: usize,
    /// When the last request ended.
    since: Instant,
}

impl App {
    pub fn new(runtime: Runtime, place: Place, idle_timeout: Option<Duration>) -> App {
        let now = Instant::now();
        App {
            runtime,
            place,
            idle_timeout,
            started: now,
            stop: Notify::new(),
            calls: Arc::default(),
            busy: Arc::new(Mutex::new(Busyness {
                requests: 0,
                since: now,
            })),
        }
    }

    /// Marks a request as under way until the guard goes.
    pub fn enter(&self) -> AtWork {
        lock(&self.busy).requests += 1;
        AtWork(Arc::clone(&self.busy))
    }

    /// How long nothing has been asked; none while something is under way, an exec included, a job
    /// runs, or something is mounted.
    pub fn idle_for(&self) -> Option<Duration> {
        let idle = {
            let busy = lock(&self.busy);
            (busy.requests == 0).then(|| busy.since.elapsed())
        };
        idle.filter(|_| {
            let activity = self.runtime.activity();
            activity.mounts == 0 && activity.running_jobs == 0
        })
    }
}

/// One request under way.
pub(crate) struct AtWork(Arc<Mutex<Busyness>>);

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut busy = lock(&self.0);
        busy.requests -= 1;
        busy.since = Instant::now();
    }
}

/// The execs under way, each with what its caller can still do to it.
#[derive(Default)]
pub(crate) struct Calls {
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Wishes>>>,
}

/// What the caller of an exec wants of it by now.
#[derive(Default)]
pub(crate) struct Wishes {
    cancel: Mutex<Option<Cancel>>,
    /// Where the command's input goes, until somebody takes it to bring it.
    input: Mutex<Option<OwnedFd>>,
    control: Arc<Control>,
}

impl Wishes {
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    pub fn cancelled(&self) -> Option<Cancel> {
        *lock(&self.cancel)
    }

    fn cancel(&self, how: Cancel) {
        lock(&self.cancel).get_or_insert(how);
    }

    fn take_input(&self) -> Option<OwnedFd> {
        lock(&self.input).take()
    }

    /// Makes the pipe through which the command is brought its input.
    pub fn open_input(&self) -> std::io::Result<OwnedFd> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        *lock(&self.input) = Some(write);
        Ok(read)
    }
}

impl Calls {
    pub fn begin(self: &Arc<Calls>) -> Call {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let wishes = Arc::<Wishes>::default();
        lock(&self.open).insert(id, Arc::clone(&wishes));
        Call {
            id,
            wishes,
            calls: Arc::clone(self),
        }
    }

    /// Whether there was such an exec to cancel.
    pub fn cancel(&self, id: u64, how: Cancel) -> bool {
        let found = lock(&self.open).get(&id).cloned();
        if let Some(wishes) = &found {
            wishes.cancel(how);
        }
        found.is_some()
    }

    /// Sizes the terminal of an exec that is under way.
    pub fn resize(&self, id: u64, size: WindowSize) -> Result<(), Failure> {
        let found = lock(&self.open).get(&id).cloned();
        let Some(wishes) = found else {
            let what = format!("call {id} has ended");
            return Err(Failure::new(ErrorKind::NotFound, what));
        };
        Ok(wishes.control.resize(size)?)
    }

    /// Where the input of an exec goes: none when it wants none, or somebody brings it already.
    pub fn take_input(&self, id: u64) -> Option<OwnedFd> {
        let wishes = lock(&self.open).get(&id).cloned()?;
        wishes.take_input()
    }
}

/// One exec under way. Dropping it cancels the exec, so a caller that goes away ends its command.
pub(crate) struct Call {
    id: u64,
    wishes: Arc<Wishes>,
    calls: Arc<Calls>,
}

impl Call {
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn wishes(&self) -> Arc<Wishes> {
        Arc::clone(&self.wishes)
    }

    /// Where its input goes, for whoever brings it.
    pub fn take_input(&self) -> Option<OwnedFd> {
        self.wishes.take_input()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.wishes.cancel(Cancel::Leave);
        self.wishes.take_input();
        lock(&self.calls.open).remove(&self.id);
    }
}

/// The data is whole even if a holder panicked: every change to it is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_can_be_cancelled_until_it_ends() {
        let calls = Arc::new(Calls::default());
        let first = calls.begin();
        let second = calls.begin();
        assert!(calls.cancel(second.id(), Cancel::Interrupt));
        assert_eq!(second.wishes().cancelled(), Some(Cancel::Interrupt));
        assert_eq!(first.wishes().cancelled(), None);
        let (id, wishes) = (first.id(), first.wishes());
        drop(first);
        let leave = Some(Cancel::Leave);
        assert_eq!(wishes.cancelled(), leave, "who goes away ends its command");
        assert!(!calls.cancel(id, Cancel::Interrupt));
    }

    #[test]
    fn input_is_brought_by_one() {
        let calls = Arc::new(Calls::default());
        let call = calls.begin();
        assert!(calls.take_input(call.id()).is_none(), "it wants none");
        let _read = call.wishes().open_input().unwrap();
        assert!(calls.take_input(call.id()).is_some());
        assert!(calls.take_input(call.id()).is_none());
    }
}
