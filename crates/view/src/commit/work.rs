//! Limits of a commit, and its cancellation.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// How much a commit accepts; more is refused, before anything is read if the listing shows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Apparent sizes of all files in the layer.
    pub bytes: Option<u64>,
    pub files: Option<u64>,
    /// Of one file.
    pub file_bytes: Option<u64>,
}

/// Which limit was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMuch {
    Bytes,
    Files,
    FileBytes,
    /// Bytes of all entries.
    Listing,
    /// Hard-linked names.
    Links,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TooMuch::Bytes => "bytes in all files",
            TooMuch::Files => "files",
            TooMuch::FileBytes => "bytes in one file",
            TooMuch::Listing => "bytes of names and attributes",
            TooMuch::Links => "names that are hard links",
        })
    }
}

/// A running commit. It is checked after each piece that is read or stored, from any thread.
pub(super) struct Work<'a> {
    stopped: &'a (dyn Fn() -> bool + Sync),
    allowance: Allowance,
    read: AtomicU64,
}

impl<'a> Work<'a> {
    pub fn new(stopped: &'a (dyn Fn() -> bool + Sync), allowance: Allowance) -> Work<'a> {
        Work {
            stopped,
            allowance,
            read: AtomicU64::new(0),
        }
    }

    #[cfg(test)]
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// An error if the commit was cancelled.
    pub fn check(&self) -> Result<()> {
        match (self.stopped)() {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }

    /// Counts bytes of one file that were read, or a skipped hole. Files may grow while they are read, so the limits are checked
    /// again after the listing.
    pub fn count(&self, bytes: u64) -> Result<()> {
        let read = self.read.fetch_add(bytes, Ordering::Relaxed) + bytes;
        match self.allowance.bytes {
            Some(most) if read > most => Err(Error::TooMuch {
                what: TooMuch::Bytes,
                most,
                found: read,
                path: None,
            }),
            _ => self.check(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_files_have_grown_by_counts() {
        let allowance = Allowance {
            bytes: Some(1_500),
            ..Allowance::default()
        };
        let work = Work::new(&|| false, allowance);
        work.count(1_000).unwrap();
        let refusal = work.count(1_000).unwrap_err();
        assert!(
            matches!(refusal, Error::TooMuch { most: 1_500, .. }),
            "{refusal}"
        );
    }

    #[test]
    fn counting_ends_when_the_commit_is_stopped() {
        let work = Work::new(&|| true, Allowance::default());
        assert!(matches!(work.count(1), Err(Error::Stopped)));
    }
}
