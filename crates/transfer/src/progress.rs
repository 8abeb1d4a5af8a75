//! Progress of long work: counted by the threads that do it, reported to a watcher, who can cancel it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Often enough for a moving bar, seldom enough to cost nothing.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What is done so far, and of how much where that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub files: u64,
    pub bytes: u64,
    pub total_files: Option<u64>,
    pub total_bytes: Option<u64>,
}

/// Receives progress and can cancel. Called from several threads.
pub trait Watcher: Sync {
    fn progress(&self, progress: Progress);

    /// True cancels the work; nothing of it remains.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores progress and never cancels.
pub struct Unwatched;

impl Watcher for Unwatched {
    fn progress(&self, _: Progress) {}
}

/// Counts what several threads do.
pub(crate) struct Tally<'a> {
    watcher: &'a dyn Watcher,
    files: AtomicU64,
    bytes: AtomicU64,
    totals: (Option<u64>, Option<u64>),
    told: Mutex<Instant>,
}

impl<'a> Tally<'a> {
    /// `totals` are files and bytes, as far as they are known beforehand.
    pub fn new(watcher: &'a dyn Watcher, totals: (Option<u64>, Option<u64>)) -> Tally<'a> {
        Tally {
            watcher,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            totals,
            told: Mutex::new(Instant::now()),
        }
    }

    /// Adds to what is done; `Cancelled` if the watcher cancels.
    pub fn add(&self, files: u64, bytes: u64) -> Result<()> {
        let files = self.files.fetch_add(files, Ordering::Relaxed) + files;
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let bytes = before.wrapping_add(bytes);
        // Another thread holds the lock and reports.
        let Ok(mut told) = self.told.try_lock() else {
            return Ok(());
        };
        if told.elapsed() < TELL_EVERY {
            return Ok(());
        }
        *told = Instant::now();
        drop(told);
        self.watcher.progress(Progress {
            files,
            bytes,
            total_files: self.totals.0,
            total_bytes: self.totals.1,
        });
        self.check()
    }

    /// `Cancelled` if the watcher cancels.
    pub fn check(&self) -> Result<()> {
        match self.watcher.cancelled() {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{MutexGuard, PoisonError};

    struct Recorder(Mutex<Vec<Progress>>);

    impl Recorder {
        fn told(&self) -> MutexGuard<'_, Vec<Progress>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Watcher for Recorder {
        fn progress(&self, progress: Progress) {
            self.told().push(progress);
        }

        fn cancelled(&self) -> bool {
            self.told().len() >= 2
        }
    }

    #[test]
    fn it_tells_now_and_then_and_can_be_ended() {
        let recorder = Recorder(Mutex::default());
        let tally = Tally::new(&recorder, (None, Some(100)));
        let begun = Instant::now();
        let ended = loop {
            match tally.add(1, 2) {
                Ok(()) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => break error,
            }
        };
        assert!(matches!(ended, Error::Cancelled));
        assert!(begun.elapsed() >= 2 * TELL_EVERY);
        let told = recorder.told();
        assert_eq!(told.len(), 2);
        assert!(told[1].files > told[0].files && told[1].bytes == 2 * told[1].files);
        assert_eq!(told[0].total_bytes, Some(100));
    }
}
