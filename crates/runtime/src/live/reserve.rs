//! A part of the disk that commands leave free for everybody else.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, StatVfs, fstatvfs, open};

use crate::{Error, Result};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(50);
/// The most that is kept free.
const MOST: u64 = 1 << 30;

/// Watches the free space of a file system.
pub(crate) struct Reserve {
    place: OwnedFd,
    /// Less than this must not be free.
    bytes: u64,
    files: u64,
    next: Instant,
}

/// How many bytes stay free on the file system of a directory, as it is now.
pub(crate) fn reserve_of(dir: &Path) -> Result<u64> {
    Reserve::new(dir).map(|reserve| reserve.bytes)
}

impl Reserve {
    /// Keeps 1 GiB or a twentieth of the disk free, whichever is less; if hardly more is free now, half of
    /// that, so that a full disk does not end every command.
    pub fn new(dir: &Path) -> Result<Reserve> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = open(dir, flags, Mode::empty()).map_err(failed)?;
        let now = fstatvfs(&place).map_err(failed)?;
        let total = now.f_blocks.saturating_mul(now.f_frsize);
        Ok(Reserve {
            place,
            bytes: MOST.min(total / 20).min(free(&now) / 2),
            // Some file systems have as many as they need, and say 0.
            files: (now.f_files / 50).min(now.f_favail / 2),
            next: Instant::now() + PERIOD,
        })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn next(&self) -> Instant {
        self.next
    }

    /// Whether too little is free by now; looks only when it is time.
    pub fn is_touched(&mut self) -> Result<bool> {
        if Instant::now() < self.next {
            return Ok(false);
        }
        self.next = Instant::now() + PERIOD;
        let now = fstatvfs(&self.place).map_err(failed)?;
        Ok(free(&now) < self.bytes || now.f_favail < self.files)
    }
}

fn free(now: &StatVfs) -> u64 {
    now.f_bavail.saturating_mul(now.f_frsize)
}

fn failed(errno: rustix::io::Errno) -> Error {
    Error::Io {
        what: "looking at the free space of the disk".into(),
        source: errno.into(),
    }
}
