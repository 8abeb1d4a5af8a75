//! One kind of error for one mistake, on every surface: command line, HTTP and MCP.

use crate::AVFS;
use crate::raw::Raw;
use avfs_testkit::{Home, ask, status_and_body};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A mistake, as each surface is asked for it.
struct Mistake {
    kind: &'static str,
    words: &'static [&'static str],
    /// The address of a POST, and its body.
    http: (&'static str, Value),
    tool: (&'static str, Value),
}

fn mistakes() -> Vec<Mistake> {
    let v = "/v1/vaults/v";
    let at = |rest: &str| -> &'static str { format!("{v}{rest}").leak() };
    let mistake = |kind, words, http, tool| Mistake {
        kind,
        words,
        http,
        tool,
    };
    vec![
        mistake(
            "NotFound",
            &["cat", "/none"],
            (at("/files/cat"), json!({"path": "/none"})),
            ("read", json!({"path": "/none"})),
        ),
        mistake(
            "NotFound",
            &["--vault", "nope", "cat", "/f"],
            ("/v1/vaults/nope/files/cat", json!({"path": "/f"})),
            ("read", json!({"vault": "nope", "path": "/f"})),
        ),
        mistake(
            "NotFound",
            &["job", "kill", "999"],
            ("/v1/jobs/kill", json!({"job_id": 999})),
            ("job", json!({"action": "kill", "job_id": 999})),
        ),
        mistake(
            "AlreadyExists",
            &["vault", "create", "v"],
            ("/v1/vaults", json!({"name": "v"})),
            ("vault", json!({"action": "create", "name": "v"})),
        ),
        mistake(
            "Invalid",
            &["vault", "create", "no/name"],
            ("/v1/vaults", json!({"name": "no/name"})),
            ("vault", json!({"action": "create", "name": "no/name"})),
        ),
        mistake(
            "Denied",
            &["checkpoint", "delete", "owners"],
            (at("/checkpoints/delete"), json!({"name": "owners"})),
            ("checkpoint", json!({"action": "delete", "name": "owners"})),
        ),
        mistake(
            "Conflict",
            &["checkpoint", "restore", "owners"],
            (at("/checkpoints/restore"), json!({"name": "owners"})),
            ("checkpoint", json!({"action": "restore", "name": "owners"})),
        ),
        mistake(
            "Quota",
            &["write", "/big", "one more"],
            (
                at("/files/write"),
                json!({"path": "/big", "content": "one more"}),
            ),
            ("write", json!({"path": "/big", "content": "one more"})),
        ),
        mistake(
            "NeedsApproval",
            &["git", "status", "-C", "/"],
            (at("/git/status"), json!({"path": "/"})),
            (
                "workspace_git_status",
                json!({"workspace_id": "v", "path": "/"}),
            ),
        ),
        mistake(
            "Denied",
            &["git", "diff", "-C", "/"],
            (at("/git/diff"), json!({"path": "/"})),
            ("git_diff", json!({"workspace_id": "v", "path": "/"})),
        ),
        mistake(
            "Denied",
            &["git", "clone", "https://example.org/x.git", "/x"],
            (
                at("/git/clone"),
                json!({"url": "https://example.org/x.git", "path": "/x"}),
            ),
            (
                "git_clone",
                json!({"workspace_id": "v", "url": "https://example.org/x.git"}),
            ),
        ),
    ]
}

fn prepared() -> Home {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    home.ok(&["checkpoint", "save", "owners"]);
    home.ok(&["write", "/f", "the only file"]);
    home.ok(&["quota", "set", "max_files", "1"]);
    let rules = home.path().join("rules.toml");
    let text = "[[rule]]\ncommand = [\"git\", \"status\"]\naction = \"require_approval\"\n\
                [[rule]]\ncommand = [\"git\", \"diff\"]\naction = \"deny\"\n";
    std::fs::write(&rules, text).unwrap();
    home.give(&rules);
    home.ok(&["policy", "edit", "--from", rules.to_str().unwrap()]);
    // Something that is in the way of a restore.
    home.ok(&["job", "start", "--", "sleep", "1000"]);
    home
}

#[test]
fn a_mistake_has_one_kind_wherever_it_is_made() {
    let home = prepared();
    let mut client = Raw::start(&home, &["--toolset", "core,guide"]);
    let mut seen = BTreeSet::new();
    for Mistake {
        kind,
        words,
        http: (address, body),
        tool: (tool, arguments),
    } in mistakes()
    {
        let words = [&["--json"], words].concat();
        let said = home
            .command(&words)
            .env("AVFS_CLASS", "agent")
            .output()
            .unwrap();
        let said: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(said["error"], kind, "{words:?}: {said}");
        let headers = ["avfs-class: agent", "content-type: application/json"];
        let answer = ask(
            &home.socket(),
            &headers,
            ("POST", address),
            body.to_string().as_bytes(),
        );
        let (status, problem) = status_and_body(&answer);
        let problem: Value = serde_json::from_str(&problem).unwrap();
        assert_eq!(problem["kind"], kind, "{address}: {problem}");
        assert_eq!(problem["status"], status, "{address}: {problem}");
        let refused = client.refused(tool, arguments);
        assert_eq!(refused["error"], kind, "{tool}: {refused}");
        assert!(refused["next"].is_string(), "{tool}: {refused}");
        // Only what is asked for by other words may be told in other words.
        if kind != "NeedsApproval" {
            assert_eq!(problem["detail"], said["message"], "{words:?}");
        }
        seen.insert(kind);
    }
    assert_eq!(seen.len(), 7, "{seen:?}");
}
