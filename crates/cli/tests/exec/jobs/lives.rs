//! What ends jobs, what does not, and what is said of them afterwards.

use super::{listed, poll, start, wait, written};
use crate::AVFS;
use avfs_testkit::{Home, SOON, process_ends, signal, wait_for, with_vault};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Writes numbers, one on a line, and each into a file as well.
const COUNTING: &str = "i=0; while :; do i=$((i+1)); echo $i; echo $i > /f$i; sleep 0.005; done";

/// All that a job wrote, read part by part from `text`'s end on.
fn read_on(home: &Home, job: &str, text: &mut String) -> Value {
    let offset = text.len().to_string();
    let polled = home.json(&["job", "poll", job, "--offset", &offset]);
    text.push_str(
        polled["stdout"]
            .as_str()
            .unwrap_or_else(|| panic!("{polled:#}")),
    );
    polled
}

/// Whether these are the numbers from 1 on, with none missing; the last may be cut.
fn check_gapless(text: &str) {
    let whole: Vec<&str> = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .collect();
    assert!(whole.len() >= 20, "{text}");
    for (index, line) in whole.iter().enumerate() {
        assert_eq!(line.trim(), (index + 1).to_string());
    }
}

#[test]
fn a_killed_daemon_loses_no_line_and_says_that_it_does_not_know_the_end() {
    with_vault(AVFS, |home| {
        let job = start(home, &["--shell", COUNTING]);
        let mut text = String::new();
        assert!(wait_for(SOON, || {
            read_on(home, &job, &mut text);
            text.lines().count() >= 30
        }));
        let exec = poll(home, &job)["exec"].clone();
        let follower = home
            .command(&["job", "logs", "-f", &job])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let daemon = home.daemon_pid().unwrap();
        signal(daemon, Signal::KILL);
        assert!(process_ends(daemon, SOON));
        let lost = read_on(home, &job, &mut text);
        assert_eq!(
            (&lost["running"], &lost["status"]),
            (&json!(false), &json!("lost")),
            "{lost:#}"
        );
        assert_eq!(lost["exit_code"], Value::Null);
        assert!(lost["reason"].as_str().unwrap().contains("daemon was lost"));
        check_gapless(&text);
        let followed = follower.wait_with_output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&followed.stdout),
            text,
            "over the restart, too"
        );
        let version = &home.json(&["vault", "log"])[0];
        assert_eq!(version["cause"], "interrupted");
        assert_eq!(home.ok(&["cat", "/f20"]), "20\n", "its work is kept");
        let journal = home.json(&["audit", "--operation", "job.lost"]);
        assert_eq!(journal["entries"][0]["exec"], exec);
        let waited = home.avfs(&["job", "wait", &job]);
        assert_eq!(waited.status.code(), Some(125));
        assert_eq!(start(home, &["--", "true"]), "2", "no number is used twice");
    });
}

#[test]
fn a_stopped_daemon_says_that_it_ended_them() {
    with_vault(AVFS, |home| {
        let job = start(home, &["--shell", COUNTING]);
        let reading = start(home, &["--readonly", "--shell", "echo up; sleep 1000"]);
        let mut text = String::new();
        assert!(wait_for(SOON, || {
            read_on(home, &job, &mut text);
            text.lines().count() >= 30
        }));
        written(home, &reading, "up");
        home.ok(&["daemon", "stop"]);
        let ended = read_on(home, &job, &mut text);
        check_gapless(&text);
        for ended in [ended, poll(home, &reading)] {
            assert_eq!(ended["status"], "interrupted", "{ended:#}");
            assert_eq!(ended["reason"], "the daemon was stopped");
        }
        assert_eq!(home.json(&["vault", "log"])[0]["cause"], "interrupted");
        assert_eq!(home.ok(&["cat", "/f20"]), "20\n");
    });
}

#[test]
fn a_detached_job_is_not_ended_by_the_way() {
    with_vault(AVFS, |home| {
        let job = start(home, &["--lifetime", "detached", "--", "sleep", "1000"]);
        let refused = home.json(&["daemon", "stop"]);
        assert_eq!(refused["error"], "Conflict", "{refused}");
        assert!(
            refused["message"]
                .as_str()
                .unwrap()
                .contains(&format!("job {job}"))
        );
        assert_eq!(poll(home, &job)["running"], true);
        assert_eq!(home.json(&["daemon", "stop", "--force"])["stopped"], true);
        assert_eq!(poll(home, &job)["status"], "interrupted");
        let job = start(home, &["--lifetime", "detached", "--", "sleep", "1000"]);
        home.ok(&["job", "kill", &job]);
        home.ok(&["daemon", "stop"]);
    });
}

#[test]
fn a_clients_job_ends_when_nobody_asks_after_it() {
    with_vault(AVFS, |home| {
        let words = [
            "--lifetime",
            "client",
            "--lease",
            "2500",
            "--",
            "sleep",
            "1000",
        ];
        let job = start(home, &words);
        let mut follower = home
            .command(&["job", "logs", "-f", &job])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(4000));
        let item = listed(home, &job);
        assert_eq!(
            (&item["running"], &item["lease_ms"]),
            (&json!(true), &json!(2500)),
            "somebody follows it"
        );
        follower.kill().unwrap();
        follower.wait().unwrap();
        assert!(wait_for(SOON, || listed(home, &job)["running"] == false));
        let reason = listed(home, &job)["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("nobody asked after it"), "{reason}");
        let wrong = home.json(&["job", "start", "--lease", "5s", "--", "true"]);
        assert_eq!(wrong["error"], "Invalid", "a lease is for clients' jobs");
    });
}

#[test]
fn an_idle_daemon_waits_for_its_jobs() {
    let home = Home::new(AVFS);
    let mut serve: Command = home.command(&["serve", "--idle-timeout", "3"]);
    let mut daemon = serve
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait_for(SOON, || home.daemon_pid().is_some()));
    home.ok(&["vault", "create", "v"]);
    let job = start(&home, &["--shell", "sleep 5; echo done"]);
    // Nobody asks anything of it while the job runs.
    let status = daemon.wait().unwrap();
    assert!(status.success(), "it ended by itself");
    let over = poll(&home, &job);
    assert_eq!(
        (&over["status"], &over["stdout"]),
        (&json!("exited"), &json!("done\n"))
    );
}

#[test]
fn a_lost_keeper_is_told_as_such() {
    with_vault(AVFS, |home| {
        let job = start(home, &["--shell", "echo up; echo x > /f; sync; sleep 1000"]);
        written(home, &job, "up");
        let keeper = home.json(&["daemon", "status"])["keeper_pid"]
            .as_u64()
            .unwrap();
        assert!(wait_for(SOON, || home
            .json(&["ls", "/"])
            .to_string()
            .contains("\"f\"")));
        signal(u32::try_from(keeper).unwrap(), Signal::KILL);
        let waited = wait(home, &job);
        assert_eq!(waited["status"], "interrupted");
        assert_eq!(home.ok(&["cat", "/f"]), "x\n");
    });
}
