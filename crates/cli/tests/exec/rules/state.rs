//! An approved command runs on exactly the state that was shown, or not at all.

use super::{
    DEPLOY, PASSPHRASE, approved, approves, asks, guarded, home, homes, text, with_approval,
};
use avfs_testkit::{Home, Person, wait_for};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Longer than anything that is waited for takes.
const LONG: Duration = Duration::from_secs(60);

/// Prints whatever is in the places that are in no version.
const LIST: &str =
    "for d in /tmp /var/tmp /run /dev/shm; do ls -A $d; done; tail -n +2 /proc/sysvipc/shm";

#[test]
fn an_approved_command_finds_nothing_that_another_left_outside_the_vault() {
    for home in homes() {
        guarded(&home);
        home.ok(&[
            "write",
            "/workspace/deploy.sh",
            &format!("{LIST}; touch /tmp/mine"),
        ]);
        // Before it is asked for, and after it was approved.
        let leave = |name: &str| {
            let script = format!(
                "for d in /tmp /var/tmp /run /dev/shm; do echo evil > $d/{name}; done; ipcmk -M 64 > /dev/null"
            );
            home.ok(&["proxy", "exec", "--", "bash", "-c", &script]);
        };
        leave("before");
        let id = approved(&home);
        leave("after");
        let seen = home.json(&["proxy", "exec", "--", "bash", "-c", LIST]);
        assert!(
            text(&seen["result"], "stdout").contains("before"),
            "commands share it: {seen:#}"
        );
        let ran = with_approval(&home, &id, &DEPLOY)["result"].clone();
        assert_eq!(ran["exit_code"], 0, "{ran:#}");
        assert_eq!(ran["stdout"], "", "{}", home.user());
        assert_eq!(
            home.ok(&["cat", "/tmp/after"]),
            "evil\n",
            "the vault's own is as it was"
        );
        assert!(!home.avfs(&["cat", "/tmp/mine"]).status.success());
    }
}

/// Starts something that goes on for a while.
fn starts(home: &Home, words: &[&str]) -> Child {
    let mut command = home.command(words);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("it runs")
}

fn answer(child: Child) -> Value {
    let output = child.wait_with_output().expect("own child");
    serde_json::from_slice(&output.stdout).expect("an answer")
}

/// The request that waits.
fn waiting(home: &Home) -> String {
    let mut id = None;
    assert!(wait_for(LONG, || {
        let listed = home.json(&["approval", "list"]);
        id = listed["approvals"][0]["id"].as_str().map(str::to_owned);
        id.is_some()
    }));
    id.expect("just seen")
}

#[test]
fn a_held_command_does_not_run_what_changed_before_it_was_approved() {
    for home in homes() {
        guarded(&home);
        home.ok(&["write", "/tmp/deploy.sh", "echo good"]);
        let held = [
            "--json",
            "proxy",
            "exec",
            "--wait",
            "--",
            "sh",
            "/tmp/deploy.sh",
        ];
        let held = starts(&home, &held);
        let id = waiting(&home);
        home.ok(&["write", "/tmp/deploy.sh", "echo evil"]);
        approves(&home, &id, &[]);
        let ran = answer(held);
        assert_eq!(ran["result"]["stdout"], "", "{ran:#}");
    }
}

#[test]
fn what_is_approved_is_what_was_shown() {
    for home in homes() {
        guarded(&home);
        let held = starts(
            &home,
            &["--json", "proxy", "exec", "--wait", "--", "sh", "deploy.sh"],
        );
        let id = waiting(&home);
        let shown = home.json(&["approval", "show", &id]);
        assert_eq!(shown["changed_since_asked"], serde_json::json!([]));
        home.ok(&["write", "/workspace/deploy.sh", "echo changed"]);
        let old = ["approval", "approve", &id, "--shown", text(&shown, "shown")];
        let mut owner = Person::start(home.command(&old));
        owner.answer("Passphrase to let it run once: ", PASSPHRASE);
        let (status, said) = owner.end();
        assert!(!status.success(), "{said}");
        assert!(said.contains("has changed since"), "{said}");
        assert!(said.contains("avfs approval show"), "{said}");

        let again = home.json(&["approval", "show", &id]);
        assert_ne!(again["shown"], shown["shown"]);
        assert_eq!(
            again["changed_since_asked"],
            serde_json::json!(["/workspace/deploy.sh"])
        );
        assert!(
            home.ok(&["approval", "show", &id])
                .contains("    | /workspace/deploy.sh\n")
        );
        approves(&home, &id, &["--shown", text(&again, "shown")]);
        let ran = answer(held);
        assert_eq!(ran["result"]["stdout"], "changed\n", "{ran:#}");
    }
}

#[test]
fn while_somebody_looks_the_vault_may_change_and_they_are_asked_again() {
    let home = home();
    guarded(&home);
    let held = starts(
        &home,
        &["--json", "proxy", "exec", "--wait", "--", "sh", "deploy.sh"],
    );
    let mut owner = Person::start(home.command(&["approval", "watch"]));
    owner.answer("Passphrase: ", PASSPHRASE);
    owner.wait_for("Let it run once?");
    home.ok(&["write", "/workspace/deploy.sh", "echo changed"]);
    owner.answer(" ", "y");
    owner.wait_for("has changed since");
    owner.wait_for("    | /workspace/deploy.sh");
    owner.answer("Let it run once?", "y");
    owner.wait_for("approved");
    let ran = answer(held);
    assert_eq!(ran["result"]["stdout"], "changed\n", "{ran:#}");
    owner.leave();
}

/// An approval whose command runs now, until it is killed.
fn running(home: &Home) -> Child {
    let script = "echo begun > out; while :; do sleep 0.05; done";
    home.ok(&["write", "/workspace/deploy.sh", script]);
    let id = approved(home);
    let running = starts(
        home,
        &["proxy", "exec", "--approval", &id, "--", "sh", "deploy.sh"],
    );
    // Looking takes in what it has written so far.
    let begun = || home.avfs(&["cat", "/workspace/out"]).stdout == b"begun\n";
    assert!(wait_for(LONG, begun));
    running
}

fn ends(home: &Home, mut running: Child) {
    running.kill().expect("own child");
    running.wait().expect("own child");
    let free = || home.json(&["daemon", "status"])["running_execs"] == 0;
    assert!(wait_for(LONG, free));
}

#[test]
fn while_an_approved_command_runs_nobody_changes_the_vault() {
    for home in homes() {
        guarded(&home);
        home.ok(&["checkpoint", "save", "here"]);
        std::fs::create_dir(home.path().join("dir")).expect("own directory");
        std::fs::create_dir(home.path().join("mnt")).expect("own directory");
        let running = running(&home);
        let changes: [&[&str]; 15] = [
            &["write", "/workspace/deploy.sh", "echo evil"],
            &["write", "--append", "/workspace/deploy.sh", "echo evil"],
            &[
                "edit",
                "/workspace/deploy.sh",
                "--old",
                "begun",
                "--new",
                "evil",
            ],
            &["rm", "/workspace/deploy.sh"],
            &["mkdir", "/workspace/new"],
            &["mv", "/workspace/deploy.sh", "/workspace/x"],
            &["cp", "/workspace/deploy.sh", "/workspace/x"],
            &["ln", "-s", "deploy.sh", "/workspace/x"],
            &["chmod", "600", "/workspace/deploy.sh"],
            &["touch", "/workspace/x"],
            &["import", "dir", "/workspace/dir"],
            &["checkpoint", "restore", "here"],
            &["vault", "rename", "v", "w"],
            &["mount", "v", "mnt"],
            &["proxy", "exec", "--", "touch", "x"],
        ];
        for words in changes {
            for class in ["owner", "agent"] {
                let mut command = home.command(&[&["--json"], words].concat());
                let output = command.env("AVFS_CLASS", class).output().expect("it runs");
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                let answer: Value =
                    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{words:?}: {said}"));
                if class == "agent" && answer["error"] == "Denied" {
                    continue;
                }
                assert_eq!(answer["error"], "Conflict", "{words:?}: {answer:#}");
                assert!(
                    text(&answer, "message").contains("runs alone"),
                    "{words:?}: {answer:#}"
                );
                assert!(answer["hint"].is_string());
            }
        }
        // Whoever only looks is let.
        home.ok(&["ls", "/workspace"]);
        home.ok(&["checkpoint", "save", "meanwhile"]);
        home.ok(&["proxy", "exec", "--readonly", "--", "true"]);
        home.ok(&["proxy", "exec", "--fork", "--", "touch", "x"]);
        ends(&home, running);
        home.ok(&["write", "/workspace/deploy.sh", "echo later"]);
    }
}

#[test]
fn a_command_that_still_runs_is_in_the_way_of_an_approved_one() {
    let home = home();
    guarded(&home);
    let id = approved(&home);
    let other = starts(&home, &["proxy", "exec", "--", "sleep", "300"]);
    let runs = || home.json(&["daemon", "status"])["running_execs"] == 1;
    assert!(wait_for(LONG, runs));
    super::refused(&home, &id, &DEPLOY, "Conflict", "running in vault");
    ends(&home, other);
    // It was not used up.
    let ran = with_approval(&home, &id, &DEPLOY);
    assert_eq!(ran["result"]["stdout"], "done\n", "{ran:#}");
}

#[test]
fn an_approved_fork_and_an_approved_look_have_the_state_that_was_shown() {
    let home = home();
    guarded(&home);
    for flags in [&["--fork"][..], &["--readonly"]] {
        home.ok(&["write", "/workspace/deploy.sh", LIST]);
        let words = [flags, &DEPLOY].concat();
        let id = asks(&home, &words);
        approves(&home, &id, &[]);
        home.ok(&["write", "/tmp/evil", "evil"]);
        let ran = with_approval(&home, &id, &words)["result"].clone();
        assert_eq!(
            (&ran["exit_code"], &ran["stdout"]),
            (&0.into(), &"".into()),
            "{ran:#}"
        );
        let id = asks(&home, &words);
        approves(&home, &id, &[]);
        home.ok(&["write", "/workspace/deploy.sh", "echo evil"]);
        super::unfit(&home, &id, &words, "denied", "has changed since");
    }
}

#[test]
fn what_is_typed_cannot_be_approved() {
    let home = home();
    guarded(&home);
    let words = ["proxy", "exec", "--tty", "--", "sh", "deploy.sh"];
    let mut person = Person::start(home.command(&words));
    person.wait_for("nobody can approve it");
    person.leave();
}
