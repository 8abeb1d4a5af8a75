//! Ctrl-C while a command runs.

use crate::{AVFS, with_vault};
use avfs_testkit::{Home, leftover_processes, wait_for};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn an_interrupted_command_ends_and_is_reported() {
    with_vault(|home| {
        let script = "echo begun; echo work > /work; exec sleep 77.123456";
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
        assert!(wait_for(Duration::from_secs(5), || !leftover_processes(
            "77.123456"
        )
        .is_empty()));
        let begun = Instant::now();
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "as {}", home.user());
        assert!(begun.elapsed() < Duration::from_secs(10));
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
        let mut child = home.command(&["demo"]);
        let mut child = child
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stage = std::env::temp_dir().join(format!("avfs-demo-{}", child.id()));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let at_work = lines.any(|line| line.unwrap().contains("Into a vault"));
        assert!(at_work && stage.exists());
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        let rest = std::thread::spawn(move || lines.count());
        assert_eq!(
            child.wait().unwrap().code(),
            Some(130),
            "as {}",
            home.user()
        );
        rest.join().unwrap();
        assert!(!stage.exists());
    }
}
