//! Compatibility modes: a vault says whose agent works in it, and everything follows from that word.

use crate::AVFS;
use crate::raw::Raw;
use avfs_testkit::{Home, ask, status_and_body, with_vault};
use serde_json::{Value, json};

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{answer}")).iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The tools that `avfs mcp WORDS` offers.
fn offered(home: &Home, words: &[&str]) -> Vec<String> {
    let mut client = Raw::start(home, words);
    names(&client.request("tools/list", json!({})))
}

/// The tools that `/mcp` offers.
fn offered_by_http(home: &Home, query: &str) -> Vec<String> {
    let version = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": version}});
    let headers = [
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/list",
    ];
    let address = format!("/mcp{query}");
    let answer = ask(
        &home.socket(),
        &headers,
        ("POST", &address),
        body.to_string().as_bytes(),
    );
    let (status, body) = status_and_body(&answer);
    assert_eq!(status, 200, "{body}");
    let mut data = body
        .lines()
        .map(|it| it.strip_prefix("data:").unwrap_or(it));
    let found = data.find_map(|text| serde_json::from_str::<Value>(text).ok());
    names(&found.unwrap_or_else(|| panic!("{body}")))
}

#[test]
fn a_mode_is_a_set_of_settings() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "set", "mode=gemini"]);
        let info = home.json(&["vault", "info"]);
        assert_eq!(info["settings"], json!({"mode": "gemini"}));
        assert_eq!(info["mode"]["profile"], "moderate");
        assert_eq!(info["mode"]["toolset"], "core");
        assert_eq!(info["mode"]["env"]["SANDBOX"], "avfs");
        let limits = info["limits"].to_string();
        assert!(limits.contains(r#""source":"vault""#), "{limits}");
        let shown = home.ok(&["vault", "info"]);
        assert!(
            shown.contains("gemini: profile moderate, timeout 300s"),
            "{shown}"
        );
        let ran = home.shell("echo $SANDBOX $GEMINI_CLI");
        assert_eq!(ran["result"]["stdout"], "avfs 1\n", "{ran:#}");
        assert_eq!(ran["request"]["profile"], "moderate");
        home.ok(&[
            "vault",
            "set",
            "mode=codex",
            "env.CODEX_SANDBOX_NETWORK_DISABLED=own",
        ]);
        let ran = home.shell("echo $SANDBOX$CODEX_SANDBOX_NETWORK_DISABLED");
        assert_eq!(ran["result"]["stdout"], "own\n", "the vault goes first");
        assert_eq!(ran["request"]["timeout"], json!({"millis": 60_000}));
        assert_eq!(ran["request"]["profile"], "restrictive");
        // No mode gives a network; with one that the owner gives, the variable does not say that there is none.
        assert_eq!(home.json(&["vault", "info"])["mode"]["network"], "none");
        assert_eq!(home.json(&["network", "show"])["network"], "none");
        home.ok(&["vault", "unset", "env.CODEX_SANDBOX_NETWORK_DISABLED"]);
        let variable = ["--shell", "echo $CODEX_SANDBOX_NETWORK_DISABLED"];
        let said = |words: &[&str]| {
            let words = [&["exec"], words, &variable].concat();
            home.json(&words)["result"]["stdout"].clone()
        };
        assert_eq!(said(&[]), "1\n");
        assert_eq!(said(&["--network", "a.example.test"]), "\n");
        // A fork has the settings of its source.
        home.ok(&["vault", "fork", "v", "f"]);
        assert_eq!(home.json(&["vault", "info", "f"])["mode"]["name"], "codex");
        home.ok(&["vault", "unset", "mode"]);
        assert!(home.json(&["vault", "info"]).get("mode").is_none());
        assert_eq!(home.refused(&["vault", "set", "mode=other"]).0, "Invalid");
        let agent = home
            .command(&["--json", "vault", "set", "mode=claude"])
            .env("AVFS_CLASS", "agent")
            .output()
            .unwrap();
        let agent: Value = serde_json::from_slice(&agent.stdout).unwrap();
        assert_eq!(agent["error"], "Denied", "{agent}");
    });
}

#[test]
fn a_mode_names_the_tools_of_clients_that_name_none() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    home.ok(&["vault", "create", "plain"]);
    home.ok(&["vault", "set", "mode=agentkernel"]);
    let has = |tools: &[String], name: &str| tools.iter().any(|it| it == name);
    let tools = offered(&home, &[]);
    assert!(
        has(&tools, "sandbox_run") && !has(&tools, "exec"),
        "{tools:?}"
    );
    assert!(has(&offered(&home, &["--toolset", "core"]), "exec"));
    assert!(has(&offered(&home, &["--vault", "plain"]), "exec"));
    assert!(has(&offered(&home, &["--vault", "nowhere"]), "exec"));
    // Whoever may not look at a vault does not learn its mode.
    assert!(has(
        &offered(&home, &["--vault", "v", "--only", "plain"]),
        "exec"
    ));
    assert!(has(&offered_by_http(&home, "?vault=v"), "sandbox_run"));
    assert!(has(
        &offered_by_http(&home, "?vault=v&toolset=core"),
        "exec"
    ));
    assert!(has(&offered_by_http(&home, "?vault=plain"), "exec"));
}

#[test]
fn a_sandbox_of_agentkernel_has_the_mode_that_is_asked_for() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let mut client = Raw::start(&home, &["--toolset", "sandbox"]);
    let script = "echo $CLAUDECODE$CODEX_SANDBOX_NETWORK_DISABLED$SANDBOX";
    for (mode, said) in [
        ("native", "\n"),
        ("claude", "1\n"),
        ("codex", "1\n"),
        ("gemini", "avfs\n"),
    ] {
        let arguments = json!({"command": script, "compatibility_mode": mode});
        let ran = client.call("sandbox_run", arguments);
        assert_eq!(ran["output"], said, "{mode}: {ran}");
    }
    let refused = client.refused(
        "sandbox_run",
        json!({"command": "true", "compatibility_mode": "x"}),
    );
    assert_eq!(refused["error"], "Invalid", "{refused}");
}
