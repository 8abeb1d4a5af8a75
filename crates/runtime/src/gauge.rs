//! How much a command writes, looked at while it runs.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use avfs_view::UpperKind;

use crate::Result;
use crate::engine::Engine;

/// Between two looks at least; a look that takes long is followed by a longer pause.
const PERIOD: Duration = Duration::from_millis(50);
/// How many times as long as a look the pause after it is.
const PAUSE_FACTOR: u32 = 8;

/// Watches the bytes in a vault's layer and in its `/tmp`.
pub(crate) struct Gauge {
    engine: Arc<Engine>,
    places: [OwnedFd; 2],
    /// More than this is too much.
    most: u64,
    next: Instant,
}

impl Gauge {
    /// Allows `growth` bytes beyond what is there now.
    pub fn new(engine: Arc<Engine>, places: [OwnedFd; 2], growth: u64) -> Result<Gauge> {
        let mut gauge = Gauge {
            engine,
            places,
            most: 0,
            next: Instant::now(),
        };
        gauge.most = gauge.bytes()?.saturating_add(growth);
        Ok(gauge)
    }

    pub fn next(&self) -> Instant {
        self.next
    }

    /// Whether there is too much by now; looks only when it is time.
    pub fn is_exceeded(&mut self) -> Result<bool> {
        let started = Instant::now();
        if started < self.next {
            return Ok(false);
        }
        let exceeded = self.bytes()? > self.most;
        self.next = Instant::now() + PERIOD.max(started.elapsed() * PAUSE_FACTOR);
        Ok(exceeded)
    }

    fn bytes(&self) -> Result<u64> {
        let [layer, scratch] = &self.places;
        Ok(self.bytes_in(layer.as_fd())? + self.bytes_in(scratch.as_fd())?)
    }

    fn bytes_in(&self, place: BorrowedFd<'_>) -> Result<u64> {
        let entries = self.engine.scanner.scan(place)?;
        let size = |kind: &UpperKind| match kind {
            UpperKind::File { size, .. } => *size,
            _ => 0,
        };
        Ok(entries.iter().map(|entry| size(&entry.kind)).sum())
    }
}
