//! The memory of a command, polled where no control group counts it.
//!
//! It is what the processes have mapped, plus files and segments in memory, mapped or not: tmpfs, including the
//! files that replace memfds (see [`crate::memfile`]), and System V shared memory.

use std::fs;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::fs::statfs;

use crate::share::memory_fields;
use crate::sys;

/// The polling interval.
const PERIOD: Duration = Duration::from_millis(20);
/// The interval for limits above [`LARGE`], which take longer to reach.
const PERIOD_OF_LARGE: Duration = Duration::from_millis(100);
const LARGE: u64 = 1 << 30;
/// File systems in memory.
const IN_MEMORY: [&str; 3] = ["/dev/shm/", "/run/", "/var/tmp/"];
/// The name of mapped System V segments in `/proc/PID/smaps`.
const SEGMENT: &str = "/SYSV";

/// Watches the memory of all descendants of this process.
pub(crate) struct MemoryWatch {
    limit: u64,
    /// The least that was in such files and segments since the command started: the most that it may not have made.
    others: u64,
    period: Duration,
    next: Instant,
}

impl MemoryWatch {
    pub(crate) fn new(limit: u64) -> MemoryWatch {
        let period = match limit > LARGE {
            true => PERIOD_OF_LARGE,
            false => PERIOD,
        };
        MemoryWatch {
            limit,
            others: shared(),
            period,
            next: Instant::now() + period,
        }
    }

    /// The time until the next poll.
    pub(crate) fn pause(&self) -> Timespec {
        let left = self.next.saturating_duration_since(Instant::now());
        Timespec {
            tv_sec: 0,
            // Rounded up: waking too early would spin.
            tv_nsec: i64::from(left.min(self.period).subsec_nanos()) + 1000,
        }
    }

    /// Whether more than the limit is in use; polls only if it is due.
    pub(crate) fn is_exceeded(&mut self) -> bool {
        if Instant::now() < self.next {
            return false;
        }
        self.next = Instant::now() + self.period;
        let shared = shared();
        // What was freed since the start may be taken again by this command.
        self.others = self.others.min(shared);
        if self.host_has_less_in_use() {
            return false;
        }
        let shared = shared - self.others;
        let processes = sys::descendants();
        let sum = |measure: fn(i32) -> Option<u64>| {
            let used = processes.iter().filter_map(|pid| measure(*pid));
            used.fold(shared, u64::saturating_add)
        };
        // The first figure is cheap, but counts shared pages once per process.
        sum(resident) > self.limit && sum(proportional) > self.limit
    }

    /// Whether all memory in use on the host is within the limit, which is cheap to find out.
    fn host_has_less_in_use(&self) -> bool {
        let names = ["MemTotal:", "MemAvailable:", "SwapTotal:", "SwapFree:"];
        let Some([total, free, swap, unused]) = memory_fields(names) else {
            return false;
        };
        let in_use = total.saturating_sub(free);
        in_use.saturating_add(swap.saturating_sub(unused)) < self.limit
    }
}

/// The resident bytes of a process.
fn resident(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The bytes of a process in memory and swap: shared pages in proportion (`Pss`), without what
/// [`shared`] counts.
fn proportional(pid: i32) -> Option<u64> {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/smaps")) else {
        // A process that is not dumpable hides its `smaps`.
        return resident(pid);
    };
    Some(proportional_in(&text))
}

fn proportional_in(maps: &str) -> u64 {
    let mut sum = 0;
    let mut counted_elsewhere = false;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.ends_with(':') {
            // Address, rights, offset, device, inode, path.
            let rights = words.next().unwrap_or_default();
            let path = words.nth(3).unwrap_or_default();
            let known = IN_MEMORY.iter().chain(&[SEGMENT]);
            // Changed pages of a private mapping are its own memory.
            counted_elsewhere =
                rights.ends_with('s') && known.into_iter().any(|place| path.starts_with(place));
        } else if !counted_elsewhere && (first == "Pss:" || first == "SwapPss:") {
            let kibibytes = words.next().and_then(|word| word.parse::<u64>().ok());
            sum += kibibytes.unwrap_or(0) * 1024;
        }
    }
    sum
}

/// The bytes in files and segments in memory, mapped or not.
fn shared() -> u64 {
    memory_files().saturating_add(segments())
}

/// The bytes in files on tmpfs.
fn memory_files() -> u64 {
    const TMPFS: i64 = 0x0102_1994;
    let used = |dir: &&str| {
        // A vault may have something else there.
        let system = statfs(*dir).ok().filter(|system| system.f_type == TMPFS)?;
        Some((system.f_blocks - system.f_bfree) * system.f_bsize.cast_unsigned())
    };
    IN_MEMORY.iter().filter_map(used).sum()
}

/// The bytes in segments of System V shared memory.
fn segments() -> u64 {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    segments_in(&text)
}

fn segments_in(table: &str) -> u64 {
    let lines = table.lines().skip(1);
    let bytes = lines.map(|line| {
        // The last two columns: resident and swapped bytes.
        let words = line.split_whitespace().rev().take(2);
        words
            .filter_map(|word| word.parse::<u64>().ok())
            .sum::<u64>()
    });
    bytes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_pages_are_counted_once() {
        let maps = "7f00-7f10 rw-s 00000000 00:01 7 /dev/shm/a b (deleted)\nRss: 9 kB\nPss: 100 kB\n\
                    7f20-7f30 rw-s 00000000 00:01 8 /SYSV00000000 (deleted)\nPss: 100 kB\n\
                    7f40-7f50 rw-p 00000000 00:01 8 /SYSV00000000\nPss: 2 kB\nSwapPss: 1 kB\n\
                    7f60-7f70 rw-s 00000000 00:01 9 /dev/zero (deleted)\nPss: 4 kB\n\
                    7f80-7f90 rw-p 00000000 00:00 0 \nPss: 8 kB\nPss_Anon: 8 kB\nVmFlags: rd wr";
        assert_eq!(proportional_in(maps), (2 + 1 + 4 + 8) * 1024);
        let table = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n\
                     0 0 600 1048576 2 2 0 1000 1000 1000 1000 0 0 1 4096 8192\n";
        assert_eq!(segments_in(table), 12288);
        assert_eq!(segments_in(""), 0);
    }
}
