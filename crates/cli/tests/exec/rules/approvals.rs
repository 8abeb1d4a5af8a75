//! An approval lets one command run once, as it was shown, and nothing else.

use super::{DEPLOY, approved, approves, asks, guarded, home, homes, text, unfit, with_approval};
use avfs_testkit::Person;
use std::time::Duration;

#[test]
fn an_approval_is_used_once() {
    for home in homes() {
        guarded(&home);
        let id = asks(&home, &DEPLOY);
        unfit(&home, &id, &DEPLOY, "needs_approval", "nobody has answered");
        approves(&home, &id, &[]);
        let ran = with_approval(&home, &id, &DEPLOY)["result"].clone();
        assert_eq!(ran["status"], "exited", "{ran:#}");
        assert_eq!(ran["stdout"], "done\n");
        assert_eq!(ran["approval_id"], id.as_str());
        assert_eq!(ran["decision"]["action"], "require_approval");
        assert!(
            ran["checkpoint"].is_string(),
            "there is a way back: {ran:#}"
        );
        assert_eq!(home.ok(&["cat", "/workspace/out"]), "deployed\n");
        unfit(&home, &id, &DEPLOY, "denied", "used already");
    }
}

#[test]
fn an_approval_expires() {
    let home = home();
    guarded(&home);
    let id = asks(&home, &DEPLOY);
    approves(&home, &id, &["--expires", "1s"]);
    std::thread::sleep(Duration::from_millis(2100));
    unfit(&home, &id, &DEPLOY, "denied", "expired");
    let listed = home.json(&["approval", "list", "--all"]);
    assert_eq!(listed["approvals"][0]["state"], "expired");
    let watch = home.json(&["approval", "watch"]);
    assert_eq!(watch["error"], "Invalid", "it prints no JSON: {watch}");
}

#[test]
fn an_approval_is_for_one_command_directory_and_environment() {
    let home = home();
    guarded(&home);
    let id = approved(&home);
    for words in [
        vec!["--", "sh", "deploy.sh", "--now"],
        vec!["--", "sh", "-e", "deploy.sh"],
        vec!["--shell", "sh deploy.sh"],
        vec!["--cwd", "/", "--", "sh", "deploy.sh"],
        vec!["--env", "A=b", "--", "sh", "deploy.sh"],
        vec!["--network", "host", "--", "sh", "deploy.sh"],
        vec!["--network", "b.example.test", "--", "sh", "deploy.sh"],
        vec!["--allow", "b.example.test", "--", "sh", "deploy.sh"],
        vec!["--readonly", "--", "sh", "deploy.sh"],
        vec!["--fork", "--", "sh", "deploy.sh"],
        vec!["--driver", "process", "--", "sh", "deploy.sh"],
        vec!["--timeout", "1000", "--", "sh", "deploy.sh"],
        vec!["--disk", "10m", "--", "sh", "deploy.sh"],
        vec!["--checkpoint", "mine", "--", "sh", "deploy.sh"],
    ] {
        unfit(&home, &id, &words, "denied", "another command");
    }
    home.ok(&["vault", "set", "env.A=b"]);
    unfit(&home, &id, &DEPLOY, "denied", "another command");
    home.ok(&["vault", "unset", "env.A"]);
    // Neither is it for what the vault's list becomes afterwards.
    home.ok(&["network", "allow", "b.example.test"]);
    unfit(&home, &id, &DEPLOY, "denied", "another command");
    home.ok(&["network", "deny", "b.example.test"]);
    // What was approved still can be had.
    assert_eq!(with_approval(&home, &id, &DEPLOY)["result"]["exit_code"], 0);
}

#[test]
fn an_approval_is_for_one_content_of_the_script() {
    let home = home();
    guarded(&home);
    let id = approved(&home);
    home.ok(&["write", "/workspace/deploy.sh", "echo evil"]);
    unfit(&home, &id, &DEPLOY, "denied", "has changed since");

    // What is read from outside cannot be looked at, so it cannot be approved.
    let envelope = home.json(&["proxy", "exec", "--stdin", "--", "sh"]);
    assert_eq!(envelope["result"]["status"], "needs_approval");
    assert!(envelope["result"]["approval_id"].is_null());
    assert!(text(&envelope["result"], "reason").contains("standard input"));
}

#[test]
fn an_approval_survives_no_fork() {
    let home = home();
    guarded(&home);
    let id = approved(&home);
    home.ok(&["vault", "fork", "v", "w", "--use"]);
    unfit(&home, &id, &DEPLOY, "denied", "another vault");
}

#[test]
fn an_approval_survives_no_restore() {
    let home = home();
    guarded(&home);
    home.ok(&["checkpoint", "save", "here"]);
    let id = approved(&home);
    home.ok(&["write", "/workspace/x", "y"]);
    home.ok(&["checkpoint", "restore", "here"]);
    unfit(&home, &id, &DEPLOY, "denied", "has changed since");
}

#[test]
fn while_an_approved_command_runs_nothing_else_begins() {
    let home = home();
    guarded(&home);
    home.ok(&[
        "write",
        "/workspace/deploy.sh",
        "touch begun; while [ ! -e go ]; do sleep 0.05; done",
    ]);
    let id = approved(&home);
    let mut running = home.command(&["proxy", "exec", "--approval", &id, "--", "sh", "deploy.sh"]);
    let mut running = running.stdout(std::process::Stdio::null()).spawn().unwrap();
    let runs = || home.json(&["daemon", "status"])["running_execs"] == 1;
    assert!(avfs_testkit::wait_for(Duration::from_secs(30), runs));
    let other = home.json(&["proxy", "exec", "--", "true"]);
    assert_eq!(other["error"], "Conflict", "{other:#}");
    running.kill().unwrap();
    running.wait().unwrap();
    let free = || home.json(&["proxy", "exec", "--", "true"])["success"] == true;
    assert!(avfs_testkit::wait_for(Duration::from_secs(30), free));
}

#[test]
fn requests_do_not_pile_up() {
    let home = home();
    guarded(&home);
    let first = asks(&home, &DEPLOY);
    assert_eq!(
        asks(&home, &DEPLOY),
        first,
        "the same question is asked once"
    );
    for i in 1..16 {
        asks(&home, &["--", "sh", &format!("{i}")]);
    }
    let flood = home.json(&["proxy", "exec", "--", "sh", "more"]);
    assert!(flood["result"]["approval_id"].is_null(), "{flood:#}");
    assert!(
        text(&flood["result"], "reason").contains("16 requests"),
        "{flood:#}"
    );
    let listed = home.json(&["approval", "list"]);
    assert_eq!(listed["approvals"].as_array().unwrap().len(), 16);
    home.ok(&["approval", "deny", &first]);
    unfit(&home, &first, &DEPLOY, "denied", "denied");
    asks(&home, &["--", "sh", "more"]);
}

#[test]
fn a_command_can_be_held_until_it_is_approved() {
    let home = home();
    guarded(&home);
    let mut held = home.command(&["--json", "proxy", "exec", "--wait", "--", "sh", "deploy.sh"]);
    let held = held.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut owner = Person::start(home.command(&["approval", "watch"]));
    owner.answer("Passphrase: ", super::PASSPHRASE);
    let shown = owner.wait_for("Let it run once?").to_owned();
    assert!(shown.contains("    | deploy.sh"), "{shown}");
    owner.answer(" ", "y");
    owner.wait_for("approved");
    let output = held.wait_with_output().unwrap();
    let envelope: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["result"]["stdout"], "done\n", "{envelope:#}");

    let mut held = home.command(&["--json", "proxy", "exec", "--wait", "--", "sh", "again"]);
    let held = held.stdout(std::process::Stdio::piped()).spawn().unwrap();
    owner.answer("Let it run once?", "n");
    owner.wait_for("denied");
    let output = held.wait_with_output().unwrap();
    let envelope: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["result"]["status"], "denied", "{envelope:#}");
    owner.leave();
}

#[test]
fn what_the_approver_sees_is_what_there_is() {
    let home = home();
    guarded(&home);
    let nasty = "deploy\u{1b}[2J\u{202e}\u{441}\nsecond\\line";
    let id = asks(&home, &["--env", "X=\u{1b}]0;t\u{7}", "--", "sh", nasty]);
    let shown = [&["approval", "show", &id][..], &["approval", "list"]].map(|words| home.ok(words));
    for text in &shown {
        let odd = text
            .chars()
            .find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
        assert_eq!(odd, None, "{text:?}");
        assert!(
            text.contains("deploy\\u{1b}[2J\\u{202e}\\u{441}\\nsecond\\\\line"),
            "{text}"
        );
    }
    assert!(shown[0].contains("X=\\u{1b}]0;t\\u{7}"), "{}", shown[0]);
}

#[test]
fn text_of_a_command_cannot_pass_for_ours() {
    let home = home();
    guarded(&home);
    let long = "x".repeat(300);
    let shell =
        format!("sh deploy.sh\n\n  network  host\n\r\n  rule     mine\u{2028}\u{85}\t\n{long}\n  ");
    let id = asks(&home, &["--env", &format!("E={long}"), "--shell", &shell]);
    let shown = home.ok(&["approval", "show", &id]);
    let (ours, theirs) = shown.split_once("  shell text:\n").expect("a block of it");
    let (theirs, after) = theirs.split_once("  shown as").expect("and its end");
    for row in theirs.lines() {
        assert!(
            row.starts_with("    | ") || row.starts_with("    > "),
            "{row:?} in\n{shown}"
        );
    }
    let lines = theirs.lines().filter(|row| row.starts_with("    | "));
    assert_eq!(lines.count(), shell.split('\n').count(), "{shown}");
    assert!(
        theirs.contains("    | \n"),
        "an empty line is marked: {shown}"
    );
    assert!(!(ours.to_owned() + after).contains("mine"), "{shown}");
    for row in shown.lines() {
        assert!(row.chars().count() < 80, "a terminal would break it: {row}");
    }
}
