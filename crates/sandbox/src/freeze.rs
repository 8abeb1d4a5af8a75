//! Freezing commands, by SIGSTOP to each of their processes.

use std::time::{Duration, Instant};

use crate::sys;

/// How many rounds of searching for new processes.
const ROUNDS: u32 = 100;
/// How long a process may take to stop before its children are stopped.
const PARENT: Duration = Duration::from_millis(20);
/// How long all may take to stop.
const PATIENCE: Duration = Duration::from_secs(2);

/// Stops every process of `commands` that is not stopped already; returns these, for [`go_on`].
///
/// A process that is forked meanwhile is found in the next round.
pub(crate) fn stand_still(commands: impl Fn() -> Vec<i32>) -> Vec<i32> {
    let mut stopped: Vec<i32> = Vec::new();
    let mut seen: Vec<i32> = Vec::new();
    for _ in 0..ROUNDS {
        let mut new = commands();
        new.retain(|pid| !seen.contains(pid));
        if new.is_empty() {
            break;
        }
        seen.extend(&new);
        // A process that was stopped before is not ours to continue.
        new.retain(|pid| sys::state_of(*pid).is_some_and(|state| !b"TtZX".contains(&state)));
        stop(&new);
        stopped.extend(new);
    }
    let deadline = Instant::now() + PATIENCE;
    // A process that waits in the kernel for a stopped one does not run either.
    let moves = |pid: &i32| sys::state_of(*pid).is_some_and(|state| b"RS".contains(&state));
    while stopped.iter().any(moves) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(200));
    }
    stopped
}

/// Stops processes, the oldest first, and a parent always before its children: a shell that still runs while its
/// child is stopped takes that for Ctrl-Z.
fn stop(processes: &[i32]) {
    let parents: Vec<i32> = processes
        .iter()
        .filter_map(|pid| sys::parent_of(*pid))
        .collect();
    for pid in processes {
        sys::signal_each(&[*pid], libc::SIGSTOP);
        let deadline = Instant::now() + PARENT;
        let moves = || sys::state_of(*pid).is_some_and(|state| b"RS".contains(&state));
        while parents.contains(pid) && moves() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Continues them, the youngest first: a shell that runs before its child would see the child stopped, and take that
/// for Ctrl-Z.
pub(crate) fn go_on(stopped: &[i32]) {
    let mut youngest_first = stopped.to_vec();
    youngest_first.sort_unstable_by(|a, b| b.cmp(a));
    sys::signal_each(&youngest_first, libc::SIGCONT);
}
