//! What every handler shares: the runtime, the daemon's place, and who is at work.

use crate::place::Place;
use avfs_runtime::Runtime;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

    /// How long nothing has been asked; none while something is under way, an exec included, or
    /// mounted.
    pub fn idle_for(&self) -> Option<Duration> {
        let idle = {
            let busy = lock(&self.busy);
            (busy.requests == 0).then(|| busy.since.elapsed())
        };
        idle.filter(|_| self.runtime.activity().mounts == 0)
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

/// The execs under way, each with the flag that ends it.
#[derive(Default)]
pub(crate) struct Calls {
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<AtomicBool>>>,
}

impl Calls {
    pub fn begin(self: &Arc<Calls>) -> Call {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let cancelled = Arc::new(AtomicBool::new(false));
        lock(&self.open).insert(id, Arc::clone(&cancelled));
        Call {
            id,
            cancelled,
            calls: Arc::clone(self),
        }
    }

    /// Whether there was such an exec to cancel.
    pub fn cancel(&self, id: u64) -> bool {
        let open = lock(&self.open);
        let found = open.get(&id);
        if let Some(cancelled) = found {
            cancelled.store(true, Ordering::Release);
        }
        found.is_some()
    }
}

/// One exec under way. Dropping it cancels the exec, so a caller that goes away ends its command.
pub(crate) struct Call {
    id: u64,
    cancelled: Arc<AtomicBool>,
    calls: Arc<Calls>,
}

impl Call {
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn cancelled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Release);
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
        assert!(calls.cancel(second.id()));
        assert!(second.cancelled().load(Ordering::Acquire));
        assert!(!first.cancelled().load(Ordering::Acquire));
        let (id, flag) = (first.id(), first.cancelled());
        drop(first);
        assert!(
            flag.load(Ordering::Acquire),
            "a call that goes away ends its command"
        );
        assert!(!calls.cancel(id));
    }
}
