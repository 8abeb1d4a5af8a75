//! Many short jobs leave nothing behind: no process, no mount, no descriptor, and only as many records as are kept.

use super::{start, wait};
use crate::AVFS;
use avfs_testkit::{Home, SOON, processes_below, wait_for, with_vault};
use std::fs;

/// How many; `AVFS_JOBS=1000` runs the long loop.
fn how_many() -> usize {
    std::env::var("AVFS_JOBS").map_or(40, |text| text.parse().unwrap())
}

/// What the daemon of a home holds of the machine.
#[derive(Debug, PartialEq)]
struct Held {
    processes: usize,
    mounts: usize,
    descriptors: usize,
}

fn held(home: &Home) -> Held {
    let status = home.json(&["daemon", "status"]);
    let pid = |key: &str| u32::try_from(status[key].as_u64().unwrap()).unwrap();
    let (daemon, keeper) = (pid("pid"), pid("keeper_pid"));
    let mounts = fs::read_to_string(format!("/proc/{keeper}/mountinfo")).unwrap();
    Held {
        processes: processes_below(keeper).len(),
        mounts: mounts.lines().count(),
        descriptors: fs::read_dir(format!("/proc/{daemon}/fd")).unwrap().count(),
    }
}

fn run(home: &Home, count: usize) {
    let mut jobs = Vec::new();
    for n in 0..count {
        let text = format!("echo {n}; echo {n} > /tmp/f{}; true &", n % 7);
        jobs.push((n, start(home, &["--shell", &text])));
        // Some at a time, as a busy agent would.
        if jobs.len() == 8 || n + 1 == count {
            for (n, job) in jobs.drain(..) {
                let waited = wait(home, &job);
                assert_eq!(waited["exit_code"], 0, "{waited:#}");
                assert_eq!(waited["envelope"]["result"]["stdout"], format!("{n}\n"));
            }
        }
    }
}

#[test]
fn many_short_jobs_leave_nothing_behind() {
    with_vault(AVFS, |home| {
        run(home, 16);
        let before = held(home);
        run(home, how_many());
        let clean = wait_for(SOON, || {
            let now = held(home);
            now.processes <= before.processes
                && now.mounts <= before.mounts
                && now.descriptors <= before.descriptors + 4
        });
        assert!(
            clean,
            "as {}: {before:?} before, {:?} after",
            home.user(),
            held(home)
        );
        let status = home.json(&["daemon", "status"]);
        assert_eq!(
            (&status["running_jobs"], &status["running_execs"]),
            (&0.into(), &0.into())
        );
        let names: Vec<String> = fs::read_dir(home.avfs_home().join("jobs"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(
            names.len(),
            (16 + how_many()).min(200) + 1,
            "as many as are kept, and the last number"
        );
        assert!(
            names
                .iter()
                .all(|name| name == "last" || name.parse::<u64>().is_ok()),
            "{names:?}"
        );
        let output = home.avfs_home().join("output");
        assert!(!output.exists(), "short output is not spilled");
        home.ok(&["vault", "delete", "v", "-y"]);
    });
}
