//! How much a command writes, looked at while it runs and when it has ended.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use avfs_vault::Quota;
use avfs_view::Totals;

use crate::Result;
use crate::live::admission::{ASIDE_BYTES, ASIDE_FILES};
use crate::live::engine::Engine;

/// Between two looks at least; a look that takes long is followed by a longer pause.
const PERIOD: Duration = Duration::from_millis(50);
/// How many times as long as a look the pause after it is.
const PAUSE_FACTOR: u32 = 8;

/// Watches the files in a vault's layer and in its `/tmp`.
pub(crate) struct DiskWatch {
    engine: Arc<Engine>,
    places: [OwnedFd; 2],
    /// More than this is too much.
    most: Totals,
    next: Instant,
}

impl DiskWatch {
    /// Allows `growth` bytes beyond what is there now. A command above the vault's quota is told so when it has ended, and
    /// is ended when it is above all that could be kept of it. Nothing is watched where there is no limit.
    pub fn new(
        engine: Arc<Engine>,
        places: [OwnedFd; 2],
        growth: Option<u64>,
        quota: Quota,
    ) -> Result<Option<DiskWatch>> {
        if growth.is_none() && quota.bytes.is_none() && quota.files.is_none() {
            return Ok(None);
        }
        let mut disk_watch = DiskWatch {
            engine,
            places,
            most: Totals::default(),
            next: Instant::now(),
        };
        let now = disk_watch.totals()?;
        let grown = growth.map_or(u64::MAX, |growth| now.bytes.saturating_add(growth));
        disk_watch.most = Totals {
            bytes: grown.min(
                quota
                    .bytes
                    .map_or(u64::MAX, |most| most.max(ASIDE_BYTES).max(now.bytes)),
            ),
            files: quota
                .files
                .map_or(u64::MAX, |most| most.max(ASIDE_FILES).max(now.files)),
        };
        Ok(Some(disk_watch))
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
        let exceeded = self.is_exceeded_now()?;
        self.next = Instant::now() + PERIOD.max(started.elapsed() * PAUSE_FACTOR);
        Ok(exceeded)
    }

    /// Whether there is too much by now; looks at once.
    pub fn is_exceeded_now(&self) -> Result<bool> {
        let Totals { files, bytes } = self.totals()?;
        Ok(bytes > self.most.bytes || files > self.most.files)
    }

    fn totals(&self) -> Result<Totals> {
        let [layer, scratch] = &self.places;
        let scanner = &self.engine.scanner;
        let layer = scanner.measure(layer.as_fd(), &|| false)?;
        Ok(layer.and(scanner.measure(scratch.as_fd(), &|| false)?))
    }
}
