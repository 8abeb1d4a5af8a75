//! Log lines: what happened is found by its id, and nothing that is secret is in them.

use super::{Server, bearer, home, key};
use avfs_testkit::wait_for;
use serde_json::{Value, json};
use std::fs;

#[test]
fn lines_have_exec_ids_and_no_secrets() {
    let home = home();
    home.ok(&["vault", "create", "secret-vault"]);
    let good = key(&home, "ci", &["--scope", "read,write,exec"]);
    let path = home.path().join("log");
    let file = fs::File::create(&path).expect("own file");
    let server = Server::start_with(home, &["--log-requests"], file.into());
    let ask = |method, address: &str, body: Value| {
        let address = format!("/v1/vaults/secret-vault{address}");
        server.ask(&bearer(&good), method, &address, &body.to_string())
    };
    let command =
        json!({ "shell": "echo secret-word; exit 3", "env": { "TOKEN": "secret-token" } });
    let ran = ask("POST", "/exec", command).json()["result"].clone();
    assert_eq!(ran["exit_code"], 3, "{ran:#}");
    let written = json!({ "path": "/secret-path", "content": "secret-content" });
    assert_eq!(ask("POST", "/files/write", written).status, 200);
    let job = json!({ "exec": { "argv": ["echo", "secret-word"] } });
    let job = ask("POST", "/jobs", job).json();
    assert!(job["exec"].is_string(), "{job:#}");
    assert_eq!(
        ask("GET", "/files/cat?path=/secret-none", json!({})).status,
        404
    );
    assert_eq!(server.get("secret-guess", "/v1/vaults").status, 401);
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(&path).expect("own file");
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines.collect()
    };
    let wanted = [
        json!({ "event": "command", "exec": ran["exec"], "status": "exited", "exit_code": 3, "by": "agent:ci" }),
        json!({ "event": "request", "operation": "exec", "status": 200, "by": "agent:ci" }),
        json!({ "event": "request", "operation": "write", "status": 200, "by": "agent:ci" }),
        json!({ "event": "job", "job": job["job_id"], "exec": job["exec"], "by": "agent:ci" }),
        json!({ "event": "command", "exec": job["exec"], "status": "exited", "exit_code": 0, "by": "agent:ci" }),
        json!({ "event": "request", "operation": "cat", "status": 404, "by": "agent:ci" }),
        json!({ "event": "unauthenticated", "address": "127.0.0.1" }),
    ];
    let is_there = |wanted: &Value| {
        let wanted = wanted.as_object().expect("an object");
        let fits = |line: &Value| wanted.iter().all(|(name, value)| line[name] == *value);
        lines().iter().any(fits)
    };
    for line in &wanted {
        assert!(
            wait_for(super::PATIENCE, || is_there(line)),
            "{line}: {:#?}",
            lines()
        );
    }
    let text = fs::read_to_string(&path).expect("own file");
    assert!(!text.contains("secret"), "{text}");
    assert!(!text.contains(&good[18..]), "{text}");
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("every line is JSON");
        assert!(
            line["time"].is_string() && line["event"].is_string(),
            "{line}"
        );
    }
}

/// Nobody who does not ask for lines gets some.
#[test]
fn there_are_no_lines_unless_asked_for() {
    let home = home();
    let good = key(&home, "ci", &["--scope", "read"]);
    let path = home.path().join("log");
    let file = fs::File::create(&path).expect("own file");
    let mut server = Server::start_with(home, &[], file.into());
    assert_eq!(server.get(&good, "/v1/vaults").status, 200);
    server.home.ok(&["daemon", "stop"]);
    server.child.wait().expect("it has ended");
    let said = fs::read_to_string(&path).expect("own file");
    assert!(!said.contains("\"event\""), "{said}");
}
