//! Starting, watching, feeding and ending a job.

use super::{UNTIL_GO, poll, start, wait, written};
use crate::AVFS;
use avfs_testkit::{SOON, leftover_processes, wait_for, with_vault};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn output_is_seen_while_it_runs_and_after() {
    with_vault(AVFS, |home| {
        let text = format!("echo out; echo err >&2; {UNTIL_GO}; echo end; echo x > /made");
        let job = start(home, &["--shell", &text]);
        // It waits for what is written only below, so this was seen before its end.
        let early = written(home, &job, "out\n");
        assert_eq!(
            (&early["running"], &early["exit_code"]),
            (&json!(true), &Value::Null)
        );
        assert_eq!(early["stderr"], "err\n");
        assert_eq!(early["offsets"]["stdout"]["to"], 4);
        home.ok(&["write", "/tmp/go", ""]);
        let waited = wait(home, &job);
        assert_eq!(
            (&waited["status"], &waited["exit_code"]),
            (&json!("exited"), &json!(0))
        );
        let envelope = &waited["envelope"];
        assert_eq!(envelope["kind"], "proxy_exec_result");
        assert_eq!(envelope["result"]["exec"], waited["exec"]);
        assert_eq!(
            envelope["result"]["changed_files"],
            json!(["/made"]),
            "{envelope:#}"
        );
        assert_eq!(envelope["result"]["version"], waited["version"]);
        for _ in 0..2 {
            let late = home.json(&["job", "poll", &job, "--offset", "4"]);
            assert_eq!(
                (&late["running"], &late["stdout"]),
                (&json!(false), &json!("end\n"))
            );
        }
        assert_eq!(home.ok(&["job", "logs", &job]), "out\nend\n");
        assert_eq!(
            home.ok(&["job", "logs", &job, "--stream", "stdout", "--offset", "1"]),
            "ut\nend\n"
        );
        let beyond = home.json(&["job", "poll", &job, "--offset", "9"]);
        assert_eq!(beyond["error"], "Invalid");
        assert_eq!(home.json(&["job", "poll", "99"])["error"], "NotFound");
    });
}

#[test]
fn following_tells_everything_as_it_comes() {
    with_vault(AVFS, |home| {
        let text = format!("echo first; {UNTIL_GO}; printf 'no \\377 text'; echo last >&2; exit 3");
        let job = start(home, &["--shell", &text]);
        let mut child = home
            .command(&["--json", "job", "logs", "-f", &job])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next =
            || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        let first = next();
        assert_eq!(
            (&first["event"], &first["data"]),
            (&json!("stdout"), &json!("first\n"))
        );
        home.ok(&["write", "/tmp/go", ""]);
        let mut rest = vec![next(), next(), next()];
        let end = rest.pop().unwrap();
        assert_eq!(
            (&end["event"], &end["exit_code"]),
            (&json!("end"), &json!(3))
        );
        let bytes = rest
            .iter()
            .find(|event| event["event"] == "stdout")
            .unwrap();
        assert_eq!(
            (&bytes["offset"], &bytes["data_b64"]),
            (&json!(6), &json!("bm8g/yB0ZXh0"))
        );
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn what_may_not_or_cannot_run_is_no_job() {
    with_vault(AVFS, |home| {
        for (words, status, code) in [
            (&["--", "nsenter", "-t", "1", "-a"][..], "denied", 126),
            (&["--", "git", "push", "--force"], "needs_approval", 126),
            (&["--", "no-such-program"], "not_found", 127),
            (&["--cwd", "/nowhere", "--", "true"], "could_not_start", 126),
        ] {
            let words = [&["--json", "job", "start"], words].concat();
            let output = home.avfs(&words);
            let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(
                envelope["kind"], "proxy_exec_result",
                "{words:?}: {envelope:#}"
            );
            assert_eq!(envelope["result"]["status"], status, "{words:?}");
            assert_eq!(output.status.code(), Some(code), "{words:?}");
        }
        assert_eq!(home.json(&["job", "list"])["jobs"], json!([]));
        let names: Vec<_> = std::fs::read_dir(home.avfs_home().join("jobs"))
            .unwrap()
            .collect();
        assert_eq!(names.len(), 1, "only the number of the last one: {names:?}");
    });
}

#[test]
fn killing_takes_all_of_it() {
    with_vault(AVFS, |home| {
        let marker = format!("9{:07}.125", std::process::id());
        let text =
            format!("setsid -f setsid -f sleep {marker}; trap '' TERM; echo up; sleep {marker}");
        let job = start(home, &["--shell", &text]);
        written(home, &job, "up");
        assert!(wait_for(SOON, || leftover_processes(&marker).len() >= 2));
        let killed = home.json(&["job", "kill", &job]);
        assert_eq!(
            (&killed["status"], &killed["signal"]),
            (&json!("killed"), &json!(15))
        );
        assert!(leftover_processes(&marker).is_empty(), "as {}", home.user());
        let polled = poll(home, &job);
        assert_eq!(
            (&polled["running"], &polled["status"]),
            (&json!(false), &json!("cancelled"))
        );
        assert!(
            polled["reason"].as_str().unwrap().contains("job kill"),
            "{polled:#}"
        );
        assert_eq!(home.json(&["job", "kill", &job])["error"], "Conflict");
    });
}

#[test]
fn a_signal_is_the_jobs_own_business() {
    with_vault(AVFS, |home| {
        let traps = "trap 'echo caught; exit 7' USR1; echo up; while :; do sleep 0.05; done";
        let job = start(home, &["--shell", traps]);
        written(home, &job, "up");
        let sent = home.json(&["job", "kill", &job, "--signal", "USR1"]);
        assert_eq!(
            (&sent["status"], &sent["signal"]),
            (&json!("signaled"), &json!(10))
        );
        let waited = home.avfs(&["job", "wait", &job]);
        assert_eq!(waited.status.code(), Some(7), "it exits as the job did");
        assert_eq!(home.ok(&["job", "logs", &job]), "up\ncaught\n");
        let job = start(home, &["--", "sleep", "1000"]);
        let killed = home.json(&["job", "kill", &job, "-s", "9"]);
        assert_eq!(killed["status"], "killed");
        let polled = poll(home, &job);
        assert_eq!(
            (&polled["status"], &polled["signal"]),
            (&json!("signaled"), &json!(9))
        );
    });
}

#[test]
fn several_run_at_once_and_read_what_they_are_given() {
    with_vault(AVFS, |home| {
        let jobs: Vec<String> = (0..3)
            .map(|n| {
                start(
                    home,
                    &[
                        "--stdin",
                        "--shell",
                        &format!("read x; echo {n}-$x > /f{n}; cat"),
                    ],
                )
            })
            .collect();
        assert_eq!(
            home.json(&["job", "list", "--running"])["jobs"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
        assert_eq!(home.json(&["daemon", "status"])["running_jobs"], 3);
        let waiting = home.avfs(&["job", "wait", &jobs[0], "--timeout", "100"]);
        assert_eq!(waiting.status.code(), Some(124));
        for (n, job) in jobs.iter().enumerate() {
            let taken = home.json(&["job", "stdin", job, &format!("line{n}")]);
            assert_eq!(taken["bytes"], 6);
            home.ok(&["job", "stdin", job, "-n", "more"]);
            home.ok(&["job", "stdin", job, "--eof"]);
            let waited = wait(home, job);
            let others = waited["envelope"]["result"]["shared_with"]
                .as_array()
                .unwrap()
                .len();
            assert_eq!((&waited["exit_code"], others), (&json!(0), 2), "{waited:#}");
            assert_eq!(poll(home, job)["stdout"], "more");
            assert_eq!(
                home.ok(&["cat", &format!("/f{n}")]),
                format!("{n}-line{n}\n")
            );
        }
        let over = home.json(&["job", "stdin", &jobs[0], "x"]);
        assert_eq!(over["error"], "Invalid", "{over}");
        let file = home.path().join("input");
        std::fs::write(&file, "from a file\n").unwrap();
        let job = start(home, &["--stdin-file", file.to_str().unwrap(), "--", "cat"]);
        assert_eq!(
            wait(home, &job)["envelope"]["result"]["stdout"],
            "from a file\n"
        );
    });
}

#[test]
fn options_of_exec_are_options_of_jobs() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "before"]);
        let job = start(
            home,
            &[
                "--readonly",
                "--env",
                "A=b",
                "--shell",
                "echo $A; echo x > /f",
            ],
        );
        let waited = wait(home, &job);
        assert_eq!(waited["envelope"]["request"]["readonly"], true);
        assert_ne!(waited["exit_code"], 0);
        assert_eq!(home.ok(&["cat", "/f"]), "before");
        let job = start(home, &["--fork", "--shell", "echo x > /f"]);
        assert_eq!(
            wait(home, &job)["envelope"]["result"]["fork"]["kept"],
            false
        );
        assert_eq!(home.ok(&["cat", "/f"]), "before");
        let job = start(home, &["--timeout", "200", "--", "sleep", "1000"]);
        let waited = home.avfs(&["job", "wait", &job]);
        assert_eq!(waited.status.code(), Some(124));
        assert_eq!(poll(home, &job)["status"], "timed_out");
        let job = start(home, &["--checkpoint", "mine", "--shell", "echo y > /f"]);
        assert_eq!(wait(home, &job)["envelope"]["result"]["checkpoint"], "mine");
    });
}
