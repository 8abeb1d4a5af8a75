//! What was probably meant: a command without `--`, input that goes nowhere, a time without a unit.

use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Output, Stdio};

fn stderr(said: &Output) -> String {
    String::from_utf8_lossy(&said.stderr).into_owned()
}

#[test]
fn a_command_without_dashes_is_told_what_to_write() {
    let home = Home::new(AVFS);
    for (words, instead) in [
        (&["exec", "ls"][..], "avfs exec -- ls"),
        (&["exec", "ls -la"], "avfs exec --shell 'ls -la'"),
        (&["proxy", "exec", "ls", "-la"], "avfs proxy exec -- ls -la"),
        (&["job", "start", "make"], "avfs job start -- make"),
    ] {
        let said = home.avfs(words);
        assert_eq!(said.status.code(), Some(2), "{words:?}");
        let hint = format!("hint: write `{instead}`");
        assert!(stderr(&said).contains(&hint), "{}", stderr(&said));
        let json = home.json(words);
        assert_eq!(json["error"], "Invalid", "{json}");
        let instead = instead.replacen("avfs", "avfs --json", 1);
        assert_eq!(json["hint"], format!("write `{instead}`"), "{json}");
    }
    assert_eq!(home.daemon_pid(), None, "wrong usage starts no daemon");
}

#[test]
fn a_line_as_one_word_is_told_of_the_shell() {
    with_vault(AVFS, |home| {
        let said = home.avfs(&["exec", "--", "ls -la"]);
        assert_eq!(said.status.code(), Some(127));
        assert!(stderr(&said).contains("--shell"), "{}", stderr(&said));
        let said = home.avfs(&["exec", "--", "no-such-program"]);
        assert!(!stderr(&said).contains("--shell"), "{}", stderr(&said));
    });
}

const UNHEARD: &str = "standard input was not forwarded";

#[test]
fn input_that_the_command_does_not_get_is_mentioned() {
    with_vault(AVFS, |home| {
        let run = |words: &[&str], input: Stdio| {
            let said = home.command(words).stdin(input).output().unwrap();
            assert!(said.status.success(), "{said:?}");
            (
                String::from_utf8_lossy(&said.stdout).into_owned(),
                stderr(&said),
            )
        };
        let full = || {
            let (reader, mut writer) = std::io::pipe().unwrap();
            writer.write_all(b"hi\n").unwrap();
            Stdio::from(reader)
        };
        let (_, noted) = run(&["exec", "--", "cat"], full());
        assert!(
            noted.contains(UNHEARD) && noted.contains("--stdin"),
            "{noted}"
        );
        let (answer, noted) = run(&["--json", "exec", "--", "cat"], full());
        assert!(noted.contains(UNHEARD), "{noted}");
        let envelope: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(envelope["result"]["stdout"], "", "{envelope}");
        let (answer, noted) = run(&["exec", "--stdin", "--", "cat"], full());
        assert_eq!(answer, "hi\n");
        assert!(!noted.contains(UNHEARD), "{noted}");

        let path = home.path().join("input");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let (_, noted) = run(&["exec", "--", "true"], File::open(&path).unwrap().into());
        assert!(noted.contains(UNHEARD), "{noted}");
        // `while read line; do avfs exec …; done < input` has read a part of the file.
        let mut begun = File::open(&path).unwrap();
        begun.read_exact(&mut [0; 4]).unwrap();
        let (_, noted) = run(&["exec", "--", "true"], begun.into());
        assert!(!noted.contains(UNHEARD), "{noted}");
    });
}

#[test]
fn input_without_data_is_neither_mentioned_nor_waited_for() {
    with_vault(AVFS, |home| {
        // The writer lives until the end: reading from it would never return.
        let (reader, writer) = std::io::pipe().unwrap();
        for input in [Stdio::from(reader), Stdio::null()] {
            let said = home.command(&["exec", "--", "true"]).stdin(input).output();
            let said = said.unwrap();
            assert!(said.status.success(), "{said:?}");
            assert!(!stderr(&said).contains(UNHEARD), "{}", stderr(&said));
        }
        drop(writer);
        let avfs = home.command::<&str>(&[]).get_program().to_owned();
        let mut shell = home.host_command("sh");
        shell.args(["-c", "exec \"$0\" exec -- true <&-"]).arg(avfs);
        let said = shell.output().unwrap();
        assert!(said.status.success(), "{said:?}");
        assert!(!stderr(&said).contains(UNHEARD), "{}", stderr(&said));
    });
}

#[test]
fn a_short_time_without_a_unit_is_said_to_be_milliseconds() {
    with_vault(AVFS, |home| {
        let said = home.avfs(&["exec", "--timeout", "60", "--", "sleep", "600"]);
        assert_eq!(said.status.code(), Some(124));
        let noted = stderr(&said);
        assert!(noted.contains("60 milliseconds"), "{noted}");
        assert!(noted.contains("60s"), "{noted}");
        for time in ["60s", "5m", "1h", "600000", "0", "1d"] {
            let said = home.avfs(&["exec", "--timeout", time, "--", "true"]);
            assert!(said.status.success(), "{time}: {said:?}");
            assert!(!stderr(&said).contains("milliseconds"), "{time}: {said:?}");
        }
        assert_eq!(
            home.avfs(&["exec", "--timeout", "5 m", "--", "true"])
                .status
                .code(),
            Some(2)
        );
    });
}

/// Options that once took a bare number only.
#[test]
fn times_have_units_everywhere() {
    with_vault(AVFS, |home| {
        home.ok(&["gc", "--grace", "12h", "--dry-run"]);
        home.ok(&["prune", "--older-than", "12h", "--dry-run"]);
        home.ok(&["maintain", "--older-than", "30d"]);
        home.ok(&[
            "job",
            "start",
            "--lifetime",
            "client",
            "--lease",
            "1m",
            "--",
            "true",
        ]);
        home.ok(&["job", "wait", "1", "--timeout", "1m"]);
        home.ok(&["vault", "set", "timeout=2m"]);
        home.ok(&["write", "/f", "1"]);
        home.ok(&["write", "/f", "2"]);
        let kept = home.json(&["prune", "--older-than", "1h", "--dry-run"]);
        assert_eq!(kept["versions_deleted"], 0, "{kept}");
        for words in [
            &["gc", "--grace", "12x"][..],
            &["prune", "--older-than", "soon"],
            &["mount", "d", "--autocommit", "-1s"],
            &["serve", "--idle-timeout", "never"],
        ] {
            assert_eq!(home.avfs(words).status.code(), Some(2), "{words:?}");
        }
    });
}

#[test]
fn the_journal_tells_how_a_command_ended() {
    with_vault(AVFS, |home| {
        home.ok(&["exec", "--shell", "echo 1 > /a; echo 2 > /b; echo 3 > ~/c"]);
        home.avfs(&["exec", "--shell", "exit 7"]);
        home.avfs(&["exec", "--shell", "kill -9 $$"]);
        home.ok(&["exec", "--readonly", "--", "true"]);
        let listed = home.json(&["audit", "--operation", "exec"]);
        let ended: Vec<&serde_json::Value> = listed["entries"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["operation"] == "exec")
            .map(|entry| &entry["details"])
            .collect();
        let told: Vec<_> = ended
            .iter()
            .map(|details| {
                assert!(details["duration_ms"].is_u64(), "{details}");
                (
                    details["exit_code"].as_i64(),
                    details["changed_paths"].as_u64(),
                )
            })
            .collect();
        let expected = [
            (Some(0), Some(0)),
            (None, Some(0)),
            (Some(7), Some(0)),
            (Some(0), Some(2)),
        ];
        assert_eq!(told, expected, "{listed:#}");
    });
}

#[test]
fn the_state_of_a_command_that_took_too_long_says_so() {
    with_vault(AVFS, |home| {
        let ran = home.json(&["exec", "--timeout", "200ms", "--", "sleep", "600"]);
        assert_eq!(ran["result"]["state"], "timed_out", "{ran:#}");
        assert_eq!(ran["result"]["timed_out"], true, "{ran:#}");
        let ran = home.json(&["exec", "--", "false"]);
        assert_eq!(ran["result"]["state"], "completed", "{ran:#}");
    });
}

/// The command is the agent's: its text is bounded and cannot deceive.
#[test]
fn automatic_checkpoints_tell_the_command_that_follows() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "1"]);
        let descriptions = || {
            let list = home.json(&["checkpoint", "list"]);
            let all = list["snapshots"].as_array().unwrap().clone();
            all.iter()
                .map(|it| it["description"].as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        home.ok(&["exec", "--", "rm", "-rf", "/f"]);
        assert_eq!(descriptions(), ["before: rm -rf /f"]);
        home.ok(&["write", "/f", "1"]);
        let hostile = format!("rm -rf /f # \u{1b}[2J\u{202e}\n{}", "x".repeat(5000));
        home.avfs(&["exec", "--shell", &hostile]);
        let told = descriptions();
        assert_eq!(told.len(), 2, "{told:?}");
        let told = told.iter().find(|text| text.contains('#')).unwrap();
        assert!(
            told.starts_with("before: rm -rf /f # \\u{1b}[2J\\u{202e}\\nxxx"),
            "{told}"
        );
        assert!(told.chars().count() <= 130 && told.ends_with('…'), "{told}");
    });
}
