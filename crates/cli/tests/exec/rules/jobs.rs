//! A job is decided on as every command: refused, approved and held alike.

use super::{DEPLOY, PASSPHRASE, approves, guarded, homes, text};
use avfs_testkit::{Home, Person, wait_for};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

fn start(home: &Home, words: &[&str]) -> Value {
    home.json(&[&["job", "start"], words].concat())
}

#[test]
fn a_job_is_approved_once() {
    for home in homes() {
        guarded(&home);
        let asked = start(&home, &DEPLOY);
        assert_eq!(asked["result"]["status"], "needs_approval", "{asked:#}");
        let id = text(&asked["result"], "approval_id").to_owned();
        approves(&home, &id, &[]);
        let with = [&["--approval", &id], &DEPLOY[..]].concat();
        let started = start(&home, &with);
        assert_eq!(started["status"], "started", "{started:#}");
        let waited = home.json(&["job", "wait", &started["job_id"].to_string()]);
        assert_eq!(
            waited["envelope"]["result"]["approval_id"], id,
            "{waited:#}"
        );
        assert_eq!(home.ok(&["cat", "/workspace/out"]), "deployed\n");
        let again = start(&home, &with);
        assert_eq!(again["result"]["status"], "denied", "{again:#}");
        assert!(text(&again["result"], "reason").contains("used already"));
        let typed = [&["--tty", "--size", "80x24"], &DEPLOY[..]].concat();
        let refused = start(&home, &typed);
        let reason = text(&refused["result"], "reason");
        assert!(
            reason.contains("standard input"),
            "nobody knows what will be typed: {reason}"
        );
    }
}

#[test]
fn a_job_is_held_until_it_is_approved() {
    for home in homes() {
        guarded(&home);
        let words = [&["--json", "job", "start", "--wait"], &DEPLOY[..]].concat();
        let held = home
            .command(&words)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut id = String::new();
        assert!(wait_for(Duration::from_secs(20), || {
            let waiting = home.json(&["approval", "list"]);
            id = waiting["approvals"][0]["id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            !id.is_empty()
        }));
        assert_eq!(
            home.json(&["job", "list"])["jobs"].as_array().map(Vec::len),
            Some(0)
        );
        let mut owner = Person::start(home.command(&["approval", "approve", &id]));
        owner.answer("Passphrase to let it run once: ", PASSPHRASE);
        assert!(owner.end().0.success());
        let output = held.wait_with_output().expect("own child");
        let started: Value = serde_json::from_slice(&output.stdout).expect("an answer");
        let waited = home.json(&["job", "wait", &started["job_id"].to_string()]);
        assert_eq!(waited["exit_code"], 0, "{waited:#}");
    }
}
