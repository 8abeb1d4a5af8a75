//! Approvals by the user of an MCP client: only of a client that the owner named as an approver, by its key.
//!
//! Who may lie: an agent without that right whose client can ask its user, brings an answer that nobody asked for, or another
//! client's state; a client that brings its own state back for another call, twice, or altered.

use super::credentials::approvers_key;
use super::{Server, bearer, home, key};
use serde_json::{Value, json};

/// One call of the current era, by a client that can ask its user.
fn call(server: &Server, credential: &str, command: &str, brought: &Value) -> Value {
    let mut params = brought.clone();
    params["name"] = json!("exec");
    params["arguments"] = json!({ "command": command });
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = format!(
        "{credential}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: exec"
    );
    let answer = server.ask(&headers, "POST", "/mcp?vault=v", &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut lines = answer
        .body
        .lines()
        .map(|it| it.strip_prefix("data:").unwrap_or(it));
    let message = lines.find_map(|text| serde_json::from_str::<Value>(text).ok());
    let message = message.unwrap_or_else(|| panic!("{answer:?}"));
    message["result"].clone()
}

fn nothing() -> Value {
    json!({})
}

/// What a client brings back.
fn brings(state: &Value, action: &str, approve: bool) -> Value {
    let response = match action {
        "accept" => json!({ "action": action, "content": { "approve": approve } }),
        action => json!({ "action": action }),
    };
    json!({ "requestState": state, "inputResponses": { "approval": response } })
}

fn waits(result: &Value) -> bool {
    result["resultType"] == "complete" && result["structuredContent"]["status"] == "needs_approval"
}

/// The state of a question that was asked.
fn asked(result: &Value) -> Value {
    assert_eq!(result["resultType"], "input_required", "{result:#}");
    let question = &result["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create", "{result:#}");
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(
        message.contains("touch") && message.contains("vault v"),
        "{message}"
    );
    result["requestState"].clone()
}

/// A server, the credential of a client that is named as an approver, and one of a client that is not.
fn named_and_other() -> (Server, String, String) {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let rules = home.path().join("rules.toml");
    let text = "[[rule]]\ncommand = \"touch\"\naction = \"require_approval\"\n";
    std::fs::write(&rules, text).expect("a file");
    home.give(&rules);
    home.ok(&["policy", "edit", "--from", rules.to_str().expect("a path")]);
    let scopes = ["--scope", "read,write,exec"];
    let words = ["claude", scopes[0], scopes[1], "--asks-user"];
    let refused = home.avfs(&[&["key", "create"], &words[..]].concat());
    assert!(!refused.status.success(), "without a passphrase");
    let named = bearer(&approvers_key(&home, &words));
    let other = bearer(&key(&home, "other", &scopes));
    (Server::start(home, &[]), named, other)
}

#[test]
fn the_user_of_a_named_client_approves_once() {
    let (server, named, _) = named_and_other();
    let question = call(&server, &named, "touch /yes", &nothing());
    let state = asked(&question);
    let done = call(
        &server,
        &named,
        "touch /yes",
        &brings(&state, "accept", true),
    );
    assert_eq!(done["structuredContent"]["exit_code"], 0, "{done:#}");
    assert_eq!(done["structuredContent"]["changed_files"], json!(["/yes"]));
    let journal = |operation: &str| {
        let entries = server.home.json(&["audit", "--operation", operation]);
        entries["entries"][0]["by"].clone()
    };
    assert_eq!(journal("approval.approved"), "owner:claude");
    assert_eq!(journal("exec"), "agent:claude");
    // The same answer again approves nothing.
    let again = call(
        &server,
        &named,
        "touch /yes",
        &brings(&state, "accept", true),
    );
    assert_eq!(again["isError"], true, "{again:#}");
    assert_ne!(again["structuredContent"]["exit_code"], 0, "{again:#}");
}

#[test]
fn a_user_can_say_no_or_nothing() {
    let (server, named, _) = named_and_other();
    for (action, approve, state_then) in [
        ("accept", false, "denied"),
        ("decline", false, "denied"),
        ("cancel", false, "pending"),
    ] {
        let state = asked(&call(&server, &named, "touch /no", &nothing()));
        let id = server.home.json(&["approval", "list"])["approvals"][0]["id"].clone();
        let done = call(
            &server,
            &named,
            "touch /no",
            &brings(&state, action, approve),
        );
        assert_eq!(done["isError"], true, "{action}: {done:#}");
        let all = server.home.json(&["approval", "list", "--all"]);
        let all = all["approvals"].as_array().expect("a list");
        let found = all.iter().find(|it| it["id"] == id).expect("it is listed");
        assert_eq!(found["state"], state_then, "{action}");
        server
            .home
            .avfs(&["approval", "deny", id.as_str().expect("an id")]);
    }
    let state = asked(&call(&server, &named, "touch /no", &nothing()));
    // Without an answer it is asked again.
    asked(&call(
        &server,
        &named,
        "touch /no",
        &json!({ "requestState": state }),
    ));
    assert!(
        !server
            .home
            .avfs(&["--vault", "v", "stat", "/no"])
            .status
            .success()
    );
}

#[test]
fn nobody_else_is_asked_or_believed() {
    let (server, named, other) = named_and_other();
    assert!(waits(&call(&server, &other, "touch /x", &nothing())));
    let state = asked(&call(&server, &named, "touch /x", &nothing()));
    for brought in [
        brings(&state, "accept", true),
        brings(&json!("made up"), "accept", true),
        json!({ "inputResponses": { "approval": { "action": "accept", "content": { "approve": true } } } }),
    ] {
        let result = call(&server, &other, "touch /x", &brought);
        assert!(waits(&result), "{brought}: {result:#}");
    }
    // The key itself approves nothing: only what its user says in the client does.
    let waiting = server.home.json(&["approval", "list"]);
    let id = &waiting["approvals"][0]["id"];
    let shown = json!({ "id": id, "shown": "x" }).to_string();
    let refused = server.ask(&named, "POST", "/v1/approvals/approve", &shown);
    assert_eq!(refused.status, 403, "{refused:?}");
    // A state is for the call that it was made for, as it was made.
    let altered = state.as_str().expect("a text").replace("claude", "clause");
    for (command, brought) in [
        ("touch /y", brings(&state, "accept", true)),
        ("touch /x", brings(&json!(altered), "accept", true)),
        ("touch /x", brings(&json!(""), "accept", true)),
    ] {
        let result = call(&server, &named, command, &brought);
        assert_eq!(result["isError"], true, "{brought}: {result:#}");
        assert!(
            result.to_string().contains("Invalid"),
            "{brought}: {result:#}"
        );
    }
    for path in ["/x", "/y"] {
        assert!(
            !server
                .home
                .avfs(&["--vault", "v", "stat", path])
                .status
                .success()
        );
    }
}
