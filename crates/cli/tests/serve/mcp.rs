//! MCP on the network: the same credentials and guards as everywhere, and sessions that end with their key.

use super::{Answer, Server, bearer, home, key};
use avfs_api::bounds::MCP_LINE_MAX;
use avfs_testkit::wait_for;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MESSAGE: &str =
    "content-type: application/json\r\naccept: application/json, text/event-stream";
const UPGRADE: &str = "connection: upgrade\r\nupgrade: avfs-mcp";

fn call(id: u64, name: &str, arguments: &Value) -> String {
    let params = json!({ "name": name, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// Calls a tool by streamable HTTP.
fn ask(server: &Server, headers: &str, name: &str, arguments: &Value) -> Answer {
    let headers = match headers {
        "" => MESSAGE.to_owned(),
        headers => format!("{headers}\r\n{MESSAGE}"),
    };
    server.ask(&headers, "POST", "/mcp?vault=v", &call(1, name, arguments))
}

/// What a tool answered.
fn said(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    let data = answer
        .body
        .lines()
        .filter_map(|it| it.strip_prefix("data:"));
    let mut data = data.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let message = data.find(|it| it["id"] == 1);
    message.unwrap_or_else(|| panic!("{answer:?}"))["result"].clone()
}

/// The kind of error that a tool answered with.
fn refused(answer: &Answer) -> String {
    let said = said(answer);
    assert_eq!(said["isError"], true, "{said}");
    let text = said["content"][0]["text"].as_str().expect("a text");
    let problem: Value = serde_json::from_str(text).expect("JSON");
    problem["error"].as_str().expect("a kind").to_owned()
}

/// A connection that was turned into lines, past the handshake.
struct Session {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Session {
    fn open(server: &Server, key: &str) -> Session {
        let (mut stream, host) = (server.connect(), server.address);
        let head = format!(
            "POST /mcp/lines?vault=v HTTP/1.1\r\nhost: {host}\r\n{}\r\n{UPGRADE}\r\n\r\n",
            bearer(key)
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        let lines = BufReader::new(stream.try_clone().expect("a socket"));
        let mut session = Session { stream, lines };
        let first = session.line();
        assert!(first.starts_with("HTTP/1.1 101 "), "{first}");
        while session.line() != "\r\n" {}
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "raw", "version": "1" },
        });
        session.send(
            &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
                .to_string(),
        );
        assert!(session.line().contains("agentvfs"));
        session.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        session
    }

    fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stream.write_all(line.as_bytes()).expect("it listens");
    }

    /// The next line; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("an answer in time");
        line
    }
}

#[test]
fn without_a_good_key_there_is_no_mcp() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let good = key(&home, "good", &["--scope", "read"]);
    let revoked = key(&home, "revoked", &["--scope", "read,write,exec"]);
    home.ok(&["key", "revoke", "revoked"]);
    let server = Server::start(home, &[]);
    let read = json!({ "path": "/" });
    assert_ne!(
        said(&ask(&server, &bearer(&good), "read", &read))["isError"],
        true
    );
    for shown in [
        String::new(),
        bearer("avfs_000000000000_00"),
        bearer(&revoked),
        "avfs-class: owner\r\navfs-name: good".to_owned(),
    ] {
        let with = |more: &str| match shown.as_str() {
            "" => more.to_owned(),
            shown => format!("{shown}\r\n{more}"),
        };
        let line = call(1, "read", &read);
        for (method, address, headers) in [
            ("POST", "/mcp", with(MESSAGE)),
            ("GET", "/mcp", with(MESSAGE)),
            ("DELETE", "/mcp", with(MESSAGE)),
            ("OPTIONS", "/mcp", with(MESSAGE)),
            ("POST", "/mcp/lines", with(UPGRADE)),
        ] {
            let answer = server.ask(&headers, method, address, &line);
            assert_eq!(answer.status, 401, "{shown} {method} {address}: {answer:?}");
            assert!(answer.has("www-authenticate: bearer"), "{answer:?}");
        }
    }
}

#[test]
fn other_hosts_pages_and_large_messages_are_refused_at_mcp() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let good = key(&home, "good", &["--scope", "read,write,exec"]);
    let server = Server::start(home, &[]);
    for foreign in [
        "host: evil.example",
        "origin: http://evil.example",
        "origin: null",
    ] {
        for (address, more) in [("/mcp", MESSAGE), ("/mcp/lines", UPGRADE)] {
            let headers = format!("{}\r\n{foreign}\r\n{more}", bearer(&good));
            let line = call(1, "read", &json!({ "path": "/" }));
            let answer = server.ask(&headers, "POST", address, &line);
            assert_eq!(answer.status, 403, "{address} {foreign}: {answer:?}");
        }
    }
    let large = json!({ "path": "/f", "content": "x".repeat(MCP_LINE_MAX) });
    let answer = ask(&server, &bearer(&good), "write", &large);
    assert_eq!(answer.status, 413, "{}", answer.head);
    let other = format!("{}\r\navfs-name: somebody", bearer(&good));
    let answer = ask(&server, &other, "read", &json!({ "path": "/" }));
    assert_eq!(answer.status, 403, "{answer:?}");
}

#[test]
fn an_agent_has_what_its_key_was_given_and_no_more() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    home.ok(&["vault", "create", "secret"]);
    home.ok(&["--vault", "secret", "write", "/s", "top"]);
    let reader = bearer(&key(&home, "reader", &["--scope", "read"]));
    let only = ["--scope", "read,write,exec", "--vault", "v"];
    let only = bearer(&key(&home, "only", &only));
    let all = ["--scope", "read,write,exec,admin"];
    let boss = bearer(&key(&home, "boss", &all));
    let server = Server::start(home, &[]);
    let run = json!({ "command": "echo made > /f" });
    assert_eq!(refused(&ask(&server, &reader, "exec", &run)), "Denied");
    let write = json!({ "path": "/f", "content": "x" });
    assert_eq!(refused(&ask(&server, &reader, "write", &write)), "Denied");
    assert_ne!(said(&ask(&server, &only, "exec", &run))["isError"], true);
    for (name, arguments) in [
        ("read", json!({ "vault": "secret", "path": "/s" })),
        ("exec", json!({ "vault": "secret", "command": "cat /s" })),
        (
            "vault",
            json!({ "action": "fork", "vault": "v", "name": "other" }),
        ),
    ] {
        let answer = ask(&server, &only, name, &arguments);
        assert_eq!(refused(&answer), "Denied", "{name} {arguments}");
    }
    let fewer = format!("{only}\r\navfs-scopes: read,admin");
    assert_eq!(refused(&ask(&server, &fewer, "exec", &run)), "Denied");
    // Also a key of the owner's class is an agent's here, whatever it says.
    let loud = format!("{boss}\r\navfs-class: owner");
    assert_ne!(said(&ask(&server, &loud, "exec", &run))["isError"], true);
    let counted = server.ask(&boss, "GET", "/metrics", "");
    for line in [
        r#"avfs_requests_total{operation="exec",status="200"} 2"#,
        r#"avfs_requests_total{operation="exec",status="403"} 3"#,
    ] {
        assert!(counted.body.contains(line), "{line}\n{}", counted.body);
    }
    let journal = server.home.json(&["audit", "--limit", "50"]);
    let entries = journal["entries"].as_array().expect("entries");
    let by = |who: &str| entries.iter().any(|it| it["by"] == who);
    assert!(by("agent:only") && by("agent:boss"), "{journal:#}");
    let as_owner = entries
        .iter()
        .any(|it| it["by"] == "owner:boss" || it["by"] == "owner:only");
    assert!(!as_owner, "{journal:#}");
}

#[test]
fn revoking_a_key_ends_its_sessions_and_their_commands() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    home.ok(&["write", "/big", &"many words\n".repeat(5_000)]);
    let runner = key(&home, "runner", &["--scope", "read,exec"]);
    let other = key(&home, "other", &["--scope", "read,exec"]);
    let server = Server::start(home, &[]);
    let mut idle = Session::open(&server, &runner);
    let mut stays = Session::open(&server, &other);
    let mut busy = Session::open(&server, &runner);
    busy.send(&call(1, "exec", &json!({ "command": "sleep 86.4322" })));
    let running = || server.home.json(&["daemon", "status"])["running_execs"].clone();
    assert!(wait_for(Duration::from_secs(60), || running() == 1));
    // One that reads nothing, so that the daemon cannot write.
    let deaf = Session::open(&server, &runner);
    let mut stream = deaf.stream.try_clone().expect("a socket");
    let sent = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&sent);
    let writing = std::thread::spawn(move || {
        let line = format!("{}\n", call(1, "read", &json!({ "path": "/big" })));
        loop {
            if let Err(error) = stream.write_all(line.as_bytes()) {
                return error.kind();
            }
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    // Until nothing is taken any more, because the answers have no room.
    assert!(wait_for(super::PATIENCE, || {
        let before = sent.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_secs(1));
        sent.load(Ordering::Relaxed) == before
    }));
    server.home.ok(&["key", "revoke", "runner"]);
    for session in [&mut idle, &mut busy] {
        let mut rest = Vec::new();
        // A connection that is cut and one that is closed are both over.
        let ended = session.lines.read_to_end(&mut rest);
        let in_time = ended.map_or_else(|error| error.kind() != ErrorKind::WouldBlock, |_| true);
        assert!(in_time);
        assert!(!String::from_utf8_lossy(&rest).contains("exit_code"));
    }
    assert_ne!(writing.join().expect("it ends"), ErrorKind::WouldBlock);
    assert!(wait_for(Duration::from_secs(60), || running() == 0));
    stays.send(&call(1, "exec", &json!({ "command": "echo still" })));
    assert!(stays.line().contains("still"));
}

#[test]
fn a_session_keeps_its_place_and_its_keys_rate() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let good = key(&home, "good", &["--scope", "read,exec"]);
    let slow = key(&home, "slow", &["--scope", "read", "--rate", "1"]);
    let server = Server::start(home, &[]);
    let mut session = Session::open(&server, &good);
    // More than there are places: those that lie idle make room, a session does not.
    let silent: Vec<TcpStream> = (0..300).map(|_| server.connect()).collect();
    assert_eq!(server.ask("", "GET", "/healthz", "").status, 200);
    session.send(&call(1, "exec", &json!({ "command": "echo here" })));
    assert!(session.line().contains("here"));
    drop(silent);
    let mut fast = Session::open(&server, &slow);
    let count = 100;
    for id in 1..=count {
        fast.send(&call(id, "read", &json!({ "path": "/" })));
    }
    let answers: Vec<String> = (0..count).map(|_| fast.line()).collect();
    let refused = answers
        .iter()
        .filter(|it| it.contains("requests per second"));
    assert!(refused.count() > 0, "{answers:?}");
}
