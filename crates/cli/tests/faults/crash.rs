//! kill -9 of the daemon at many points while twenty clients write: all that was acknowledged is
//! there, and nothing is damaged.
//!
//! `AVFS_CRASH_ROUNDS=200 cargo test --test faults crash` is the long form; `AVFS_CRASH_SEED` chooses other
//! moments.

use avfs_testkit::{Dice, Home, NodeKind, number, process_ends, scan};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::AVFS;
const CLIENTS: u64 = 20;
const VAULTS: u64 = 4;

/// What clients may be told while a daemon dies and another one starts.
const ALLOWED: [&str; 3] = ["Unavailable", "Conflict", "TimedOut"];

/// What was acknowledged: of each vault, the files and their content.
#[derive(Default)]
struct Acknowledged {
    files: Mutex<BTreeMap<(u64, String), String>>,
    checkpoints: Mutex<Vec<(u64, String)>>,
    forks: Mutex<Vec<String>>,
    wrong: Mutex<Vec<String>>,
    count: AtomicU64,
}

impl Acknowledged {
    /// Runs a command; whether it was acknowledged.
    fn ask(&self, home: &Home, words: &[&str]) -> bool {
        let words: Vec<&str> = ["--json"].iter().chain(words).copied().collect();
        let output = home.command(&words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            self.count.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        let answer: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        let kind = answer["error"].as_str().unwrap_or_default();
        // A command that was lost with its sandbox has an envelope of its own.
        let interrupted = answer["result"]["status"] == "interrupted";
        let locked = said.contains("locked") || told.contains("locked");
        if locked || !(interrupted || ALLOWED.contains(&kind)) {
            let mut wrong = self.wrong.lock().unwrap();
            wrong.push(format!("{words:?}: {said}{told}"));
        }
        false
    }

    fn step(&self, home: &Home, client: u64, n: u64, dice: &mut Dice) {
        let vault = client % VAULTS;
        let name = format!("v{vault}");
        let content = format!("{client} {n}");
        match dice.roll(10) {
            0 => {
                let path = format!("/exec-{client}-{n}");
                let text = format!("echo '{content}' > {path}");
                if self.ask(home, &["--vault", &name, "exec", "--shell", &text]) {
                    let mut files = self.files.lock().unwrap();
                    files.insert((vault, path), format!("{content}\n"));
                }
            }
            1 => {
                let point = format!("c-{client}-{n}");
                if self.ask(home, &["--vault", &name, "checkpoint", "save", &point]) {
                    self.checkpoints.lock().unwrap().push((vault, point));
                }
            }
            2 => {
                let fork = format!("fork-{client}-{n}");
                if self.ask(home, &["vault", "fork", &name, &fork]) {
                    self.forks.lock().unwrap().push(fork);
                }
            }
            _ => {
                let path = format!("/d{client}/{n}");
                let words = ["--vault", &name, "write", "--parents", &path, &content];
                if self.ask(home, &words) {
                    self.files.lock().unwrap().insert((vault, path), content);
                }
            }
        }
    }

    fn check(&self, home: &Home, round: u64) {
        let wrong = self.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "round {round}: {}", wrong.join("\n"));
        for vault in 0..VAULTS {
            let to = home.path().join(format!("out-{round}-{vault}"));
            home.ok(&[
                "--vault",
                &format!("v{vault}"),
                "export",
                "/",
                to.to_str().unwrap(),
            ]);
            let found = scan(&to);
            for ((of, path), content) in self.files.lock().unwrap().iter() {
                if *of == vault {
                    let node = found.nodes.get(path.as_bytes());
                    let bytes = content.clone().into_bytes();
                    let kind = node.map(|node| &node.kind);
                    assert_eq!(
                        kind,
                        Some(&NodeKind::File { bytes }),
                        "round {round}: v{vault}{path}"
                    );
                }
            }
            std::fs::remove_dir_all(&to).unwrap();
            let listed = home.json(&["--vault", &format!("v{vault}"), "checkpoint", "list"]);
            for (of, point) in self.checkpoints.lock().unwrap().iter() {
                assert!(*of != vault || listed.to_string().contains(&format!("\"{point}\"")));
            }
        }
        let vaults = home.json(&["vault", "list"]).to_string();
        for fork in self.forks.lock().unwrap().iter() {
            assert!(
                vaults.contains(&format!("\"{fork}\"")),
                "round {round}: {fork}"
            );
        }
        let findings = home.json(&["fsck"]);
        assert_eq!(findings["clean"], true, "round {round}: {findings}");
    }
}

fn round(home: &Home, acknowledged: &Acknowledged, round: u64, dice: &mut Dice) {
    let over = AtomicBool::new(false);
    let pauses: Vec<u64> = (0..2).map(|_| 20 + dice.roll(600)).collect();
    let seeds: Vec<u64> = (0..CLIENTS).map(|_| dice.roll(1 << 30)).collect();
    std::thread::scope(|scope| {
        for (client, seed) in (0..).zip(seeds) {
            let over = &over;
            scope.spawn(move || {
                let mut dice = Dice::new(seed);
                for n in (round * 10_000).. {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    acknowledged.step(home, client, n, &mut dice);
                }
            });
        }
        for pause in pauses {
            let pid = home.daemon_pid();
            std::thread::sleep(Duration::from_millis(pause));
            if let Some(pid) = pid {
                let target = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                // It may have gone already, with the one before.
                let _ = kill_process(target, Signal::KILL);
                assert!(process_ends(pid, Duration::from_secs(10)));
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    acknowledged.check(home, round);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_daemon_is_killed() {
    let homes = Home::of_every_user(AVFS);
    let rounds = number("AVFS_CRASH_ROUNDS", 8).div_ceil(homes.len() as u64);
    for home in homes {
        let mut dice = Dice::new(number("AVFS_CRASH_SEED", 1));
        let acknowledged = Acknowledged::default();
        for vault in 0..VAULTS {
            home.ok(&["vault", "create", &format!("v{vault}")]);
        }
        for n in 0..rounds {
            round(&home, &acknowledged, n, &mut dice);
        }
        let count = acknowledged.count.load(Ordering::Relaxed);
        assert!(
            count > 10 * rounds,
            "{count} operations in {rounds} rounds as {}",
            home.user()
        );
    }
}
