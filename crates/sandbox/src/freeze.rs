//! Commands held still for a moment, by stopping each of their processes.

use std::time::{Duration, Instant};

use crate::sys;

/// New processes are looked for so often at most.
const ROUNDS: u32 = 100;
/// How long one may take to, before its children are stopped.
const PARENT: Duration = Duration::from_millis(20);
/// How long all may take to stand still.
const PATIENCE: Duration = Duration::from_secs(2);

/// Stops every process of `commands` that is not stopped already; gives those, for [`go_on`].
///
/// A process that is made while the others are being stopped is found in the next round.
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
        // Who stopped it otherwise also wants to continue it.
        new.retain(|pid| sys::state_of(*pid).is_some_and(|state| !b"TtZX".contains(&state)));
        stop(&new);
        stopped.extend(new);
    }
    let deadline = Instant::now() + PATIENCE;
    // One that waits in the kernel for another that stands still does not move either.
    let moves = |pid: &i32| sys::state_of(*pid).is_some_and(|state| b"RS".contains(&state));
    while stopped.iter().any(moves) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(200));
    }
    stopped
}

/// Stops processes, the oldest first, and each that has others of them as children for sure before those: a shell
/// that still waits while its child is stopped takes that for Ctrl-Z.
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

/// Lets them go on, the youngest first: a shell that wakes before its child would see it stopped, and take it
/// for one that was stopped at the terminal.
pub(crate) fn go_on(stopped: &[i32]) {
    let mut youngest_first = stopped.to_vec();
    youngest_first.sort_unstable_by(|a, b| b.cmp(a));
    sys::signal_each(&youngest_first, libc::SIGCONT);
}
