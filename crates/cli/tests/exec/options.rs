//! Each option of `proxy exec`, its effect or its refusal.

use crate::{AVFS, exec, refused, text};
use avfs_testkit::{Home, with_vault};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::process::Stdio;

#[test]
fn standard_input_is_forwarded() {
    with_vault(AVFS, |home| {
        let mut child = home
            .command(&["exec", "--stdin", "--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let sent: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let expected = sent.clone();
        let writer = std::thread::spawn(move || input.write_all(&sent));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success(), "{}", home.user());
        assert!(output.stdout == expected, "every byte, in order");
        // A command that does not read does not hang, and one without input finds none.
        assert_eq!(exec(home, &["--stdin", "--", "true"])["exit_code"], 0);
        assert_eq!(text(&exec(home, &["--", "cat"])), "");
        let file = home.path().join("input");
        fs::write(&file, "from a file").unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let file = file.to_str().unwrap();
        assert_eq!(
            text(&exec(home, &["--stdin-file", file, "--", "cat"])),
            "from a file"
        );
        assert_eq!(
            refused(home, &["--stdin-file", "/nowhere", "--", "cat"]),
            "Invalid"
        );
    });
}

#[test]
fn variables_come_from_a_file_and_options_go_first() {
    with_vault(AVFS, |home| {
        let file = home.path().join("vars");
        fs::write(&file, "# about\nA=file\nexport B='two words'\n").unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let file = file.to_str().unwrap();
        let words = [
            "--env-file",
            file,
            "--env",
            "A=option",
            "--shell",
            "echo $A:$B",
        ];
        assert_eq!(text(&exec(home, &words)), "option:two words\n");
        fs::write(file, "nonsense\n").unwrap();
        assert_eq!(
            refused(home, &["--env-file", file, "--", "true"]),
            "Invalid"
        );
    });
}

#[test]
fn a_read_only_command_changes_nothing_and_sees_what_is_there() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "content"]);
        let result = exec(
            home,
            &[
                "--readonly",
                "--shell",
                "cat /f; echo x > /g || echo refused",
            ],
        );
        assert_eq!(text(&result), "contentrefused\n", "{result:#}");
        assert_eq!(result["readonly"], true);
        assert_eq!(result["changes"], json!([]));
        assert_eq!(home.json(&["ls", "/g"])["error"], "NotFound");
        let both = ["--readonly", "--fork", "--", "true"];
        assert_eq!(refused(home, &both), "Invalid");
    });
}

#[test]
fn the_checkpoint_is_named_kept_or_left_out() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "before"]);
        let result = exec(
            home,
            &["--checkpoint", "mine", "--shell", "echo after > /f"],
        );
        assert_eq!(result["checkpoint"], "mine");
        let untouched = exec(home, &["--checkpoint", "kept", "--", "true"]);
        assert_eq!(untouched["checkpoint"], "kept", "asked for, so it stays");
        let never = exec(home, &["--no-checkpoint", "--shell", "echo never > /f"]);
        assert_eq!(never["checkpoint"], json!(null));
        assert_eq!(never["decision"]["action"], "allow_with_checkpoint");
        let list = home.json(&["checkpoint", "list"]);
        assert_eq!(list["snapshots"].as_array().unwrap().len(), 2, "{list}");
        let journal = home.json(&["audit", "--limit", "20"]).to_string();
        assert!(
            journal.contains(r#""checkpoint":"never""#),
            "the choice is recorded"
        );
        home.ok(&["checkpoint", "restore", "mine"]);
        assert_eq!(home.ok(&["cat", "/f"]), "before");
        let taken = ["--checkpoint", "mine", "--", "true"];
        assert_eq!(refused(home, &taken), "AlreadyExists");
    });
}

#[test]
fn a_fork_is_thrown_away_or_kept() {
    with_vault(AVFS, |home| {
        let result = exec(home, &["--fork", "--shell", "echo x > /f"]);
        assert_eq!(
            result["changed_files"],
            json!(["/f"]),
            "what it did is told"
        );
        assert_eq!(result["fork"]["kept"], false);
        assert_eq!(result["vault"], "v");
        // The checkpoint would go with the fork.
        let named = ["exec", "--fork", "--checkpoint", "c", "--", "true"];
        assert_eq!(home.refused(&named).0, "Invalid");
        assert_eq!(
            home.json(&["ls", "/f"])["error"],
            "NotFound",
            "not done here"
        );
        let kept = exec(
            home,
            &["--fork", "--keep-on-success", "--shell", "echo y > /f"],
        );
        let name = kept["fork"]["name"].as_str().unwrap();
        assert_eq!(home.ok(&["--vault", name, "cat", "/f"]), "y\n");
        let failed = exec(home, &["--fork", "--keep-on-success", "--shell", "exit 3"]);
        assert_eq!(
            (&failed["exit_code"], &failed["fork"]["kept"]),
            (&json!(3), &json!(false))
        );
        let vaults = home.json(&["vault", "list"]);
        assert_eq!(vaults.as_array().unwrap().len(), 2, "{vaults}");
    });
}

#[test]
fn limits_hold_and_say_what_enforces_them() {
    with_vault(AVFS, |home| {
        let hungry = "import time; x = bytearray(300 << 20); time.sleep(5)";
        let words = ["--memory", "64m", "--", "python3", "-c", hungry];
        let result = exec(home, &words);
        assert_eq!(result["status"], "out_of_memory", "{result:#}");
        assert_eq!(result["limit_hit"]["limit"], "memory");
        assert_eq!(result["limits"][0]["value"], json!(f64::from(64 << 20)));
        assert!(result["limits"][0]["enforced_by"].is_string());
        let killed = exec(home, &["--memory", "64m", "--shell", "kill -9 $$"]);
        assert_eq!(killed["status"], "signaled", "a kill is no want of memory");
        assert_eq!(
            (&killed["signal"], &killed["limit_hit"]),
            (&json!(9), &json!(null))
        );
        let forks = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; wait";
        let result = exec(home, &["--pids", "6", "--shell", forks]);
        let complaint = result["stderr"].as_str().unwrap();
        assert!(complaint.contains("fork"), "{result:#}");
        let result = exec(
            home,
            &["--disk", "4m", "--shell", "cat /dev/zero > /big; sleep 9"],
        );
        assert_eq!(result["status"], "limit_exceeded", "{result:#}");
        assert_eq!(
            result["limit_hit"],
            json!({"limit": "disk", "enforced_by": "poll"})
        );
        for wrong in [["--memory", "1k"], ["--cpus", "-1"], ["--pids", "0"]] {
            let words = [&wrong[..], &["--", "true"]].concat();
            assert_eq!(refused(home, &words), "Invalid", "{wrong:?}");
        }
    });
}

#[test]
fn processors_are_limited_or_that_is_refused() {
    with_vault(AVFS, |home| {
        let answer = home.json(&["exec", "--cpus", "0.5", "--", "true"]);
        if answer["result"].is_object() {
            let limit = &answer["result"]["limits"][0];
            assert_eq!(
                (&limit["limit"], &limit["value"]),
                (&json!("cpus"), &json!(0.5))
            );
        } else {
            assert_eq!(answer["error"], "Unavailable", "{answer}");
            let hint = answer["hint"].as_str().unwrap();
            assert!(hint.contains("Delegate"), "{hint}");
        }
    });
}

#[test]
fn a_profile_is_a_set_of_limits() {
    with_vault(AVFS, |home| {
        let envelope = home.json(&[
            "exec",
            "--profile",
            "restrictive",
            "--pids",
            "20",
            "--",
            "true",
        ]);
        let request = &envelope["request"];
        assert_eq!(request["profile"], "restrictive");
        assert_eq!(request["timeout"], json!({"millis": 60_000}));
        assert_eq!(
            request["limits"]["pids"], 20,
            "a limit goes before a profile"
        );
        assert_eq!(request["limits"]["memory"], 512 << 20);
        let held: Vec<_> = envelope["result"]["limits"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|held| held["source"] == "request")
            .collect();
        assert_eq!(held.len(), 3, "{envelope:#}");
    });
}

#[test]
fn the_hosts_network_is_the_owners_choice_and_recorded() {
    with_vault(AVFS, |home| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // In a file, because policy knows what its text would do.
        let connect = "import socket, sys\n\
            s = socket.socket()\n\
            print('reached' if s.connect_ex(('127.0.0.1', int(sys.argv[1]))) == 0 else 'no')\n";
        home.ok(&["write", "/connect.py", connect]);
        let port = port.to_string();
        let reach = ["--", "python3", "/connect.py", &port];
        let closed = exec(home, &[&["--network", "none"], &reach[..]].concat());
        assert_eq!(text(&closed), "no\n");
        let open = exec(home, &[&["--network", "host"], &reach[..]].concat());
        assert_eq!(text(&open), "reached\n", "{open:#}");
        assert_eq!(open["isolation"]["network"], "Host");
        let journal = home.json(&["audit", "--limit", "20"]).to_string();
        assert!(journal.contains(r#""network":"host""#), "{journal}");
        // Policy then knows that the network is open.
        let fetch = exec(
            home,
            &["--network", "host", "--", "curl", "https://example.org/"],
        );
        assert_eq!(fetch["status"], "needs_approval", "{fetch:#}");
        assert_eq!(text(&exec(home, &reach)), "no\n", "closed again after it");
    });
}

#[test]
fn the_process_driver_says_that_nothing_holds_the_command() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "of the vault"]);
        let look = "import os\n\
            print(open('f').read())\n\
            print(os.path.isdir('/sys/kernel'))\n\
            open('g', 'w').write('made')\n";
        home.ok(&["write", "/look.py", look]);
        let result = exec(home, &["--driver", "process", "--", "python3", "look.py"]);
        assert_eq!(text(&result), "of the vault\nTrue\n", "{result:#}");
        assert_eq!(
            (&result["driver"], &result["isolation"]),
            (&json!("process"), &json!("none"))
        );
        assert_eq!(
            result["changed_files"],
            json!(["/g"]),
            "what it did is still told"
        );
        assert_eq!(home.ok(&["cat", "/g"]), "made");
        // It has the host's network, which the report says, and which cannot be taken from it.
        let process = ["exec", "--driver", "process"];
        let asked = home.json(&[&process[..], &["--", "true"]].concat());
        assert_eq!(asked["request"]["network"], "host");
        let none = [&process[..], &["--network", "none", "--", "true"]].concat();
        assert_eq!(home.refused(&none).0, "Invalid");
        let held = exec(home, &["--", "python3", "look.py"]);
        assert_eq!(text(&held), "of the vault\nFalse\n");
        assert_eq!(held["isolation"]["seccomp"], true);
        let orphan = [
            "--driver",
            "process",
            "--shell",
            "setsid sleep 98.76512 & exit 0",
        ];
        assert_eq!(exec(home, &orphan)["leftovers"], 1);
        assert!(avfs_testkit::leftover_processes("98.76512").is_empty());
    });
}

#[test]
fn what_other_tools_offer_is_refused_with_the_reason() {
    let home = Home::new(AVFS);
    for (words, reason) in [
        (["--keep-mount", "--shell", "true"], "--keep-mount"),
        (["--mountpoint=/mnt", "--shell", "true"], "always at /"),
    ] {
        let answer = home.json(&[&["exec"], &words[..]].concat());
        assert_eq!(answer["error"], "Invalid");
        assert!(
            answer["message"].as_str().unwrap().contains(reason),
            "{answer}"
        );
        assert!(answer["hint"].is_string(), "{answer}");
    }
}

#[test]
fn patches_and_home_changes_are_told_on_request() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "one\n"]);
        let change = "echo two > /f; echo x > ~/.history";
        let result = exec(home, &["--patch", "--home-changes", "--shell", change]);
        let patch = result["patch"].as_str().unwrap();
        assert!(patch.contains("-one\n+two\n"), "{patch}");
        let listed = result["home_change_list"].as_array().unwrap();
        assert_eq!(result["home_changes"], listed.len());
        let paths: Vec<_> = listed
            .iter()
            .map(|item| item["path"].as_str().unwrap())
            .collect();
        assert!(paths.contains(&"/home/agent/.history"), "{paths:?}");
        assert_eq!(result["changed_files"], json!(["/f"]));
        let item = &result["changes"][0];
        assert_eq!(
            (&item["before"]["size"], &item["after"]["size"]),
            (&json!(4), &json!(4))
        );
        assert!(item["after"]["hash"].is_string(), "{item}");
        assert_eq!(exec(home, &["--", "true"]).get("patch"), None);
    });
}
