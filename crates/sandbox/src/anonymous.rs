//! Shared anonymous memory (`mmap`), where no control group counts memory.
//!
//! The kernel tells how much of it each process has mapped, but not the total: it lives on after the process that
//! wrote it has ended, as long as another process has one page of it mapped. So seccomp notifies the mover of
//! these calls. The mover adds their sizes up and refuses what exceeds the command's limit.

use std::collections::BTreeSet;
use std::ffi::c_long;
use std::time::{Duration, Instant};

use crate::notify::Notice;
use crate::sys;

/// The call to be notified of, if it has these flags.
pub(crate) const CALL: c_long = libc::SYS_mmap;
pub(crate) const FLAGS: [u32; 2] = [
    libc::MAP_ANONYMOUS.cast_unsigned(),
    // Also in MAP_SHARED_VALIDATE, not in MAP_PRIVATE.
    libc::MAP_SHARED.cast_unsigned(),
];

/// How long a permitted call may take until its mapping is visible.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// The shared anonymous memory that a command has requested.
pub(crate) struct Ledger {
    limit: u64,
    sizes: Vec<(u64, Instant)>,
}

impl Ledger {
    /// Without a limit everything is allowed.
    pub(crate) fn new(limit: Option<u64>) -> Ledger {
        Ledger {
            limit: limit.unwrap_or(u64::MAX),
            sizes: Vec::new(),
        }
    }

    /// Whether a waiting call may proceed; if so, its size is added.
    pub(crate) fn allows(&mut self, notice: &Notice) -> bool {
        if self.limit == u64::MAX {
            return true;
        }
        let size = notice.arguments[1];
        if !self.has_room_for(size) {
            self.forget(live_mappings());
        }
        let room = self.has_room_for(size);
        if room {
            self.sizes.push((size, Instant::now()));
        }
        room
    }

    fn has_room_for(&self, size: u64) -> bool {
        let sizes = self.sizes.iter().map(|(size, _)| *size);
        sizes.fold(size, u64::saturating_add) <= self.limit
    }

    /// Drops the smallest sizes if fewer mappings exist than sizes: whichever are gone, they are not smaller than
    /// these.
    fn forget(&mut self, live: Option<usize>) {
        let Some(live) = live else {
            return;
        };
        let now = Instant::now();
        let (mut fresh, mut old): (Vec<_>, Vec<_>) = std::mem::take(&mut self.sizes)
            .into_iter()
            .partition(|(_, made)| now.duration_since(*made) < UNDER_WAY);
        old.sort_unstable_by(|a, b| b.cmp(a));
        old.truncate(live);
        fresh.append(&mut old);
        self.sizes = fresh;
    }
}

/// How many shared anonymous mappings exist in this sandbox; `None` if a process cannot be inspected.
fn live_mappings() -> Option<usize> {
    let mut inodes = BTreeSet::new();
    for pid in sys::process_ids() {
        let text = match std::fs::read_to_string(format!("/proc/{pid}/maps")) {
            Ok(text) => text,
            // Our own processes have none, and are not dumpable.
            Err(_) if crate::guard::is_ours(pid) || sys::parent_of(pid).is_none() => continue,
            Err(_) => return None,
        };
        inodes.extend(text.lines().filter_map(inode).map(str::to_owned));
    }
    Some(inodes.len())
}

/// The inode of a line that is a mapping of shared anonymous memory.
fn inode(line: &str) -> Option<&str> {
    // Address, rights, offset, device, inode, path.
    let mut words = line.split_whitespace().skip(4);
    let inode = words.next()?;
    (words.next()? == "/dev/zero").then_some(inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_remembered() {
        let long_ago = Instant::now() - 2 * UNDER_WAY;
        let mut ledger = Ledger {
            limit: 100,
            sizes: vec![(10, long_ago), (50, long_ago), (20, long_ago)],
        };
        assert!(ledger.has_room_for(20) && !ledger.has_room_for(21));
        ledger.forget(None);
        assert!(!ledger.has_room_for(21));
        ledger.forget(Some(1));
        assert!(ledger.has_room_for(50) && !ledger.has_room_for(51));
        ledger.sizes.push((30, Instant::now()));
        ledger.forget(Some(0));
        assert!(
            ledger.has_room_for(70) && !ledger.has_room_for(71),
            "one under way counts"
        );
        assert!(Ledger::new(None).has_room_for(u64::MAX));
    }

    #[test]
    fn mappings_are_told_by_their_inodes() {
        let line = "7f00-7f10 rw-s 00000000 00:01 123   /dev/zero (deleted)";
        assert_eq!(inode(line), Some("123"));
        assert_eq!(inode("7f00-7f10 rw-p 00000000 00:00 0"), None);
    }
}
