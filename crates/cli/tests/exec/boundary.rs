//! The boundary: time, output, and what a command cannot reach.

use crate::AVFS;
use crate::texts;
use avfs_testkit::{leftover_processes, with_vault};
use serde_json::Value;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

#[test]
fn a_timeout_ends_the_whole_tree_and_keeps_the_work() {
    with_vault(AVFS, |home| {
        let script = "echo partial; echo kept > /kept; setsid sleep 345.6789 & \
            (setsid sh -c 'trap \"\" TERM; sleep 345.6789' &) ; nohup sleep 345.6789 >/dev/null & sleep 345.6789";
        let begun = Instant::now();
        let output = home.avfs(&["--json", "exec", "--timeout", "3s", "--shell", script]);
        assert!(begun.elapsed() < Duration::from_secs(60), "it slept on");
        assert_eq!(output.status.code(), Some(124));
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        let result = &envelope["result"];
        assert_eq!(result["status"], "timed_out", "{envelope}");
        assert_eq!(result["timed_out"], true, "{envelope}");
        assert_eq!(result["exit_code"], Value::Null);
        assert_eq!(result["stdout"], "partial\n");
        assert_eq!(texts(&result["changed_files"]), ["/kept"]);
        assert!(
            leftover_processes("345.6789").is_empty(),
            "as {}",
            home.user()
        );
        assert_eq!(home.ok(&["cat", "/kept"]), "kept\n");
    });
}

#[test]
fn what_a_command_leaves_running_is_ended() {
    with_vault(AVFS, |home| {
        let envelope = home.shell("setsid sleep 456.789 >/dev/null 2>&1 & echo done");
        assert_eq!(envelope["result"]["exit_code"], 0);
        assert!(leftover_processes("456.789").is_empty());
    });
}

#[test]
fn much_output_does_not_hang_and_is_counted() {
    with_vault(AVFS, |home| {
        let envelope = home.shell("head -c 10000000 /dev/zero | tr '\\0' x; echo end >&2");
        let result = &envelope["result"];
        assert_eq!(result["exit_code"], 0, "{}", result["stderr"]);
        assert_eq!(result["output"]["stdout"]["bytes"], 10_000_000);
        assert_eq!(result["output"]["stdout"]["truncated"], true);
        assert!(result["stdout"].as_str().unwrap().len() <= (1 << 20) + 1000);
        let streamed = home
            .avfs(&["exec", "--shell", "head -c 10000000 /dev/zero | tr '\\0' x"])
            .stdout;
        assert_eq!(
            streamed.len(),
            10_000_000,
            "nothing is missing where it is streamed"
        );
        let few = home.json(&["exec", "--output-limit", "100", "--", "seq", "1000"]);
        assert!(few["result"]["stdout"].as_str().unwrap().len() < 400);
    });
}

#[test]
fn the_host_is_out_of_reach() {
    with_vault(AVFS, |home| {
        let canary = home.path().join("canary");
        std::fs::write(&canary, "the canary sings").unwrap();
        let socket = home.path().join("host.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let canary = canary.to_str().unwrap();
        let socket = socket.to_str().unwrap();
        // Told through a variable, so that the boundary and not the policy has to hold.
        let reach = |script: &str| {
            let variables = [
                format!("--env=CANARY={canary}"),
                format!("--env=SOCKET={socket}"),
            ];
            let mut words = vec!["exec", &variables[0], &variables[1], "--shell", script];
            words.insert(0, "proxy");
            home.json(&words)
        };
        let envelope = reach("cat \"$CANARY\"");
        assert!(!envelope.to_string().contains("sings"), "{envelope}");
        let envelope = reach("for d in /proc/*/root /proc/*/cwd; do cat \"$d$CANARY\"; done");
        assert!(!envelope.to_string().contains("sings"), "{envelope}");
        let envelope = reach(
            "python3 -c 'import os,socket; s=socket.socket(socket.AF_UNIX); s.connect(os.environ[\"SOCKET\"])'",
        );
        assert_ne!(envelope["result"]["exit_code"], 0, "{envelope}");
        assert!(listener.accept().is_err(), "nobody came");
        let envelope = reach("head -c 1 /proc/1/mem");
        assert_ne!(envelope["result"]["exit_code"], 0, "{envelope}");
        assert_eq!(envelope["result"]["stdout"], "");
    });
}

#[test]
fn the_callers_environment_stays_outside() {
    with_vault(AVFS, |home| {
        let output = home
            .command(&["--json", "exec", "--env", "GIVEN=yes", "--", "env"])
            .env("SECRET_TOKEN", "sesame")
            .output()
            .unwrap();
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        let env = envelope["result"]["stdout"].as_str().unwrap();
        assert!(!env.contains("sesame"), "{env}");
        assert!(env.contains("GIVEN=yes\n"), "{env}");
        assert!(
            env.contains("AVFS_VAULT=v\n") && env.contains("HOME=/home/agent\n"),
            "{env}"
        );
    });
}

#[test]
fn another_vault_is_out_of_reach() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "create", "other"]);
        home.ok(&["--vault", "other", "write", "/secret", "of the other"]);
        home.ok(&["--vault", "other", "exec", "--", "cat", "/secret"]);
        let envelope = home.shell("cat /secret; find / -xdev -name secret 2>/dev/null; ls -a /");
        let out = envelope["result"]["stdout"].as_str().unwrap();
        assert!(
            !out.contains("of the other") && !out.contains("secret"),
            "{out}"
        );
    });
}

#[test]
fn there_is_no_network() {
    with_vault(AVFS, |home| {
        let envelope = home.shell("cat /proc/net/dev | tail -n +3 | cut -d: -f1");
        assert_eq!(envelope["result"]["stdout"].as_str().unwrap().trim(), "lo");
    });
}
