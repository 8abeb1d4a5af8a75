//! How much room the disk of a home has.

use std::path::Path;

use rustix::fs::statvfs;

/// What is free on a file system, for this user.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Room {
    pub bytes: u64,
    /// How many files and directories can be made. File systems without such a limit say so by `u64::MAX`.
    pub files: u64,
}

/// With less than this, SQLite cannot make the files it needs.
const LEAST: Room = Room {
    bytes: 128 << 10,
    files: 2,
};

impl Room {
    /// What is free where `directory` is. What cannot be told counts as room: whoever writes finds out.
    pub fn of(directory: &Path) -> Room {
        match statvfs(directory) {
            Ok(now) => Room {
                bytes: now.f_bavail.saturating_mul(now.f_frsize),
                files: match now.f_files {
                    0 => u64::MAX,
                    _ => now.f_favail,
                },
            },
            Err(_) => Room {
                bytes: u64::MAX,
                files: u64::MAX,
            },
        }
    }

    /// Whether next to nothing can be written.
    pub fn is_none(self) -> bool {
        self.bytes < LEAST.bytes || self.files < LEAST.files
    }
}
