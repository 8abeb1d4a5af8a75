//! A command that is tried before it is approved: what the approver sees is what is published.

use super::{DEPLOY, approves, guarded, home, homes, refused, with_approval};
use serde_json::Value;

fn speculates(home: &avfs_testkit::Home) -> (String, Value) {
    speculates_with(home, &[])
}

fn speculates_with(home: &avfs_testkit::Home, flags: &[&str]) -> (String, Value) {
    let mut words = vec!["proxy", "exec", "--speculate"];
    words.extend(flags);
    words.extend(DEPLOY);
    let envelope = home.json(&words);
    let result = envelope["result"].clone();
    assert_eq!(result["status"], "needs_approval", "{envelope:#}");
    (super::text(&result, "approval_id").to_owned(), result)
}

#[test]
fn what_was_tried_is_shown_and_published_byte_for_byte() {
    for home in homes() {
        guarded(&home);
        // Nobody could produce this a second time.
        let script = "head -c 32 /dev/urandom | od -An -tx1 > out; echo tried; exit 3";
        home.ok(&["write", "/workspace/deploy.sh", script]);
        let (id, result) = speculates(&home);
        assert_eq!(result["exit_code"], Value::Null);
        assert_eq!(
            result["changed_files"],
            serde_json::json!([]),
            "nothing has happened yet"
        );
        let tried = &result["speculation"];
        assert_eq!(tried["exit_code"], 3);
        assert_eq!(tried["stdout"], "tried\n");
        assert_eq!(
            tried["changed_files"],
            serde_json::json!(["/workspace/out"])
        );
        assert!(!home.avfs(&["cat", "/workspace/out"]).status.success());
        let vaults = home.json(&["vault", "list"]);
        assert_eq!(
            vaults.as_array().unwrap().len(),
            1,
            "the fork is gone: {vaults:#}"
        );

        let shown = home.json(&["approval", "show", &id]);
        let patch = shown["speculation"]["patch"].as_array().unwrap();
        let added = patch
            .iter()
            .filter_map(Value::as_str)
            .filter_map(|l| l.strip_prefix('+'));
        let added: Vec<&str> = added.filter(|line| !line.starts_with("++")).collect();

        approves(&home, &id, &[]);
        home.ok(&["gc"]);
        let published = with_approval(&home, &id, &DEPLOY)["result"].clone();
        assert_eq!(published["exit_code"], 3, "{published:#}");
        assert_eq!(published["stdout"], "tried\n");
        assert_eq!(
            published["changed_files"],
            serde_json::json!(["/workspace/out"])
        );
        let out = home.ok(&["cat", "/workspace/out"]);
        assert_eq!(out.lines().collect::<Vec<_>>(), added);
        refused(&home, &id, &DEPLOY, "Denied", "used already");
    }
}

#[test]
fn what_was_tried_and_timed_out_is_published_as_that() {
    let home = home();
    guarded(&home);
    let script = "echo tried > out; sleep 60";
    home.ok(&["write", "/workspace/deploy.sh", script]);
    let (id, result) = speculates_with(&home, &["--timeout", "3000"]);
    assert_eq!(result["speculation"]["status"], "timed_out", "{result:#}");
    approves(&home, &id, &[]);
    let published = with_approval(&home, &id, &DEPLOY)["result"].clone();
    assert_eq!(published["status"], "timed_out", "{published:#}");
    assert_eq!(published["timed_out"], true);
    let changed = &published["changed_files"];
    assert_eq!(changed, &serde_json::json!(["/workspace/out"]));
}

#[test]
fn what_was_tried_on_another_state_is_not_published() {
    let home = home();
    guarded(&home);
    let (id, _) = speculates(&home);
    approves(&home, &id, &[]);
    home.ok(&["write", "/workspace/other", "x"]);
    refused(&home, &id, &DEPLOY, "Conflict", "has changed since");
    assert!(!home.avfs(&["cat", "/workspace/out"]).status.success());
}

#[test]
fn a_command_that_needs_no_approval_just_runs() {
    let home = home();
    guarded(&home);
    let envelope = home.json(&["proxy", "exec", "--speculate", "--", "touch", "x"]);
    assert_eq!(envelope["result"]["exit_code"], 0);
    assert!(envelope["result"]["speculation"].is_null());
    home.ok(&["cat", "/workspace/x"]);
}
