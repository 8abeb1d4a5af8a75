//! What is whose: an agent reaches nothing as a whole that it did not make.

use super::{ends_with, home, homes, text};
use avfs_testkit::{Home, status_and_body, wait_for};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output};
use std::time::Duration;

/// The binary, run by an agent of that name.
pub(super) fn agent_command(home: &Home, name: &str, words: &[&str]) -> Command {
    let mut command = home.command(words);
    command.env("AVFS_AGENT", name);
    command
}

pub(super) fn agent(home: &Home, name: &str, words: &[&str]) -> Output {
    agent_command(home, name, words).output().expect("it runs")
}

pub(super) fn agent_ok(home: &Home, name: &str, words: &[&str]) -> String {
    let output = agent(home, name, words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}\n{said}{error}");
    said
}

pub(super) fn agent_json(home: &Home, name: &str, words: &[&str]) -> Value {
    let words = [&["--json"], words].concat();
    let output = agent(home, name, &words);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
}

/// What an agent must not do.
fn denied(home: &Home, name: &str, words: &[&str]) {
    let answer = agent_json(home, name, words);
    assert_eq!(answer["error"], "Denied", "{words:?}: {answer:#}");
}

/// Sends a request as somebody; gives the status and the body.
pub(super) fn ask(
    socket: &std::path::Path,
    class: &str,
    name: &str,
    method: &str,
    route: &str,
    body: &str,
) -> (u16, String) {
    let headers = [format!("avfs-class: {class}"), format!("avfs-name: {name}")];
    let headers = headers.each_ref().map(String::as_str);
    status_and_body(&avfs_testkit::ask(
        socket,
        &headers,
        (method, route),
        body.as_bytes(),
    ))
}

#[test]
fn an_agent_works_inside_the_owners_vault_and_leaves_the_whole_alone() {
    for home in homes() {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["write", "/f", "the owner's"]);
        home.ok(&["checkpoint", "save", "mine"]);
        home.ok(&["vault", "create", "old"]);
        home.ok(&["vault", "delete", "old"]);
        for words in [
            &["vault", "delete", "v"][..],
            &["vault", "rename", "v", "w"],
            &["vault", "undelete", "old"],
            &["vault", "undelete", "old", "--as", "mine"],
            // Whoever had that name had it with rules.
            &["vault", "create", "old"],
            &["vault", "fork", "v", "old"],
            &["checkpoint", "delete", "mine"],
            &["vault", "set", "timeout=1h"],
            &["vault", "set", "--default", "timeout=1h"],
            &["vault", "defaults"],
            &["quota", "set", "max_files", "1000"],
        ] {
            denied(&home, "a", words);
        }
        agent_ok(&home, "a", &["write", "/f", "the agent's"]);
        agent_ok(&home, "a", &["checkpoint", "restore", "mine"]);
        assert_eq!(home.ok(&["cat", "/f"]), "the owner's");
        // What protects the vault is not for whom it protects it from.
        let ran = agent_json(&home, "a", &["exec", "--", "rm", "/f"]);
        let saved = text(&ran["result"], "checkpoint").to_owned();
        denied(&home, "a", &["checkpoint", "delete", &saved]);
        agent_ok(&home, "a", &["checkpoint", "save", "its"]);
        denied(&home, "b", &["checkpoint", "delete", "its"]);
        agent_ok(&home, "a", &["checkpoint", "delete", "its"]);
        // A vault of its own is its own.
        agent_ok(&home, "a", &["vault", "fork", "v", "try"]);
        denied(&home, "b", &["vault", "delete", "try"]);
        agent_ok(&home, "a", &["vault", "rename", "try", "tried"]);
        agent_ok(&home, "a", &["vault", "delete", "tried"]);
        agent_ok(&home, "a", &["vault", "undelete", "tried"]);
        home.ok(&["vault", "delete", "tried"]);
    }
}

#[test]
fn every_agent_has_a_current_vault_of_its_own() {
    let home = home();
    let current = |who: &str| agent_json(&home, who, &["vault", "info"])["name"].clone();
    agent_ok(&home, "first", &["vault", "create", "trap"]);
    let none = home.json(&["ls", "/"]);
    assert_eq!(none["error"], "NotFound", "it is not the owner's: {none:#}");
    home.ok(&["vault", "create", "v"]);
    home.ok(&["vault", "use", "v"]);
    assert_eq!(current("first"), "trap");
    assert_eq!(
        current("second"),
        "v",
        "who never chose works in the owner's"
    );
    agent_ok(&home, "second", &["vault", "fork", "v", "try", "--use"]);
    assert_eq!(current("second"), "try");
    assert_eq!(current("third"), "v");
    assert_eq!(home.json(&["vault", "info"])["name"], "v");
    agent_ok(&home, "second", &["vault", "use", "trap"]);
    assert_eq!(home.json(&["vault", "info"])["name"], "v");
    // Whoever deletes the one that it works in is not sent to work in the owner's.
    agent_ok(&home, "first", &["vault", "delete", "trap"]);
    for name in ["first", "second"] {
        let lost = agent_json(&home, name, &["write", "/f", "x"]);
        assert_eq!(lost["error"], "NotFound", "{name}: {lost:#}");
    }
}

#[test]
fn what_an_agent_makes_begins_as_the_owner_says() {
    let home = home();
    home.ok(&[
        "vault",
        "set",
        "--default",
        "timeout=2s",
        "pids=64",
        "env.TOKEN=s3cret",
    ]);
    home.ok(&["vault", "set", "--default", "max_files=3", "max_size_mb=1"]);
    let defaults = home.json(&["vault", "defaults"]);
    let wanted = json!({ "timeout": "2000ms", "pids": "64", "env.TOKEN": "s3cret",
        "max_files": "3", "max_size_mb": "1" });
    assert_eq!(defaults["settings"], wanted);
    agent_ok(&home, "a", &["vault", "create", "own"]);
    let info = agent_json(&home, "a", &["vault", "info", "own"]);
    let settings = json!({ "timeout": "2000ms", "pids": "64", "env.TOKEN": "(hidden)" });
    assert_eq!(info["settings"], settings);
    let quota = home.json(&["--vault", "own", "quota"]);
    assert_eq!(
        (&quota["max_files"], &quota["max_size_mb"]),
        (&json!(3), &json!(1))
    );
    let lifted = agent_json(&home, "a", &["exec", "--timeout", "0", "--", "true"]);
    assert_eq!(lifted["error"], "Denied", "{lifted:#}");
    // A fork begins as its source, not as new vaults do.
    home.ok(&["vault", "unset", "--default", "timeout", "max_files"]);
    home.ok(&["vault", "create", "later"]);
    home.ok(&["--vault", "own", "vault", "set", "timeout=5s"]);
    agent_ok(&home, "b", &["vault", "fork", "own", "fork"]);
    let info = home.json(&["vault", "info", "fork"]);
    assert_eq!(info["settings"]["timeout"], "5000ms");
    assert_eq!(info["settings"]["env.TOKEN"], "s3cret", "the owner sees it");
    assert_eq!(home.json(&["--vault", "fork", "quota"])["max_files"], 3);
    assert_eq!(
        home.json(&["--vault", "later", "quota"])["max_files"],
        Value::Null
    );
    let hidden = agent_json(&home, "b", &["vault", "info", "fork"]);
    assert_eq!(hidden["settings"]["env.TOKEN"], "(hidden)");
    let journal = home.ok(&["audit", "export"]);
    assert!(!journal.contains("s3cret"), "{journal}");
    let told = home.json(&["audit", "--operation", "defaults"]);
    assert_eq!(told["total_count"], 3);
    assert_eq!(told["entries"][0]["by"], "owner");
}

#[test]
fn an_agent_narrows_limits_and_widens_none() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    home.ok(&[
        "vault",
        "set",
        "timeout=60s",
        "pids=100",
        "memory=1g",
        "disk=100m",
    ]);
    let run = |words: &[&str]| {
        let words = [&["exec"], words, &["--", "true"]].concat();
        let answer = agent_json(&home, "a", &words);
        answer["error"].as_str().unwrap_or("ran").to_owned()
    };
    for wider in [
        &["--timeout", "0"][..],
        &["--timeout", "61s"],
        &["--pids", "101"],
        &["--memory", "2g"],
        &["--disk", "101m"],
        &["--profile", "permissive"],
        &["--driver", "process"],
        &["--network", "host"],
    ] {
        assert_eq!(run(wider), "Denied", "{wider:?}");
    }
    assert_eq!(run(&["--timeout", "59s", "--pids", "99"]), "ran");
    // A job has all the time that the vault gives, and no more.
    let asked = agent_json(
        &home,
        "a",
        &["job", "start", "--timeout", "0", "--", "true"],
    );
    assert_eq!(asked["error"], "Denied", "{asked:#}");
    home.ok(&["vault", "set", "timeout=200ms"]);
    let job = agent_json(&home, "a", &["job", "start", "--", "sleep", "1000"]);
    let id = job["job_id"].to_string();
    let ended = agent_json(&home, "a", &["job", "wait", &id]);
    assert_eq!(ended["status"], "timed_out", "{ended:#}");
}

#[test]
fn the_owners_commands_take_nothing_from_agents() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let job = home.json(&[
        "job",
        "start",
        "--stdin",
        "--",
        "sh",
        "-c",
        "echo secret; cat",
    ]);
    let id = job["job_id"].to_string();
    for words in [
        &["job", "stdin", &id, "rm -rf /\n"][..],
        &["job", "kill", &id],
        &["job", "poll", &id],
        &["job", "wait", &id, "--timeout", "1s"],
    ] {
        denied(&home, "a", words);
    }
    assert!(!agent(&home, "a", &["job", "logs", &id]).status.success());
    assert!(!agent(&home, "a", &["attach", &id]).status.success());
    home.ok(&["job", "stdin", &id, "mine\n", "--eof"]);
    home.ok(&["job", "wait", &id]);
    assert_eq!(home.ok(&["job", "logs", &id]).trim_end(), "secret\nmine");
    let ran = home.json(&["exec", "--output-limit", "1", "--", "echo", "secret"]);
    let exec = text(&ran["result"], "exec").to_owned();
    denied(&home, "a", &["output", &exec]);
    assert!(home.ok(&["output", &exec]).contains("secret"));
    // What was asked for, and with which values, is between the asker and the owner.
    home.ok(&["vault", "set", "env.TOKEN=s3cret"]);
    let asked = home.exec(&["git", "push", "--force"]);
    let id = text(&asked["result"], "approval_id").to_owned();
    denied(&home, "a", &["approval", "show", &id]);
    let listed = agent_json(&home, "a", &["approval", "list"]);
    assert_eq!(listed["approvals"], json!([]), "{listed:#}");
    let asked = agent_json(&home, "a", &["exec", "--", "git", "push", "--force"]);
    let id = text(&asked["result"], "approval_id").to_owned();
    let shown = agent_ok(&home, "a", &["--json", "approval", "show", &id]);
    assert!(
        !shown.contains("s3cret") && shown.contains("TOKEN=(hidden)"),
        "{shown}"
    );
    assert!(
        home.ok(&["--json", "approval", "show", &id])
            .contains("TOKEN=s3cret")
    );
    denied(
        &home,
        "b",
        &["exec", "--approval", &id, "--", "git", "push", "--force"],
    );
}

/// `--force` ends what runs in a vault; for an agent that is what it runs itself.
#[test]
fn nobodys_command_is_ended_by_force_but_ones_own() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    home.ok(&["checkpoint", "save", "c"]);
    agent_ok(&home, "a", &["vault", "fork", "v", "own"]);
    let running = |words: &[&str]| {
        let words = [words, &["job", "start", "--", "sleep", "1000"]].concat();
        home.json(&words)["job_id"].to_string()
    };
    let jobs = [running(&["--vault", "v"]), running(&["--vault", "own"])];
    denied(
        &home,
        "a",
        &["--vault", "v", "checkpoint", "restore", "c", "--force"],
    );
    denied(&home, "a", &["vault", "delete", "own", "--force"]);
    for job in &jobs {
        assert_eq!(home.json(&["job", "poll", job])["running"], true);
        home.ok(&["job", "kill", job]);
    }
    let sleep = ["--vault", "v", "job", "start", "--", "sleep", "1000"];
    let own = agent_json(&home, "a", &sleep)["job_id"].to_string();
    denied(
        &home,
        "b",
        &["--vault", "v", "checkpoint", "restore", "c", "--force"],
    );
    agent_ok(
        &home,
        "a",
        &["--vault", "v", "checkpoint", "restore", "c", "--force"],
    );
    agent_json(&home, "a", &["job", "wait", &own]);
    assert_eq!(home.json(&["job", "poll", &own])["running"], false);
    agent_ok(&home, "a", &["vault", "delete", "own", "--force"]);
}

/// The handle of a command that runs is no number that others can count up to.
#[test]
fn a_running_command_answers_to_its_caller_alone() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let socket = home.socket();
    let mut stream = UnixStream::connect(&socket).unwrap();
    let body = json!({ "argv": ["cat"], "stdin": "live" }).to_string();
    let request = format!(
        "POST /v1/vaults/v/exec HTTP/1.1\r\nhost: avfs\r\navfs-class: agent\r\navfs-name: a\r\n\
         accept: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while !seen.contains("\"call\"") {
        let size = stream.read(&mut buffer).unwrap();
        assert!(size > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..size]));
    }
    let call = seen.split("\"call\":\"").nth(1).unwrap();
    let call = call.split('"').next().unwrap().to_owned();
    assert_eq!(call.len(), 32, "{call}");
    let cancel = |class: &str, name: &str, call: &str| {
        let body = json!({ "call": call }).to_string();
        ask(&socket, class, name, "POST", "/v1/exec/cancel", &body)
    };
    let input = |class: &str, name: &str| {
        let route = format!("/v1/exec/input?call={call}");
        ask(&socket, class, name, "PUT", &route, "typed").0
    };
    let resize = |name: &str| {
        let body = json!({ "call": call, "rows": 2, "columns": 2 }).to_string();
        ask(&socket, "agent", name, "POST", "/v1/exec/resize", &body).0
    };
    assert_eq!(cancel("owner", "me", "1").0, 422, "a number is no handle");
    assert_eq!(
        cancel("agent", "b", &call).1,
        r#"{"schema_version":1,"cancelled":false}"#
    );
    assert_eq!((input("agent", "b"), resize("b")), (404, 404));
    assert_eq!(input("agent", "a"), 200);
    let ended = wait_for(Duration::from_secs(20), || {
        let size = stream.read(&mut buffer).unwrap_or(0);
        seen.push_str(&String::from_utf8_lossy(&buffer[..size]));
        seen.contains("event: result")
    });
    assert!(ended && seen.contains("typed"), "{seen}");
}

/// `diff` names a second vault; it is read as if it were named first.
#[test]
fn a_second_vault_passes_the_same_gate() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    home.ok(&["vault", "create", "other"]);
    agent_ok(&home, "a", &["--vault", "v", "diff", "HEAD", "vault:other"]);
    let lost = agent_json(&home, "a", &["--vault", "v", "diff", "HEAD", "vault:none"]);
    assert_eq!(lost["error"], "NotFound", "{lost:#}");
}

#[test]
fn rules_of_the_user_are_the_owners_to_write() {
    for home in homes() {
        home.ok(&["vault", "create", "v"]);
        let file = home.path().join("new.toml");
        std::fs::write(&file, "[[rule]]\ncommand = \"ls\"\naction = \"deny\"\n").unwrap();
        let new = file.to_str().unwrap();
        let edit = ["policy", "edit", "--level", "user", "--from", new];
        let rules = home.user_home().join(".config/agentvfs/policy.toml");
        denied(&home, "a", &edit);
        let mut unnamed = home.command(&edit);
        let output = unnamed.env("AVFS_CLASS", "agent").output().unwrap();
        assert!(!output.status.success() && !rules.exists());
        home.ok(&edit);
        assert_eq!(
            std::fs::read(&rules).unwrap(),
            std::fs::read(&file).unwrap()
        );
        let told = home.json(&["audit", "--operation", "policy"]);
        let first = &told["entries"][0];
        assert_eq!(
            (&first["operation"], &first["by"]),
            (&json!("policy.write"), &json!("owner"))
        );
        assert!(
            text(&first["details"], "after").contains("deny"),
            "{told:#}"
        );
        ends_with(&home, 126, &["exec", "--", "ls"]);
        // Nothing is written that cannot be read as rules.
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(home.json(&edit)["error"], "Invalid");
        ends_with(&home, 126, &["exec", "--", "ls"]);
        // By hand it can be changed by whoever is that user; the journal says that it was.
        home.ok(&["exec", "--", "true"]);
        let changed =
            || home.json(&["audit", "--operation", "policy.changed"])["total_count"].clone();
        assert_eq!(changed(), 0);
        std::fs::write(&rules, "").unwrap();
        home.ok(&["exec", "--", "ls"]);
        assert_eq!(changed(), 1);
        home.ok(&["exec", "--", "ls"]);
        assert_eq!(changed(), 1);
        let told = home.json(&["audit", "--operation", "policy.changed"]);
        assert_eq!(told["entries"][0]["by"], "system", "{told:#}");
    }
}
