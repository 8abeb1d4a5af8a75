//! Ctrl-C while a command runs.

use crate::AVFS;
use avfs_testkit::{Home, leftover_processes, signal, wait_for, with_vault};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn an_interrupted_command_ends_and_is_reported() {
    with_vault(AVFS, |home| {
        let script = "echo work > /work; echo begun; exec sleep 77.123456";
        let mut child = home.command(&["exec", "--timeout", "0", "--shell", script]);
        let mut child = child
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "begun\n");
        assert!(wait_for(Duration::from_secs(20), || !leftover_processes(
            "77.123456"
        )
        .is_empty()));
        let begun = Instant::now();
        signal(child.id(), Signal::INT);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "as {}", home.user());
        assert!(begun.elapsed() < Duration::from_secs(60), "it slept on");
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            report.contains("cancelled") && report.contains("A /work"),
            "{report}"
        );
        assert!(leftover_processes("77.123456").is_empty());
        assert_eq!(
            home.ok(&["cat", "/work"]),
            "work\n",
            "what was done is kept"
        );
    });
}

#[test]
fn an_interrupted_demo_leaves_nothing() {
    for home in Home::of_every_user(AVFS) {
        // Nobody holds it up: it may be over before the signal comes.
        let mut codes = (0..5).map(|_| interrupted_demo(&home));
        assert!(codes.any(|code| code == Some(130)), "as {}", home.user());
    }
}

/// Interrupts a demo; gives its exit code, if it was at work.
fn interrupted_demo(home: &Home) -> Option<i32> {
    let mut child = home.command(&["demo"]);
    let mut child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stage = std::env::temp_dir().join(format!("avfs-demo-{}", child.id()));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("Import into a vault")));
    let at_work = stage.exists();
    signal(child.id(), Signal::INT);
    let rest = std::thread::spawn(move || lines.count());
    let code = child.wait().unwrap().code();
    rest.join().unwrap();
    assert!(!stage.exists());
    at_work.then_some(code).flatten()
}
