//! The memory of a command, looked at from outside where no control group holds it.

use std::fs;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::fs::statfs;

use crate::sys;

/// How often it is looked at.
const PERIOD: Duration = Duration::from_millis(20);
/// File systems whose files are memory.
const IN_MEMORY: [&str; 3] = ["/dev/shm", "/run", "/var/tmp"];

/// Watches the memory of all descendants of this process.
pub(crate) struct MemoryWatch {
    limit: u64,
    /// What was in memory files before.
    files: u64,
    next: Instant,
}

impl MemoryWatch {
    pub(crate) fn new(limit: u64) -> MemoryWatch {
        MemoryWatch {
            limit,
            files: memory_files(),
            next: Instant::now(),
        }
    }

    /// How long until it wants to be looked at again.
    pub(crate) fn pause(&self) -> Timespec {
        let left = self.next.saturating_duration_since(Instant::now());
        Timespec {
            tv_sec: 0,
            // Rounded up: waking before that would spin.
            tv_nsec: i64::from(left.min(PERIOD).subsec_nanos()) + 1000,
        }
    }

    /// Whether more than the limit is in use; looks only when it is time.
    pub(crate) fn is_exceeded(&mut self) -> bool {
        if Instant::now() < self.next {
            return false;
        }
        self.next = Instant::now() + PERIOD;
        let files = memory_files().saturating_sub(self.files);
        let processes = sys::descendants();
        let sum = |measure: fn(i32) -> Option<u64>| {
            let used = processes.iter().filter_map(|pid| measure(*pid));
            used.fold(files, u64::saturating_add)
        };
        // The first is quick, but counts pages that are shared once for each who shares them.
        sum(resident) > self.limit && sum(proportional) > self.limit
    }
}

/// The bytes of a process that are in memory.
fn resident(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The same with its part of what it shares, and what was swapped out.
fn proportional(pid: i32) -> Option<u64> {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
        // It keeps its memory to itself.
        return resident(pid);
    };
    let field = |name: &str| -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    Some((field("Pss:")? + field("SwapPss:").unwrap_or(0)) * 1024)
}

/// The bytes in files that are memory.
fn memory_files() -> u64 {
    const TMPFS: i64 = 0x0102_1994;
    let used = |dir: &&str| {
        // A vault may have something else there.
        let system = statfs(*dir).ok().filter(|system| system.f_type == TMPFS)?;
        Some((system.f_blocks - system.f_bfree) * system.f_bsize.cast_unsigned())
    };
    IN_MEMORY.iter().filter_map(used).sum()
}
