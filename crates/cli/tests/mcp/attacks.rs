//! Clients that mean harm, or are broken.

use crate::AVFS;
use crate::raw::Raw;
use avfs_testkit::Home;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;

fn home() -> Home {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    home
}

#[test]
fn nonsense_is_refused_and_the_next_request_is_served() {
    let home = home();
    let mut client = Raw::start(&home, &[]);
    let lines: [&[u8]; 6] = [
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"tools/call\",\"params\":{\"name\":7}}",
        b"null",
    ];
    for line in lines {
        client.send_line(line);
    }
    let said = client.call("exec", json!({"command": "echo fine"}));
    assert_eq!(said["stdout"], "fine\n");
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    client.send_line(deep.as_bytes());
    client.send_line(&vec![b'x'; 9 << 20]);
    assert_eq!(
        client.call("read", json!({"path": "/"}))["entries"],
        json!([])
    );
    assert!(
        client
            .told
            .iter()
            .any(|it| it["error"]["message"].to_string().contains("at most"))
    );
}

#[test]
fn unknown_arguments_and_tools_are_refused() {
    let home = home();
    let mut client = Raw::start(&home, &[]);
    let tools = client.request("tools/list", json!({}));
    for tool in tools["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let schema = &tool["inputSchema"];
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let mut arguments = json!({"no_such_argument": 1});
        for required in schema["required"].as_array().into_iter().flatten() {
            let key = required.as_str().unwrap();
            let words = &schema["properties"][key]["enum"];
            arguments[key] = words.get(0).cloned().unwrap_or_else(|| json!("x"));
        }
        let refused = client.refused(name, arguments);
        assert_eq!(refused["error"], "Invalid", "{name}: {refused}");
        assert!(
            refused["message"].to_string().contains("no_such_argument"),
            "{name}: {refused}"
        );
    }
    let unknown = client.request(
        "tools/call",
        json!({"name": "approval_approve", "arguments": {}}),
    );
    assert!(unknown["error"]["code"].is_number(), "{unknown}");
    let method = client.request("avfs/do_it", json!({}));
    assert!(method["error"]["code"].is_number(), "{method}");
}

#[test]
fn a_client_cannot_reach_beyond_what_it_was_given() {
    let home = home();
    home.ok(&["vault", "create", "secret"]);
    home.ok(&["--vault", "secret", "write", "/s", "top"]);
    let mut client = Raw::start(&home, &["--only", "v", "--vault", "v"]);
    let calls = [
        ("exec", json!({"vault": "secret", "command": "cat /s"})),
        ("read", json!({"vault": "secret", "path": "/s"})),
        (
            "write",
            json!({"vault": "secret", "path": "/s", "content": ""}),
        ),
        ("search", json!({"vault": "secret", "pattern": "."})),
        (
            "vault",
            json!({"action": "fork", "vault": "secret", "name": "mine"}),
        ),
        (
            "checkpoint",
            json!({"action": "diff", "name": "vault:secret"}),
        ),
        ("checkpoint", json!({"action": "list", "vault": "secret"})),
    ];
    for (name, arguments) in calls {
        let refused = client.refused(name, arguments.clone());
        assert_eq!(refused["error"], "Denied", "{name} {arguments}: {refused}");
    }
    let listed = client.call("vault", json!({"action": "list"})).to_string();
    assert!(
        listed.contains("\"v\"") && !listed.contains("secret"),
        "{listed}"
    );
    let file = client.request(
        "resources/read",
        json!({"uri": "avfs://vault/secret/file/s"}),
    );
    assert!(
        file["error"].is_object() && !file.to_string().contains("top"),
        "{file}"
    );
    let mut reader = Raw::start(&home, &["--scopes", "read"]);
    let refused = reader.refused("exec", json!({"command": "true"}));
    assert_eq!(refused["error"], "Denied", "{refused}");
    assert!(!home.avfs(&["mcp", "--toolset", "all"]).status.success());
}

#[test]
fn a_flood_of_calls_is_answered_one_by_one_or_refused() {
    let home = home();
    let mut client = Raw::start(&home, &[]);
    let mut flood: BTreeSet<u64> = (10_000..12_000).collect();
    let mut input = client.take_input();
    let calls = flood.clone();
    let writing = std::thread::spawn(move || {
        for id in calls {
            writeln!(input, "{}", read_top(id)).unwrap();
        }
        input
    });
    let mut refused = 0;
    while !flood.is_empty() {
        let answer = client.next().expect("an answer to each");
        flood.remove(&answer["id"].as_u64().unwrap());
        refused += usize::from(answer["result"]["isError"] == true);
    }
    assert!(refused < 2_000, "some were served");
    client.give_input(writing.join().unwrap());
    let said = client.call("exec", json!({"command": "echo still"}));
    assert_eq!(said["stdout"], "still\n");
}

fn read_top(id: u64) -> Value {
    let params = json!({"name": "read", "arguments": {"path": "/"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[test]
fn who_does_not_read_is_not_listened_to_and_keeps_nobody_out() {
    let home = home();
    let mut silent = Raw::start(&home, &[]);
    let mut input = silent.take_input();
    // It ends when the program is killed: nobody takes all of this.
    let writing = std::thread::spawn(move || {
        let call = read_top(1).to_string();
        let mut sent = 0_u64;
        while sent < 1 << 30 && writeln!(input, "{call}").is_ok() {
            sent += call.len() as u64;
        }
        sent
    });
    let mut other = Raw::start(&home, &[]);
    for _ in 0..20 {
        let said = other.call("exec", json!({"command": "echo served"}));
        assert_eq!(said["stdout"], "served\n");
    }
    let pid = home.json(&["daemon", "status"])["pid"].as_u64().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let resident: u64 = resident.trim().split(' ').next().unwrap().parse().unwrap();
    assert!(resident < 150 << 10, "{resident} KiB");
    drop(silent);
    assert!(writing.join().unwrap() < 64 << 20, "it was not taken in");
}

#[test]
fn what_a_command_writes_cannot_be_taken_for_a_message() {
    let home = home();
    let mut client = Raw::start(&home, &[]);
    let forged = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
    let script = format!("printf '\\n%s\\n\\033[2J\\007\\000\\r' '{forged}'");
    let said = client.call("exec", json!({"command": script}));
    assert!(said["stdout"].as_str().unwrap().contains(forged), "{said}");
    assert!(client.told.is_empty(), "{:?}", client.told);
}

#[test]
fn the_class_of_an_agent_cannot_be_shed() {
    let home = home();
    let mut client = Raw::start(&home, &[]);
    client.call("exec", json!({"command": "echo x > /f"}));
    let journal = home.json(&["audit", "--limit", "50"]);
    let entries: Vec<&Value> = journal["entries"].as_array().unwrap().iter().collect();
    let by_agent = entries
        .iter()
        .any(|it| it["by"] == "agent" && it["exec"].is_string());
    assert!(by_agent, "{journal}");
}
