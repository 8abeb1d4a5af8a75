//! Commands: what may be asked for, and what is kept of it.

use super::{as_agent, ask};
use crate::AVFS;
use avfs_api::bounds::{ARGUMENT_MAX, COMMAND_KEPT_MAX, OUTPUT_LIMIT_MAX};
use avfs_testkit::Home;
use serde_json::json;
use std::fs;

#[test]
fn an_output_limit_has_a_maximum_and_the_rest_is_spilled() {
    for home in Home::of_every_user_with_vault(AVFS) {
        for wrong in ["2000000000", "18446744073709551615"] {
            let words = ["proxy", "exec", "--output-limit", wrong, "--", "true"];
            let refused = as_agent(&home, &words);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success());
            assert!(said.contains(&OUTPUT_LIMIT_MAX.to_string()), "{said}");
        }
        let most = OUTPUT_LIMIT_MAX.to_string();
        let text = "head -c 30000000 /dev/zero | tr '\\0' a";
        let words = ["proxy", "exec", "--output-limit", &most, "--shell", text];
        let result = &home.json(&words)["result"];
        assert_eq!(result["stdout"].as_str().unwrap().len(), OUTPUT_LIMIT_MAX);
        assert_eq!(result["output"]["stdout"]["spilled"], json!(30_000_000));
        let exec = result["exec"].as_str().unwrap();
        assert_eq!(home.ok(&["output", exec]).len(), 30_000_000);
    }
}

/// A request that cannot be read, or means nothing.
fn is_refused(answer: &str) -> bool {
    ["HTTP/1.1 400 ", "HTTP/1.1 422 "]
        .iter()
        .any(|status| answer.starts_with(status))
}

#[test]
fn a_command_that_no_kernel_takes_is_refused_before_it_is_judged() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let socket = home.socket();
        let long = "a".repeat(ARGUMENT_MAX + 1);
        let many = vec!["a"; 300_000];
        let refused = [
            json!({ "argv": ["true", long] }),
            json!({ "shell": long }),
            json!({ "argv": ["true"], "env": { "A": long } }),
            json!({ "argv": many }),
        ];
        for request in refused {
            let body = request.to_string();
            for address in ["/v1/vaults/v/exec", "/v1/vaults/v/policy/explain"] {
                let answer = ask(&socket, "POST", address, body.as_bytes());
                assert!(is_refused(&answer), "{address}: {answer}");
                assert!(answer.contains("are the most"), "{address}: {answer}");
            }
            let job = format!("{{\"exec\":{body}}}");
            let answer = ask(&socket, "POST", "/v1/vaults/v/jobs", job.as_bytes());
            assert!(is_refused(&answer), "{answer}");
        }
        let huge = vec![b' '; 20_000_000];
        let answer = ask(&socket, "POST", "/v1/vaults/v/exec", &huge);
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    }
}

#[test]
fn the_journal_keeps_the_head_of_a_long_command() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let words = vec!["x".repeat(100_000); 18];
        let mut argv = vec!["true".to_owned()];
        argv.extend(words);
        let body = json!({ "argv": argv }).to_string();
        let before = fs::metadata(home.avfs_home().join("store.db"))
            .unwrap()
            .len();
        for _ in 0..5 {
            let answer = ask(&home.socket(), "POST", "/v1/vaults/v/exec", body.as_bytes());
            assert!(
                answer.starts_with("HTTP/1.1 200"),
                "{}",
                &answer[..300.min(answer.len())]
            );
        }
        let entries = home.json(&["audit", "--operation", "exec_requested"])["entries"].clone();
        let command = entries[0]["details"]["command"].as_str().unwrap();
        assert!(command.len() < COMMAND_KEPT_MAX + 200, "{}", command.len());
        assert!(command.contains("blake3"), "{command}");
        let db = home.avfs_home().join("store.db");
        let wal = fs::metadata(home.avfs_home().join("store.db-wal")).map_or(0, |it| it.len());
        let grown = fs::metadata(db).unwrap().len() + wal - before;
        assert!(grown < 8 << 20, "{grown} bytes");
    }
}
