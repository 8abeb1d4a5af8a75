//! What the caller of an operation is told meanwhile: from the thread that works to the caller's own.

use crate::ops::handler::Listener;
use crate::wire::{ExecEvent, ProgressEvent};
use avfs_runtime::{Progress, Watcher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// Events that may wait for a slow caller before a command has to wait itself, and how often it looks.
const QUEUE: usize = 64;
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Runs a command and wants its envelope alone.
pub(super) struct Deaf;

impl Listener<ExecEvent> for Deaf {
    fn tell(&self, _: ExecEvent, _: &dyn Fn() -> bool) {}

    fn is_gone(&self) -> bool {
        false
    }

    fn is_listening(&self) -> bool {
        false
    }
}

/// Where the thread that works puts what its caller is told. A command waits for a slow caller as it would at a pipe.
pub(super) struct Telling<E> {
    events: SyncSender<E>,
    is_gone: Arc<AtomicBool>,
}

/// The caller's end of it. Once it is dropped, nobody is there to be told.
pub(super) struct Told<E> {
    pub events: Receiver<E>,
    is_gone: Arc<AtomicBool>,
}

impl<E> Drop for Told<E> {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Release);
    }
}

/// The thread that works has to own its end: when that goes, the caller has been told all.
pub(super) fn queue<E>() -> (Telling<E>, Told<E>) {
    let (events, told) = sync_channel(QUEUE);
    let is_gone = Arc::<AtomicBool>::default();
    let telling = Telling {
        events,
        is_gone: Arc::clone(&is_gone),
    };
    let told = Told {
        events: told,
        is_gone,
    };
    (telling, told)
}

impl<E: Send> Listener<E> for Telling<E> {
    fn tell(&self, event: E, is_patient: &dyn Fn() -> bool) {
        let mut waiting = event;
        loop {
            match self.events.try_send(waiting) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => return,
                Err(TrySendError::Full(event)) => waiting = event,
            }
            if !is_patient() {
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }
}

impl Watcher for Telling<ProgressEvent> {
    fn progress(&self, progress: Progress) {
        // A full queue means that the last step has not even been looked at.
        let _ = self.events.try_send(ProgressEvent {
            files: progress.files,
            bytes: progress.bytes,
            total_files: progress.total_files,
            total_bytes: progress.total_bytes,
        });
    }

    fn cancelled(&self) -> bool {
        false
    }
}
