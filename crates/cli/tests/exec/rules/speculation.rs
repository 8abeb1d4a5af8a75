//! A command that is tried before it is approved: what the approver sees is what is published.

use super::{DEPLOY, approves, guarded, home, homes, unfit, with_approval};
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
        unfit(&home, &id, &DEPLOY, "denied", "used already");
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
    let same = [&["--timeout", "3000"], &DEPLOY[..]].concat();
    let published = with_approval(&home, &id, &same)["result"].clone();
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
    unfit(&home, &id, &DEPLOY, "denied", "has changed since");
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

#[test]
fn a_trial_is_always_in_the_sandbox_and_without_network() {
    for home in homes() {
        guarded(&home);
        // On the host this would be seen.
        let mark = home.path().join("mark");
        std::fs::create_dir(&mark).unwrap();
        let script = format!(
            "touch {}/escaped; ls /sys/class/net; echo $AVFS_MOUNTPOINT",
            mark.display()
        );
        home.ok(&["write", "/workspace/deploy.sh", &script]);
        for weaker in [
            &["--driver", "process"][..],
            &["--network", "host"],
            &["--fork"],
            &["--fork", "--keep-on-success"],
        ] {
            let words = [&["proxy", "exec", "--speculate"], weaker, &DEPLOY].concat();
            let answer = home.json(&words);
            assert_eq!(answer["error"], "Invalid", "{weaker:?}: {answer:#}");
            assert!(
                super::text(&answer, "message").contains("namespace sandbox"),
                "{answer:#}"
            );
        }
        let (id, result) = speculates(&home);
        assert_eq!(std::fs::read_dir(&mark).unwrap().count(), 0);
        assert!(
            super::text(&result["speculation"], "stdout").ends_with("/\n"),
            "{result:#}"
        );
        let shown = home.json(&["approval", "show", &id]);
        assert_eq!(shown["driver"], "namespace");
        let tried = &shown["speculation"];
        assert_eq!(
            (&tried["driver"], &tried["network"]),
            (&"namespace".into(), &"none".into())
        );
        let text = home.ok(&["approval", "show", &id]);
        assert!(
            text.contains("tried in a fork, driver namespace, network none"),
            "{text}"
        );
    }
}

#[test]
fn what_a_process_on_the_host_would_be_is_shown_as_that() {
    let home = home();
    guarded(&home);
    let words = [&["--driver", "process"], &DEPLOY[..]].concat();
    let id = super::asks(&home, &words);
    let text = home.ok(&["approval", "show", &id]);
    assert!(
        text.contains("driver   process: on the host, without isolation"),
        "{text}"
    );
}

/// Begins a trial that goes on for a while; gives the name of its fork, too.
fn tries(home: &avfs_testkit::Home, script: &str) -> (std::process::Child, String) {
    home.ok(&["write", "/workspace/deploy.sh", script]);
    let words = [
        "--json",
        "proxy",
        "exec",
        "--speculate",
        "--",
        "sh",
        "deploy.sh",
    ];
    let mut command = home.command(&words);
    let child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut fork = String::new();
    let begun = || {
        let vaults = home.json(&["vault", "list"]);
        let names = vaults
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|vault| vault["name"].as_str());
        fork = names
            .into_iter()
            .find(|name| name.starts_with("fork-"))
            .unwrap_or_default()
            .to_owned();
        !fork.is_empty()
            && home
                .avfs(&["--vault", &fork, "cat", "/workspace/begun"])
                .status
                .success()
    };
    assert!(avfs_testkit::wait_for(
        std::time::Duration::from_secs(60),
        begun
    ));
    (child, fork)
}

#[test]
fn nobody_works_in_the_fork_of_a_trial() {
    let home = home();
    guarded(&home);
    let (mut child, fork) = tries(&home, "touch begun; while :; do sleep 0.05; done");
    for words in [
        &["write", "/workspace/out", "forged"][..],
        &["proxy", "exec", "--", "touch", "forged"],
    ] {
        let answer = home.json(&[&["--vault", &fork], words].concat());
        assert_eq!(answer["error"], "Conflict", "{answer:#}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_trial_on_a_state_that_is_gone_is_not_asked_about() {
    let home = home();
    guarded(&home);
    // Nothing can reach a trial to say that it may go on, so it takes longer than the write below.
    let (child, _) = tries(&home, "touch begun; sleep 10");
    home.ok(&["write", "/workspace/other", "x"]);
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["error"], "Conflict", "{answer:#}");
    assert!(super::text(&answer, "message").contains("while the command was tried"));
    let listed = home.json(&["approval", "list"]);
    assert_eq!(listed["approvals"], serde_json::json!([]));
    // One that was asked about, and then the vault changed.
    home.ok(&["write", "/workspace/deploy.sh", "echo tried > out"]);
    let (id, _) = speculates(&home);
    home.ok(&["write", "/workspace/other", "y"]);
    let mut owner = avfs_testkit::Person::start(home.command(&["approval", "approve", &id]));
    owner.answer("Passphrase to let it run once: ", super::PASSPHRASE);
    let (status, said) = owner.end();
    assert!(
        !status.success() && said.contains("since the command was tried"),
        "{said}"
    );
}
