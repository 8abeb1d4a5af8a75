//! Each helper process killed, while nothing happens and in the middle of work: the next command works without anybody's help.
//!
//! `AVFS_KILL_ROUNDS=300 cargo test --test faults killed` is the long form; `AVFS_KILL_SEED` chooses other moments.

mod operations;
mod told;

use std::collections::BTreeSet;
use std::fs;

use avfs_testkit::{Dice, Home, SOON, process_ends, processes_below};
use rustix::process::{Pid, Signal, kill_process};

use crate::AVFS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Helper {
    Keeper,
    /// The one that reads layers, the one that removes them, or the one that changes views.
    Scanner(usize),
    Agent,
    /// There is none where the overlay renames every directory by itself.
    Mover,
    Supervisor,
}

const HELPERS: [Helper; 7] = [
    Helper::Scanner(0),
    Helper::Scanner(1),
    Helper::Scanner(2),
    Helper::Keeper,
    Helper::Agent,
    Helper::Mover,
    Helper::Supervisor,
];

impl Helper {
    /// Whether work that is under way goes on without it.
    fn is_replaced_unnoticed(self) -> bool {
        matches!(self, Helper::Scanner(_))
    }

    fn find(self, home: &Home) -> Option<u32> {
        let below = processes_below(home.daemon_pid()?);
        let named = |name: &str| {
            let comm = |pid: &&u32| {
                fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|it| it.trim() == name)
            };
            below.iter().copied().find(|pid| comm(&pid))
        };
        match self {
            Helper::Keeper => named("avfs-keeper"),
            Helper::Agent => named("avfs-agent"),
            Helper::Mover => named("avfs-mover"),
            Helper::Supervisor => named("avfs-supervisor"),
            Helper::Scanner(number) => scanners(&below).into_iter().nth(number),
        }
    }

    /// Kills it, if it is there; gives its number.
    fn kill(self, home: &Home) -> Option<u32> {
        let number = self.find(home)?;
        let pid = Pid::from_raw(number.cast_signed())?;
        kill_process(pid, Signal::KILL).ok().map(|()| number)
    }
}

/// In the order in which they were started.
fn scanners(below: &BTreeSet<u32>) -> Vec<u32> {
    let reads = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|it| it == b"__scanner")
    };
    below.iter().copied().filter(reads).collect()
}

/// What every command finds that comes next, by one verb or another.
fn check_works(home: &Home, dice: &mut Dice, kept: &str, why: &str) {
    let first = dice.roll(4);
    for step in 0..4 {
        let (done, is_right) = match (first + step) % 4 {
            0 => {
                let done = home.avfs(&["ls", "/"]);
                let text = String::from_utf8_lossy(&done.stdout).into_owned();
                (done, text.contains("kept"))
            }
            1 => {
                let done = home.avfs(&["exec", "--", "cat", "/kept"]);
                let is_right = done.stdout == kept.as_bytes();
                (done, is_right)
            }
            2 => (home.avfs(&["write", "/other", kept]), true),
            _ => {
                let done = home.avfs(&["cat", "/kept"]);
                let is_right = done.stdout == kept.as_bytes();
                (done, is_right)
            }
        };
        assert!(
            done.status.success() && is_right,
            "{why}, as {}: {done:?}",
            home.user()
        );
    }
}

#[test]
fn all_scanners_can_die_at_once() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["exec", "--shell", "echo one > /kept"]);
        let all = scanners(&processes_below(home.daemon_pid().unwrap()));
        assert_eq!(all.len(), 3);
        for pid in &all {
            kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
        }
        let result = home.exec(&["cat", "/kept"]);
        assert_eq!(result["result"]["stdout"], "one\n", "{result:#}");
        let now = scanners(&processes_below(home.daemon_pid().unwrap()));
        assert!(now.iter().all(|pid| !all.contains(pid)), "{now:?}");
        assert_eq!(
            (&result["success"], now.is_empty()),
            (&true.into(), false),
            "{result:#}"
        );
    }
}

#[test]
fn a_mounted_vault_is_seen_as_it_is_without_scanners() {
    for home in Home::of_every_named_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let dir = home.path().join("m");
        let dir = dir.to_str().unwrap();
        let mounted = home.avfs(&["mount", dir]);
        if !mounted.status.success() {
            avfs_testkit::skip("this user can mount nothing");
            continue;
        }
        let wrote = home
            .host_command("sh")
            .args(["-c", "echo seen > \"$0/file\"", dir])
            .status();
        assert!(wrote.unwrap().success());
        for pid in scanners(&processes_below(home.daemon_pid().unwrap())) {
            kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
        }
        assert!(home.ok(&["ls", "/"]).contains("file"), "{}", home.user());
        // What stands on the lens of a dead keeper cannot be shown any more; what was written is kept.
        home.ok(&["write", "/two", "2"]);
        let keeper = Helper::Keeper.kill(&home).expect("it is there");
        assert!(process_ends(keeper, SOON));
        assert!(home.ok(&["ls", "/"]).contains("file"), "{}", home.user());
        assert_eq!(home.ok(&["cat", "/two"]), "2");
        // Only where it still stands.
        let _ = home.avfs(&["unmount", dir]);
        assert_eq!(
            home.exec(&["cat", "/file"])["result"]["stdout"],
            "seen\n",
            "as {}",
            home.user()
        );
    }
}
