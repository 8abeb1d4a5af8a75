//! Inspecting processes, and waiting for conditions.

use crate::home::ORDINARY_UID;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// Longer than anything that a test waits for, even on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// Polls until `holds` returns true; returns whether it did in time.
pub fn wait_for(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to an existing process.
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a pid");
    kill_process(pid, signal).expect("it lives");
}

/// Waits until a process has ended, reaped or not.
pub fn process_ends(pid: u32, limit: Duration) -> bool {
    wait_for(limit, || {
        match fs::read_to_string(format!("/proc/{pid}/stat")) {
            Err(_) => true,
            // The state follows the name, which is in parentheses and may contain anything. The main thread may have ended while
            // others still hold its descriptors.
            Ok(stat) => {
                let dead = stat
                    .rsplit(')')
                    .next()
                    .is_some_and(|rest| rest.starts_with(" Z"));
                let threads = fs::read_dir(format!("/proc/{pid}/task"));
                dead && threads.map_or(true, |threads| threads.count() <= 1)
            }
        }
    })
}

/// Processes whose command line contains `marker`, except this one, and those of other users who run the same tests.
pub fn leftover_processes(marker: &str) -> Vec<u32> {
    holding("cmdline", marker)
}

/// Processes with this variable in their environment.
pub(crate) fn with_environment(variable: &str) -> Vec<u32> {
    holding("environ", variable)
}

/// Whether a process was started by tests of this user: root's may also be those of a sandbox, and of the user that root's
/// tests act as.
fn is_ours(pid: u32) -> bool {
    /// From here on, no uid is a person's.
    const NOBODYS: u32 = 100_000;
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"));
    let uid = line.and_then(|line| line.split_whitespace().next()?.parse::<u32>().ok());
    let own = rustix::process::geteuid().as_raw();
    uid.is_some_and(|uid| match own {
        0 => [0, ORDINARY_UID].contains(&uid) || uid >= NOBODYS,
        own => uid == own,
    })
}

fn holding(file: &str, marker: &str) -> Vec<u32> {
    let own = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own && is_ours(*pid))
        .filter(|pid| {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            bytes
                .windows(marker.len())
                .any(|window| window == marker.as_bytes())
        })
        .collect()
}

/// All descendants of a process.
pub fn processes_below(top: u32) -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").expect("a /proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = BTreeSet::from([top]);
    loop {
        let known = found.len();
        let more = parents.iter().filter(|(_, parent)| found.contains(parent));
        let more: Vec<u32> = more.map(|(pid, _)| *pid).collect();
        found.extend(more);
        if found.len() == known {
            found.remove(&top);
            return found;
        }
    }
}

/// A figure of a living process from the kernel's table of it, such as `VmHWM:`, in KiB.
pub fn status_kib(pid: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = text.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .expect("a number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_found_by_its_words_until_it_ends() {
        let marker = "98.7654321";
        let mut child = Command::new("sleep").arg(marker).spawn().unwrap();
        assert!(wait_for(Duration::from_secs(5), || leftover_processes(
            marker
        ) == [child.id()]));
        child.kill().unwrap();
        assert!(
            process_ends(child.id(), Duration::from_secs(5)),
            "before it is collected"
        );
        child.wait().unwrap();
        assert!(leftover_processes(marker).is_empty());
        assert!(!wait_for(Duration::from_millis(10), || false));
    }
}
