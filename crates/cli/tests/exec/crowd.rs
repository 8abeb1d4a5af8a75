//! Many vaults, many commands, many clients: right results, and nothing left behind.

use crate::AVFS;
use avfs_testkit::{Home, process_ends, wait_for};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A part for every run; `AVFS_CROWD=100 cargo test --test exec crowd` is the whole.
fn vaults() -> usize {
    let asked = std::env::var("AVFS_CROWD").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(12)
}

const EXECS: usize = 10;
const CLIENTS: usize = 20;

fn groups() -> usize {
    let pattern = [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/pids",
    ];
    let inside = |dir: &&str| fs::read_dir(dir).into_iter().flatten().flatten();
    let ours = pattern.iter().flat_map(inside);
    ours.filter(|entry| entry.file_name().to_string_lossy().starts_with("avfs-"))
        .count()
}

#[test]
fn many_clients_leave_nothing_behind() {
    for home in Home::of_every_user(AVFS) {
        let vaults = vaults();
        for number in 0..vaults {
            home.ok(&["vault", "create", &format!("v{number}")]);
        }
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    loop {
                        let turn = next.fetch_add(1, Ordering::Relaxed);
                        if turn >= vaults * EXECS {
                            return;
                        }
                        let (vault, round) = (format!("v{}", turn % vaults), turn / vaults);
                        let command = format!(
                            "echo {turn} > /f{round}; (setsid sleep 94.32187 &); cat /f{round}"
                        );
                        let words = [
                            "--vault", &vault, "exec", "--pids", "500", "--shell", &command,
                        ];
                        let envelope = home.json(&words);
                        let result = &envelope["result"];
                        assert_eq!(result["stdout"], format!("{turn}\n"), "{envelope:#}");
                        let changed = result["changed_files"].to_string();
                        assert!(changed.contains(&format!("/f{round}\"")), "{changed}");
                    }
                });
            }
        });
        for number in 0..vaults {
            let list = home.json(&["--vault", &format!("v{number}"), "ls", "/"]);
            let files = list.as_array().unwrap().iter();
            let files = files.filter(|item| item["name"].as_str().unwrap().starts_with('f'));
            assert_eq!(files.count(), EXECS);
        }
        let daemon = home.daemon_pid().unwrap();
        home.ok(&["daemon", "stop"]);
        assert!(process_ends(daemon, Duration::from_secs(20)));
        let limit = Duration::from_secs(10);
        assert!(wait_for(limit, || avfs_testkit::leftover_processes(
            "94.32187"
        )
        .is_empty()));
        assert!(
            wait_for(limit, || groups() == 0),
            "no control group is left"
        );
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let place = home.path().to_str().unwrap();
        assert!(!mounts.contains(place), "no mount is left: {mounts}");
        let layers = home.avfs_home().join("layers");
        let uppers = fs::read_dir(layers)
            .unwrap()
            .flatten()
            .flat_map(|vault| fs::read_dir(vault.path()).into_iter().flatten().flatten());
        let left: Vec<_> = uppers
            .map(|entry| entry.file_name())
            .filter(|name| name != "tmp")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
