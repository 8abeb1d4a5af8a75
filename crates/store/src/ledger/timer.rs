//! The timer that syncs: what was committed without a sync comes to the disk a little later.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::connect::connect;
use crate::{Error, Result};

/// What was committed without a sync is on the disk after about this long.
const SYNC_DELAY: Duration = Duration::from_secs(2);

/// Moves the log into the database, with the syncs this takes, off the path of any commit.
pub struct Timer {
    shared: Arc<(Mutex<TimerState>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum TimerState {
    Idle,
    Committed,
    Stopped,
}

impl Timer {
    pub fn start(path: &Path, sync_failed: Arc<AtomicBool>) -> Result<Timer> {
        let connection = connect(path)?;
        let shared = Arc::new((Mutex::new(TimerState::Idle), Condvar::new()));
        let theirs = shared.clone();
        let run = move || run_timer(&connection, &theirs, &sync_failed);
        let thread = std::thread::Builder::new()
            .name("avfs-sync".to_owned())
            .spawn(run);
        let thread = Some(thread.map_err(Error::io("start the sync timer of", path))?);
        Ok(Timer { shared, thread })
    }

    pub fn committed(&self) {
        self.set(TimerState::Committed);
    }

    fn set(&self, state: TimerState) {
        let (lock, changed) = &*self.shared;
        let previous = {
            let mut held = lock.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *held, state)
        };
        if previous != state {
            changed.notify_one();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.set(TimerState::Stopped);
        if let Some(thread) = self.thread.take() {
            // A timer that panicked has nothing left to tell.
            let _ = thread.join();
        }
    }
}

/// Whether the kernel failed to put something on the disk that was written before.
pub fn is_sync_failure(error: &rusqlite::Error) -> bool {
    let code = match error {
        rusqlite::Error::SqliteFailure(failure, _) => failure.extended_code,
        _ => return false,
    };
    [
        rusqlite::ffi::SQLITE_IOERR_FSYNC,
        rusqlite::ffi::SQLITE_IOERR_DIR_FSYNC,
    ]
    .contains(&code)
}

fn run_timer(
    connection: &Connection,
    shared: &(Mutex<TimerState>, Condvar),
    sync_failed: &AtomicBool,
) {
    let (lock, changed) = shared;
    let mut state = lock.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        state = changed
            .wait_while(state, |state| *state == TimerState::Idle)
            .unwrap_or_else(PoisonError::into_inner);
        let stopping = |state: &mut TimerState| *state != TimerState::Stopped;
        (state, _) = changed
            .wait_timeout_while(state, SYNC_DELAY, stopping)
            .unwrap_or_else(PoisonError::into_inner);
        if *state == TimerState::Stopped {
            return;
        }
        *state = TimerState::Idle;
        drop(state);
        let moved = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        state = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if moved.as_ref().is_err_and(is_sync_failure) {
            sync_failed.store(true, Ordering::Release);
        }
        let busy = Some(ErrorCode::DatabaseBusy);
        let again = moved.is_err_and(|error| error.sqlite_error_code() == busy);
        if again && *state == TimerState::Idle {
            *state = TimerState::Committed;
        }
    }
}
