//! Output while it happens, and output read back later.

use crate::{AVFS, exec};
use avfs_testkit::{Home, leftover_processes, signal, wait_for, with_vault};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn events_come_one_by_one_while_the_command_runs() {
    with_vault(AVFS, |home| {
        let waits = "echo out; echo err >&2; while [ ! -e /tmp/go ]; do sleep 0.02; done; echo end";
        let mut child = home
            .command(&["exec", "--stream", "--shell", waits])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next =
            || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        assert_eq!(next()["event"], "started");
        let early = [next(), next()];
        assert_eq!((&early[0]["seq"], &early[1]["seq"]), (&json!(1), &json!(2)));
        // It is still waiting for this, so that what was read was read live.
        home.ok(&["write", "/tmp/go", ""]);
        let end = next();
        assert_eq!((&end["data"], &end["seq"]), (&json!("end\n"), &json!(3)));
        let result = next();
        assert_eq!(result["event"], "result");
        assert_eq!(result["result"]["stdout"], "out\nend\n");
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn ctrl_c_reaches_the_command() {
    with_vault(AVFS, |home| {
        let traps =
            "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 1.$((3750+1)); done";
        let mut child = home
            .command(&["--json", "exec", "--shell", traps])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        assert!(wait_for(Duration::from_secs(20), || {
            !leftover_processes("1.3751").is_empty()
        }));
        signal(child.id(), Signal::INT);
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        let envelope: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(envelope["result"]["status"], "cancelled", "{envelope:#}");
        assert_eq!(
            envelope["result"]["stdout"], "ready\ncaught\n",
            "it was asked, not killed"
        );
        assert_eq!(child.wait().unwrap().code(), Some(130));
    });
}

#[test]
fn what_the_report_leaves_out_can_be_read_back() {
    with_vault(AVFS, |home| {
        let words = [
            "--output-limit",
            "100",
            "--shell",
            "seq 1 50000; seq 1 3 >&2",
        ];
        let result = exec(home, &words);
        let whole: String = (1..=50_000).map(|number| format!("{number}\n")).collect();
        let counts = &result["output"]["stdout"];
        assert_eq!(counts["bytes"], whole.len());
        assert_eq!(
            (&counts["truncated"], &counts["spilled"]),
            (&json!(true), &json!(whole.len()))
        );
        assert_eq!(result["stdout"].as_str().unwrap().len(), 100);
        let id = result["exec"].as_str().unwrap();
        assert!(home.ok(&["output", id]) == whole, "all of it");
        assert_eq!(home.ok(&["output", id, "--range", "2-6"]), whole[2..6]);
        let part = home.json(&["output", id, "--range", "0-4"]);
        assert_eq!((&part["data"], &part["to"]), (&json!("1\n2\n"), &json!(4)));
        let beyond = home.json(&["output", id, "--range", "9999999-"]);
        assert_eq!(beyond["error"], "Invalid");
        // The other stream was short enough for the report.
        let none = home.json(&["output", id, "--stream", "stderr"]);
        assert_eq!(none["error"], "NotFound", "{none}");
        home.ok(&["gc", "--grace", "0"]);
        assert_eq!(
            home.json(&["output", id])["error"],
            "NotFound",
            "gc takes it"
        );
    });
}

#[test]
fn an_output_is_nobody_elses() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    for wrong in ["../../etc/passwd", "", "01a1de36"] {
        let answer = home.json(&["output", wrong]);
        assert_eq!(answer["error"], "Invalid", "{wrong}: {answer}");
    }
    exec(&home, &["--output-limit", "1", "--", "echo", "secret"]);
    let dir = home.avfs_home().join("output");
    let mode = |path: &std::path::Path| {
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions())
    };
    assert_eq!(mode(&dir) & 0o777, 0o700);
    let file = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap();
    assert_eq!(mode(&file.path()) & 0o777, 0o600);
}
