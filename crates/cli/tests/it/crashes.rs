//! Daemon and keeper killed while a command writes.

use crate::with_vault;
use avfs_testkit::{Home, leftover_processes, process_ends, wait_for};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(10);

/// Starts a command that writes `/work` and then goes on; returns once it has written.
fn start_writing(home: &Home, marker: &str) -> Child {
    let script = format!("echo so far > /work; echo written; exec sleep {marker}");
    let mut child = home.command(&["exec", "--timeout", "0", "--shell", &script]);
    let mut child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "written\n");
    assert!(wait_for(SOON, || !leftover_processes(marker).is_empty()));
    child
}

fn kill_nine(pid: u32) {
    assert!(
        Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

fn work_is_kept(home: &Home, marker: &str) {
    let begun = Instant::now();
    assert_eq!(home.ok(&["cat", "/work"]), "so far\n", "as {}", home.user());
    let log = home.json(&["vault", "log"]);
    let causes: Vec<_> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["cause"].clone())
        .collect();
    assert!(causes.contains(&"interrupted".into()), "{log}");
    assert_eq!(home.shell("cat /work")["result"]["stdout"], "so far\n");
    assert!(begun.elapsed() < SOON, "nothing hangs");
    assert!(
        wait_for(SOON, || leftover_processes(marker).is_empty()),
        "no process is left"
    );
}

#[test]
fn a_killed_daemon_loses_no_work() {
    with_vault(|home| {
        let marker = "567.8901";
        let mut child = start_writing(home, marker);
        let daemon = home.daemon_pid().unwrap();
        kill_nine(daemon);
        assert!(process_ends(daemon, SOON));
        assert!(
            wait_for(SOON, || matches!(child.try_wait(), Ok(Some(_)))),
            "the client hangs"
        );
        assert_eq!(child.wait().unwrap().code(), Some(125));
        work_is_kept(home, marker);
    });
}

#[test]
fn a_killed_keeper_loses_no_work() {
    with_vault(|home| {
        let marker = "678.9012";
        let mut child = start_writing(home, marker);
        let keeper = home.json(&["daemon", "status"])["keeper_pid"]
            .as_u64()
            .expect("a keeper");
        kill_nine(u32::try_from(keeper).unwrap());
        assert!(
            wait_for(SOON, || matches!(child.try_wait(), Ok(Some(_)))),
            "the client hangs"
        );
        assert_eq!(child.wait().unwrap().code(), Some(125));
        work_is_kept(home, marker);
    });
}
