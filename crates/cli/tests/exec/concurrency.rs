//! Several commands in one vault, and what others do meanwhile.

use crate::AVFS;
use crate::exec;
use avfs_testkit::{Home, wait_for, with_vault};
use serde_json::{Value, json};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Starts a command whose envelope is read later, and waits until it has made `/tmp/ready-N`.
fn start(home: &Home, number: u32, text: &str) -> Child {
    let text = format!("touch /tmp/ready-{number}; {text}");
    let child = home
        .command(&["--json", "exec", "--shell", &text])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let ready = format!("/tmp/ready-{number}");
    assert!(wait_for(Duration::from_secs(30), || {
        home.json(&["stat", &ready])["error"].is_null()
    }));
    child
}

fn result(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    let mut envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    envelope["result"].take()
}

const UNTIL_TOLD: &str = "while [ ! -e /tmp/stop ]; do sleep 0.02; done";

#[test]
fn commands_share_the_view_and_a_commit_names_them() {
    with_vault(AVFS, |home| {
        let first = start(home, 1, &format!("echo one > /a; {UNTIL_TOLD}"));
        let second = exec(home, &["--shell", "cat /a; echo two > /b"]);
        assert_eq!(second["stdout"], "one\n", "what the other wrote is there");
        home.ok(&["write", "/tmp/stop", ""]);
        let first = result(first);
        assert_eq!(second["shared_with"], json!([first["exec"]]));
        assert_eq!(
            first["shared_with"],
            json!([second["exec"]]),
            "also one that ended before"
        );
        let journal = home.json(&["audit", "--limit", "20"]);
        let entries = journal["entries"].as_array().unwrap();
        let both = entries.iter().find(|entry| {
            let execs = entry["details"]["execs"].as_array();
            execs.is_some_and(|execs| {
                execs.contains(&first["exec"]) && execs.contains(&second["exec"])
            })
        });
        assert!(both.is_some(), "{journal:#}");
    });
}

#[test]
fn a_restore_waits_for_nobody_and_ends_them_only_by_force() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "before"]);
        home.ok(&["checkpoint", "save", "c"]);
        let running = start(home, 1, "echo after > /f; sleep 95.43219");
        assert_eq!(
            home.json(&["checkpoint", "restore", "c"])["error"],
            "Conflict"
        );
        let restored = home.json(&["checkpoint", "restore", "c", "--force"]);
        assert_eq!(restored["snapshot"], "c", "{restored}");
        let ended = result(running);
        assert_eq!(ended["status"], "cancelled", "{ended:#}");
        assert!(avfs_testkit::leftover_processes("95.43219").is_empty());
        assert_eq!(home.ok(&["cat", "/f"]), "before");
        home.ok(&["checkpoint", "restore", "--undo"]);
        assert_eq!(
            home.ok(&["cat", "/f"]),
            "after\n",
            "what it wrote is not lost"
        );
    });
}

/// What needs a vault in which nothing runs.
const ALONE: [&[&str]; 3] = [
    &["checkpoint", "restore", "c"],
    &["vault", "rename", "v", "w"],
    &["vault", "delete", "v", "-y"],
];

#[test]
fn a_vault_is_not_taken_from_under_its_commands() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "saved"]);
        home.ok(&["checkpoint", "save", "c"]);
        home.ok(&["write", "/f", "later"]);
        let mut running = Vec::new();
        for number in 1..=2 {
            running.push(start(home, number, UNTIL_TOLD));
            let told = format!("{number} command(s) are running in vault v");
            for words in ALONE {
                let (kind, answer) = home.refused(words);
                assert_eq!(kind, "Conflict", "{words:?}: {answer}");
                assert_eq!(answer["message"], told, "{words:?}");
                let hint = answer["hint"].as_str().unwrap();
                assert!(hint.contains("--force") && hint.contains("fork"), "{hint}");
            }
            let said = home.avfs(ALONE[0]);
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(said.contains(&told) && said.contains("hint: "), "{said}");
        }
        assert_eq!(home.ok(&["cat", "/f"]), "later", "nothing was done");
        home.ok(&["write", "/tmp/stop", ""]);
        for child in running {
            assert_eq!(result(child)["exit_code"], 0, "nobody was disturbed");
        }
        home.ok(&["vault", "rename", "v", "w"]);
        home.ok(&["vault", "rename", "w", "v"]);
        home.ok(ALONE[0]);
        assert_eq!(home.ok(&["cat", "/f"]), "saved");
        home.ok(ALONE[2]);
    });
}

#[test]
fn a_vault_is_deleted_by_force_and_its_commands_end() {
    with_vault(AVFS, |home| {
        let running = start(home, 1, UNTIL_TOLD);
        home.ok(&["vault", "delete", "v", "-y", "--force"]);
        let ended = result(running);
        assert_eq!(ended["status"], "cancelled", "{ended:#}");
        assert_eq!(home.refused(&["vault", "info", "v"]).0, "NotFound");
    });
}

#[test]
fn forks_and_checkpoints_hold_running_commands_still() {
    with_vault(AVFS, |home| {
        // The two files are never apart by more than one step at any moment.
        let steps =
            "i=0; while [ ! -e /tmp/stop ]; do i=$((i+1)); echo $i > /x; echo $i > /y; done";
        let running = start(home, 1, steps);
        for number in 0..3 {
            let name = format!("f{number}");
            let forked = home.json(&["vault", "fork", "v", &name]);
            assert_eq!(forked["freeze"]["method"], "sigstop", "{forked}");
            assert_eq!(forked["freeze"]["consistency"], "moment");
            assert_eq!(forked["freeze"]["commands"], 1);
            let read = |path| {
                let output = home.avfs(&["--vault", &name, "cat", path]);
                String::from_utf8_lossy(&output.stdout)
                    .trim()
                    .parse::<u64>()
            };
            // One of them may not be there yet, or just have been emptied to be written.
            if let (Ok(x), Ok(y)) = (read("/x"), read("/y")) {
                assert!(
                    x == y || x == y + 1,
                    "{x} and {y} were never there together"
                );
            }
        }
        let saved = home.json(&["checkpoint", "save", "c"]);
        assert_eq!(saved["freeze"]["method"], "sigstop", "{saved}");
        home.ok(&["write", "/tmp/stop", ""]);
        assert_eq!(result(running)["exit_code"], 0, "it went on afterwards");
        let quiet = home.json(&["checkpoint", "save", "d"]);
        assert_eq!(quiet.get("freeze"), None, "nothing ran");
    });
}

#[test]
fn a_request_that_cannot_be_had_disturbs_nobody() {
    with_vault(AVFS, |home| {
        let running = start(home, 1, &format!("{UNTIL_TOLD}; echo done"));
        for wrong in [["--memory", "1k"], ["--cpus", "0"], ["--checkpoint", "a/b"]] {
            let answer = home.json(&[&["exec"], &wrong[..], &["--", "true"]].concat());
            assert_eq!(answer["error"], "Invalid", "{wrong:?}: {answer}");
        }
        home.ok(&["write", "/tmp/stop", ""]);
        let result = result(running);
        assert_eq!(
            (&result["exit_code"], &result["stdout"]),
            (&json!(0), &json!("done\n"))
        );
    });
}

#[test]
fn another_network_waits_its_turn() {
    with_vault(AVFS, |home| {
        let running = start(home, 1, UNTIL_TOLD);
        let other = home.json(&["exec", "--network", "host", "--", "true"]);
        assert_eq!(other["error"], "Conflict", "{other}");
        let beside = exec(home, &["--readonly", "--", "ls", "/"]);
        assert_eq!(beside["exit_code"], 0, "looking is always possible");
        home.ok(&["write", "/tmp/stop", ""]);
        assert_eq!(result(running)["exit_code"], 0);
        let now = exec(home, &["--network", "host", "--", "true"]);
        assert_eq!(now["exit_code"], 0);
    });
}
