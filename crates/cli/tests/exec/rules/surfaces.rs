//! Who can approve, and what an agent's surface cannot do.

use super::{DEPLOY, approved, asks, guarded, home, text, with_approval};
use crate::AVFS;
use avfs_api::table::{Class, OPERATIONS};
use avfs_testkit::Home;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

fn said(command: &mut Command) -> (bool, String) {
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        output.status.success(),
        text + &String::from_utf8_lossy(&output.stderr),
    )
}

#[test]
fn nobody_approves_from_inside() {
    let home = home();
    guarded(&home);
    asks(&home, &DEPLOY);
    let socket = home.socket();
    let inside = home.exec(&["test", "-e", socket.to_str().unwrap()]);
    assert_eq!(
        inside["result"]["exit_code"], 1,
        "the socket is seen: {inside:#}"
    );
    let script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])";
    let inside = home.exec(&["python3", "-c", script, socket.to_str().unwrap()]);
    assert_ne!(inside["result"]["exit_code"], 0, "{inside:#}");
    let avfs = home.exec(&["avfs", "approval", "list"]);
    assert_eq!(avfs["result"]["status"], "denied");
}

#[test]
fn nobody_approves_in_the_agents_class_or_without_a_terminal() {
    let home = home();
    guarded(&home);
    let id = asks(&home, &DEPLOY);
    std::fs::write(home.path().join("other.toml"), "").unwrap();
    for words in [
        &["approval", "approve", &id][..],
        &["approval", "deny", &id],
        &["policy", "edit", "--from", "other.toml"],
        &["quota", "set", "max_files", "1"],
        &["export", "/workspace", "out"],
        &["daemon", "stop"],
    ] {
        let mut command = home.command_without_terminal(words);
        let (done, text) = said(command.env("AVFS_CLASS", "agent"));
        assert!(!done, "{words:?}\n{text}");
        let reason = text.contains("for the owner") || text.contains("no terminal");
        assert!(reason, "{words:?}\n{text}");
    }
    let mut agent = home.command(&["proxy", "exec", "--network", "host", "--", "true"]);
    assert!(!said(agent.env("AVFS_CLASS", "agent")).0);
    let mut agent = home.command(&["proxy", "exec", "--", "touch", "x"]);
    assert!(said(agent.env("AVFS_CLASS", "agent")).0);
    let journal = home.json(&["audit", "--principal", "agent", "--operation", "exec"]);
    assert_eq!(journal["total_count"], 1, "{journal:#}");

    let (done, text) = said(&mut home.command_without_terminal(&["approval", "approve", &id]));
    assert!(!done && text.contains("no terminal"), "{text}");
    // The right words are not enough: they must come from a terminal.
    let shown = home.json(&["approval", "show", &id])["shown"].to_string();
    let request = format!(
        r#"{{"id":"{id}","shown":{shown},"passphrase":"{}"}}"#,
        super::PASSPHRASE
    );
    let mut curl = Command::new("setsid");
    curl.args([
        "-w",
        "python3",
        "-c",
        POST,
        home.socket().to_str().unwrap(),
        &request,
    ]);
    let (_, text) = said(&mut curl);
    assert!(text.contains("typed at a terminal"), "{text}");
    assert_eq!(
        home.json(&["approval", "list"])["approvals"][0]["state"],
        "pending"
    );
}

/// Every operation of the owner's class, asked for in the agent's.
#[test]
fn the_agents_class_gets_nothing_that_is_the_owners() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let socket = home.socket();
    let mut asked = 0;
    for line in OPERATIONS {
        if line.who.class() != Class::Owner {
            continue;
        }
        let method = format!("{:?}", line.method).to_uppercase();
        let route = line.route.replace("{vault}", "v");
        let mut stream = UnixStream::connect(&socket).unwrap();
        let head = format!(
            "{method} {route} HTTP/1.1\r\nhost: avfs\r\navfs-class: agent\r\n\
             connection: close\r\ncontent-length: 2\r\n\r\n{{}}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 403"),
            "{}: {answer}",
            line.name
        );
        assert!(
            answer.contains("for the owner alone"),
            "{}: {answer}",
            line.name
        );
        asked += 1;
    }
    assert!(asked >= 10);
}

/// Sends a request for approval from a process of its own.
const POST: &str = "
import http.client, socket, sys
connection = http.client.HTTPConnection('avfs')
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
connection.request('POST', '/v1/approvals/approve', sys.argv[2], {'content-type': 'application/json'})
print(connection.getresponse().read().decode())
";

#[test]
fn without_a_passphrase_nobody_approves_and_it_says_how() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let envelope = home.exec(&["git", "push"]);
    let id = text(&envelope["result"], "approval_id").to_owned();
    assert!(text(&envelope["result"], "reason").contains("avfs approval setup"));
    let (done, text) = said(&mut home.command_without_terminal(&["approval", "approve", &id]));
    assert!(!done && text.contains("avfs approval setup"), "{text}");
}

#[test]
fn another_user_approves_without_a_passphrase() {
    let Some(home) = Home::of_ordinary_user(AVFS) else {
        eprintln!("SKIPPED: only root can be another user");
        return;
    };
    guarded(&home);
    let id = asks(&home, &DEPLOY);
    let mut root = Command::new(AVFS);
    root.args(["approval", "approve", &id])
        .env_clear()
        .env("AVFS_HOME", home.avfs_home())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let (done, text) = said(&mut root);
    assert!(done, "{text}");
    assert_eq!(with_approval(&home, &id, &DEPLOY)["result"]["exit_code"], 0);
    let journal = home.json(&["audit", "--operation", "approval.approved"]);
    let proof = &journal["entries"][0]["details"]["proof"];
    assert_eq!(
        (&proof["kind"], &proof["uid"]),
        (&"uid".into(), &0.into()),
        "{journal:#}"
    );
}

#[test]
fn the_journal_tells_the_whole_story() {
    let home = home();
    guarded(&home);
    let id = approved(&home);
    let ran = with_approval(&home, &id, &DEPLOY)["result"].clone();
    home.exec(&["cat", "/etc/shadow"]);
    let exec = text(&ran, "exec");
    let of_exec = home.json(&["audit", "--exec", exec]);
    let told: Vec<&str> = of_exec["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| text(e, "operation"))
        .collect();
    assert_eq!(
        told,
        ["exec", "approval.used", "exec_requested"],
        "newest first"
    );
    assert_eq!(
        of_exec["entries"][0]["details"]["status"],
        serde_json::json!({ "exited": ran["exit_code"] })
    );
    let approval = home.json(&["audit", "--operation", "approval"]);
    let told: Vec<&str> = approval["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| text(e, "operation"))
        .collect();
    let story = [
        "approval.used",
        "approval.approved",
        "approval.requested",
        "approval.setup",
    ];
    assert_eq!(told, story);
    assert_eq!(
        approval["entries"][1]["details"]["proof"]["kind"],
        "passphrase"
    );
    let denied = home.json(&["audit", "--decision", "deny"]);
    assert_eq!(denied["total_count"], 1, "{denied:#}");
    assert_eq!(denied["entries"][0]["operation"], "exec_refused");
    assert_eq!(
        home.json(&["audit", "--decision", "deny", "--principal", "agent"])["total_count"],
        0
    );

    let lines = home.ok(&["audit", "export"]);
    let entries: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let all = home.json(&["audit", "-n", "10000"]);
    assert_eq!(entries.len() as u64, all["total_count"].as_u64().unwrap());
    assert!(
        entries
            .iter()
            .enumerate()
            .all(|(i, entry)| entry["id"] == i as u64 + 1),
        "oldest first"
    );
    assert!(!lines.contains(super::PASSPHRASE));
    let some = home.ok(&["audit", "export", "--decision", "deny"]);
    assert_eq!(some.lines().count(), 1);
    home.ok(&["audit", "verify"]);
}
