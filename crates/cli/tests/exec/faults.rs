//! What went wrong in other tools, by name.

use crate::{AVFS, exec, text};
use avfs_testkit::{Home, with_vault};
use serde_json::json;

#[test]
fn the_change_list_is_not_empty_when_something_changed() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/old", "x"]);
        let change = "echo a > /new; rm /old; mkdir /d; chmod 700 /d; ln -s new /link";
        let result = exec(home, &["--shell", change]);
        let expected = json!(["/d", "/link", "/new", "/old"]);
        assert_eq!(result["changed_files"], expected, "{result:#}");
    });
}

#[test]
fn more_than_64_kib_of_output_does_not_hang() {
    with_vault(AVFS, |home| {
        let flood =
            "head -c 4000000 /dev/zero | tr '\\0' a; head -c 3000000 /dev/zero | tr '\\0' b >&2";
        let result = exec(home, &["--output-limit", "4m", "--shell", flood]);
        assert_eq!(result["exit_code"], 0);
        assert_eq!(text(&result).len(), 4_000_000);
        assert_eq!(result["stderr"].as_str().unwrap().len(), 3_000_000);
        assert_eq!(result["output"]["stdout"]["truncated"], false);
    });
}

#[test]
fn one_line_of_a_hundred_megabytes_is_bounded() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let line = ["--shell", "head -c 100000000 /dev/zero | tr '\\0' x"];
    let result = exec(&home, &line);
    assert_eq!(result["output"]["stdout"]["bytes"], 100_000_000);
    assert_eq!(text(&result).len(), 1 << 20, "the envelope keeps its limit");
}

#[test]
fn nothing_of_one_caller_is_warm_for_the_next() {
    with_vault(AVFS, |home| {
        let leave = "export LEAK=1; cd /usr; umask 077; echo s > /dev/shm/leak; ulimit -n 99; \
            (sleep 96.54321 &); echo x > /run/leak || true";
        exec(home, &["--env", "CALLER=first", "--shell", leave]);
        let look = "echo $LEAK$CALLER; pwd; umask; ulimit -n; ls /proc | grep -c '^[0-9]'; ps -e | grep -c sleep";
        let next = exec(home, &["--shell", look]);
        let lines: Vec<_> = text(&next).lines().collect();
        assert_eq!(
            (lines[0], lines[1], lines[2]),
            ("", "/", "0022"),
            "{lines:?}"
        );
        assert_ne!(lines[3], "99");
        assert_eq!(lines.last(), Some(&"0"), "no process of the first is left");
        // Another vault shares nothing at all.
        home.ok(&["vault", "create", "w"]);
        let other = home.json(&[
            "--vault",
            "w",
            "exec",
            "--shell",
            "ls -A /dev/shm /tmp /run | grep leak",
        ]);
        assert_eq!(other["result"]["stdout"], "");
    });
}

#[test]
fn a_fork_bomb_is_bounded_even_without_limits() {
    with_vault(AVFS, |home| {
        let most: u64 = text(&exec(home, &["--shell", "ulimit -Hu"]))
            .trim()
            .parse()
            .unwrap();
        assert!(most <= 16_384, "{most}");
        let raise = exec(home, &["--shell", "ulimit -Hu 99999"]);
        assert_ne!(raise["exit_code"], 0, "{raise:#}");
    });
}

#[test]
fn words_stay_words_and_the_exit_code_is_the_commands() {
    with_vault(AVFS, |home| {
        let result = exec(
            home,
            &["--", "printf", "%s|", "a b", "$(id)", "; exit 9", ""],
        );
        assert_eq!(text(&result), "a b|$(id)|; exit 9||");
        let output = home.avfs(&["exec", "--shell", "exit 42"]);
        assert_eq!(output.status.code(), Some(42));
    });
}

#[test]
fn every_outcome_has_an_envelope_and_an_exit_code() {
    with_vault(AVFS, |home| {
        let cases: [(&[&str], &str, i32); 7] = [
            (&["--", "true"], "exited", 0),
            (&["--", "false"], "exited", 1),
            (&["--shell", "kill -TERM $$"], "signaled", 143),
            (
                &["--timeout", "200ms", "--", "sleep", "9"],
                "timed_out",
                124,
            ),
            (&["--", "no-such-command"], "not_found", 127),
            (&["--cwd", "/nowhere", "--", "true"], "could_not_start", 126),
            (&["--", "cat", "/etc/shadow"], "denied", 126),
        ];
        for (words, status, code) in cases {
            let output = home.avfs(&[&["--json", "exec"], words].concat());
            let envelope: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let result = &envelope["result"];
            assert_eq!(
                result["status"],
                status,
                "{words:?} as {}: {result:#}",
                home.user()
            );
            assert_eq!(output.status.code(), Some(code), "{words:?}");
            assert_eq!(envelope["success"], code == 0);
            let ran = !["denied", "not_found", "could_not_start"].contains(&status);
            assert_eq!(result["usage"].is_object(), ran, "{words:?}");
        }
        let busy = exec(
            home,
            &[
                "--",
                "python3",
                "-c",
                "x = bytearray(50 << 20); sum(range(3000000))",
            ],
        );
        let usage = &busy["usage"];
        assert!(usage["user_us"].as_u64().unwrap() > 10_000, "{usage}");
        assert!(usage["max_rss_kib"].as_u64().unwrap() > 50 << 10, "{usage}");
    });
}
