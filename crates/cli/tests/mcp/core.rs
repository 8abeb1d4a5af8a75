//! The core tools, one by one.

use crate::AVFS;
use crate::raw::Raw;
use avfs_testkit::{Home, leftover_processes, process_ends, wait_for};
use serde_json::{Value, json};
use std::time::Duration;

/// More than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn with_vault(check: impl Fn(&Home)) {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        check(&home);
    }
}

#[test]
fn every_core_tool_does_what_it_says() {
    with_vault(|home| {
        let mut client = Raw::start(home, &["--agent", "tester"]);
        let said = client.call(
            "exec",
            json!({"command": "echo hi; echo no >&2; mkdir d; echo 1 > d/a; exit 3"}),
        );
        assert_eq!(said["status"], "exited");
        assert_eq!(said["exit_code"], 3);
        assert_eq!(
            (&said["stdout"], &said["stderr"]),
            (&json!("hi\n"), &json!("no\n"))
        );
        assert_eq!(said["changed_files"], json!(["/d", "/d/a"]));
        let written = client.call(
            "write",
            json!({"path": "/x/y.txt", "content": "one\ntwo\n"}),
        );
        assert_eq!(written["size"], 8);
        let edited = client.call(
            "edit",
            json!({"path": "/x/y.txt", "old": "two", "new": "three"}),
        );
        assert_eq!(edited["replacements"], 1);
        assert_eq!(
            client.call("read", json!({"path": "/x/y.txt"}))["content"],
            "one\nthree\n"
        );
        let listed = client.call("read", json!({"path": "/"}));
        let names: Vec<&str> = listed["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert!(names.contains(&"x") && names.contains(&"d"), "{listed}");
        let found = client.call("search", json!({"pattern": "^thr"}));
        assert_eq!(found["matches"][0]["path"], "/x/y.txt");
        assert_eq!(found["matches"][0]["line"], 2);
        assert_eq!(
            client.call("search", json!({"name": "*.txt"}))["matches"][0]["path"],
            "/x/y.txt"
        );
        client.call("checkpoint", json!({"action": "save", "name": "here"}));
        client.call(
            "exec",
            json!({"command": "rm -r /x", "cwd": "/d", "env": {"A": "b"}}),
        );
        let changed = client.call(
            "checkpoint",
            json!({"action": "diff", "name": "here", "patch": true}),
        );
        assert!(
            changed["patch"].as_str().unwrap().contains("-three"),
            "{changed}"
        );
        client.call("checkpoint", json!({"action": "restore", "name": "here"}));
        assert_eq!(
            client.call("read", json!({"path": "/x/y.txt"}))["content"],
            "one\nthree\n"
        );
        client.call("vault", json!({"action": "fork", "name": "f"}));
        client.call(
            "write",
            json!({"vault": "f", "path": "/only", "content": "f"}),
        );
        let missing = client.refused("read", json!({"path": "/only"}));
        assert_eq!(missing["error"], "NotFound", "{missing}");
        assert!(missing["next"].is_string());
        let vaults = client.call("vault", json!({"action": "list"}));
        assert_eq!(vaults["vaults"].as_array().unwrap().len(), 2);
        client.call("vault", json!({"action": "delete", "vault": "f"}));
        let journal = home.json(&["audit", "--limit", "200"]);
        assert!(journal.to_string().contains("agent:tester"), "{journal}");
        assert_eq!(client.close(), 0);
    });
}

#[test]
fn a_job_outlives_its_client_and_is_found_by_the_next() {
    with_vault(|home| {
        let mut client = Raw::start(home, &["--agent", "a"]);
        let script = "echo begun; while [ ! -e /go ]; do sleep 0.05; done; echo ended";
        let started = client.call("exec", json!({"command": script, "background": true}));
        let job = started["job_id"].clone();
        let pid = client.child.id();
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        assert!(process_ends(pid, PATIENCE));
        let mut next = Raw::start(home, &["--agent", "a"]);
        let listed = next.call("job", json!({"action": "list"}));
        assert_eq!(listed["jobs"][0]["job_id"], job, "{listed}");
        assert_eq!(listed["jobs"][0]["running"], true);
        next.call("write", json!({"path": "/go", "content": ""}));
        let mut waited = Value::Null;
        for _ in 0..4 {
            waited = next.call("job", json!({"action": "wait", "job_id": job}));
            if waited["running"] == false {
                break;
            }
        }
        assert_eq!(waited["exit_code"], 0, "{waited}");
        assert_eq!(waited["stdout"], "begun\nended\n");
        home.ok(&["fsck"]);
    });
}

#[test]
fn cancelling_ends_the_command_and_the_journal_says_so() {
    with_vault(|home| {
        let mut client = Raw::start(home, &[]);
        let params = json!({
            "name": "exec",
            "arguments": {"command": "echo on; sleep 987.654"},
            "_meta": {"progressToken": "p"},
        });
        let id = client.ask("tools/call", params);
        let is_asleep = || !leftover_processes("987.654").is_empty();
        assert!(wait_for(PATIENCE, is_asleep));
        let progress = client.next().unwrap();
        assert_eq!(progress["method"], "notifications/progress", "{progress}");
        assert_eq!(progress["params"]["progressToken"], "p");
        assert_eq!(progress["params"]["message"], "on\n", "live output");
        // Of others' requests nothing is known here: an id that is not ours does nothing.
        for other in [json!(424_242), json!("x")] {
            let cancel = json!({"requestId": other});
            client.send(
                &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}),
            );
        }
        client.call("read", json!({"path": "/"}));
        assert!(is_asleep(), "what was sent before has been heard");
        let cancel = json!({"requestId": id});
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}),
        );
        assert!(wait_for(PATIENCE, || leftover_processes("987.654").is_empty()));
        let said = client.call("exec", json!({"command": "echo still here"}));
        assert_eq!(said["stdout"], "still here\n");
        assert!(wait_for(PATIENCE, || home
            .json(&["audit"])
            .to_string()
            .contains("cancelled")));
    });
}

#[test]
fn long_output_is_cut_and_the_rest_can_be_read_and_searched() {
    with_vault(|home| {
        let mut client = Raw::start(home, &[]);
        let said = client.call(
            "exec",
            json!({"command": "seq 1 200000", "max_tokens": 500}),
        );
        let text = said["stdout"].as_str().unwrap();
        assert!(text.len() < 4_000, "{}", text.len());
        assert!(
            text.starts_with("1\n2\n") && text.ends_with("199999\n200000\n"),
            "{text}"
        );
        assert!(text.contains("left out"), "{text}");
        let exec = said["exec"].clone();
        let rest = client.call(
            "read",
            json!({"exec": exec, "offset": 500_000, "limit": 100}),
        );
        assert_eq!(rest["content"].as_str().unwrap().len(), 100, "{rest}");
        let found = client.call("search", json!({"exec": exec, "pattern": "123456"}));
        assert_eq!(found["matches"][0]["line"], 123_456, "{found}");
    });
}

#[test]
fn approvals_go_to_the_queue_and_an_agent_cannot_give_them() {
    with_vault(|home| {
        let rules = home.path().join("rules.toml");
        std::fs::write(
            &rules,
            "[[rule]]\ncommand = \"touch\"\naction = \"require_approval\"\n",
        )
        .unwrap();
        home.ok(&["policy", "edit", "--from", rules.to_str().unwrap()]);
        let mut client = Raw::start(home, &[]);
        let id = client.ask_tool("exec", json!({"command": "touch /x"}));
        let answer = client.answer(id);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let said = &answer["result"]["structuredContent"];
        assert_eq!(said["status"], "needs_approval");
        let approval = said["approval_id"].as_str().unwrap();
        assert!(said["next"].as_str().unwrap().contains(approval));
        let tools = client.request("tools/list", json!({}));
        assert!(!tools.to_string().contains("approve"), "no tool approves");
        let again = json!({"command": "touch /x", "approval": approval});
        let id = client.ask_tool("exec", again);
        assert_eq!(client.answer(id)["result"]["isError"], true);
        let listed = client.request("resources/read", json!({"uri": "avfs://approvals"}));
        assert!(listed.to_string().contains(approval), "{listed}");
    });
}

/// Nobody named these clients as approvers, so their users are not asked, and what they bring unasked is not looked at.
#[test]
fn a_client_that_can_ask_its_user_is_not_asked() {
    with_vault(|home| {
        let rules = home.path().join("rules.toml");
        let text = "[[rule]]\ncommand = \"touch\"\naction = \"require_approval\"\n";
        std::fs::write(&rules, text).unwrap();
        home.give(&rules);
        home.ok(&["policy", "edit", "--from", rules.to_str().unwrap()]);
        let able = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}});
        let mut client = Raw::able(home, &[], &able);
        let id = client.ask_tool("exec", json!({"command": "touch /x"}));
        let answer = client.answer(id);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(client.told.is_empty(), "{:?}", client.told);
        let mut client = Raw::silent(home, &[]);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": able,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        });
        let yes = json!({"action": "accept", "content": {"approve": true}});
        for brought in [
            json!({}),
            json!({"inputResponses": {"approval": yes}, "requestState": "mine"}),
        ] {
            let mut params = brought.clone();
            params["name"] = json!("exec");
            params["arguments"] = json!({"command": "touch /x"});
            params["_meta"] = meta.clone();
            let answer = client.request("tools/call", params);
            let result = &answer["result"];
            assert_eq!(result["resultType"], "complete", "{answer}");
            assert_eq!(
                result["structuredContent"]["status"], "needs_approval",
                "{answer}"
            );
            assert!(client.told.is_empty(), "{:?}", client.told);
        }
        assert!(!home.avfs(&["stat", "/x"]).status.success());
        let waiting = home.json(&["approval", "list"]);
        let states = waiting["approvals"].as_array().unwrap().iter();
        assert!(states.clone().count() > 0);
        assert!(
            states.clone().all(|it| it["state"] == "pending"),
            "{waiting}"
        );
    });
}

#[test]
fn resources_and_prompts_are_there() {
    with_vault(|home| {
        let mut client = Raw::start(home, &["--vault", "v"]);
        client.call("write", json!({"path": "/a b.txt", "content": "text"}));
        let long = json!({"command": "seq 20000", "max_tokens": 200});
        let long = client.call("exec", long)["exec"].clone();
        let exec = long.as_str().unwrap();
        let started = json!({"command": "exit 3", "background": true});
        let job = client.call("exec", started)["job_id"].clone();
        client.call("job", json!({"action": "wait", "job_id": job}));
        let mut read = |uri: &str| client.request("resources/read", json!({"uri": uri}));
        let file = read("avfs://vault/v/file/a%20b.txt");
        assert_eq!(file["result"]["contents"][0]["text"], "text", "{file}");
        let diff = read("avfs://vault/v/diff/BASE/HEAD");
        assert!(
            diff["result"]["contents"][0]["text"]
                .as_str()
                .unwrap()
                .contains("+text"),
            "{diff}"
        );
        let envelope = read(&format!("avfs://job/{job}"));
        let envelope = envelope["result"]["contents"][0]["text"].as_str().unwrap();
        let envelope: Value = serde_json::from_str(envelope).unwrap();
        let envelope = &envelope["envelope"];
        assert_eq!(envelope["kind"], "proxy_exec_result", "{envelope}");
        assert_eq!(envelope["result"]["exit_code"], 3, "{envelope}");
        let recorded = read(&format!("avfs://exec/{exec}"));
        let recorded = recorded["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(recorded.contains("seq 20000"), "{recorded}");
        let output = read(&format!("avfs://exec/{exec}/stdout"));
        let output = output["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(output.starts_with("1\n2\n3\n"), "{output}");
        for bad in [
            "avfs://vault/v/file/none",
            "avfs://x",
            "file:///etc/passwd",
            "avfs://vault/v/file/..%2f..%2fetc/passwd",
        ] {
            let refused = read(bad);
            assert!(refused["error"]["code"].is_number(), "{bad}: {refused}");
        }
        let prompts = client.request("prompts/list", json!({}));
        for prompt in prompts["result"]["prompts"].as_array().unwrap() {
            let get = json!({"name": prompt["name"], "arguments": {"task": "TASK-7"}});
            let got = client.request("prompts/get", get);
            assert!(got.to_string().contains("TASK-7"), "{got}");
        }
    });
}

#[test]
fn a_daemon_that_ends_leaves_no_client_waiting() {
    with_vault(|home| {
        let mut client = Raw::start(home, &[]);
        client.call("exec", json!({"command": "true"}));
        // One that has not begun, but is connected.
        let mut fresh = Raw::silent(home, &[]);
        assert!(fresh.request("ping", json!({}))["result"].is_object());
        home.ok(&["daemon", "stop"]);
        assert!(client.next().is_none(), "its output ends");
        assert!(!client.child.wait().unwrap().success(), "it says so");
        assert!(fresh.next().is_none());
        let mut next = Raw::start(home, &[]);
        next.call("exec", json!({"command": "true"}));
    });
}

#[test]
fn many_clients_share_one_daemon() {
    with_vault(|home| {
        let mut clients: Vec<Raw> = (0..8).map(|_| Raw::start(home, &[])).collect();
        let asked: Vec<u64> = clients
            .iter_mut()
            .map(|client| client.ask_tool("exec", json!({"command": "echo $$ > /f; echo ok"})))
            .collect();
        for (client, id) in clients.iter_mut().zip(asked) {
            let answer = client.answer(id);
            assert_eq!(
                answer["result"]["structuredContent"]["stdout"], "ok\n",
                "{answer}"
            );
        }
        home.ok(&["fsck"]);
    });
}
