//! Names of agents: what they may be, and that the journal has them for everything that an agent changes.

use super::class::{agent, agent_command, agent_json, agent_ok, ask};
use super::home;
use crate::AVFS;
use avfs_testkit::Home;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

fn newest(home: &Home) -> u64 {
    home.json(&["audit", "-n", "1"])["entries"][0]["id"]
        .as_u64()
        .expect("an entry has a number")
}

/// Every operation with which an agent changes something, and the name under which the journal has it.
#[test]
fn whatever_an_agent_changes_bears_its_name() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    home.ok(&["mkdir", "-p", "/workspace"]);
    let steps: &[&[&str]] = &[
        &["write", "/f", "one"],
        &["write", "/f", "two"],
        &["mkdir", "/d"],
        &["cp", "/f", "/g"],
        &["mv", "/g", "/h"],
        &["ln", "-s", "f", "/l"],
        &["chmod", "600", "/f"],
        &["touch", "/t"],
        &["edit", "/f", "--old", "two", "--new", "three"],
        &["checkout", "/f", "--version", "3"],
        &["revert", "/f"],
        &["rm", "/h"],
        &["tag", "/f", "t"],
        &["tag", "--rename", "t:u"],
        &["untag", "/f", "u"],
        &["tag", "/f", "t"],
        &["tag", "--delete", "t"],
        &["meta", "/f", "k", "v"],
        &["meta", "/f", "--import", "{\"a\":\"b\"}"],
        &["meta", "/f", "k", "--delete"],
        &["checkpoint", "save", "c"],
        &["write", "/f", "four"],
        &["checkpoint", "restore", "c"],
        &["checkpoint", "restore", "--undo"],
        &["checkpoint", "delete", "c"],
        &["exec", "--", "touch", "/workspace/made"],
        &["exec", "--fork", "--", "touch", "/workspace/other"],
        &["commit"],
        &["vault", "create", "own"],
        &["vault", "fork", "v", "fork"],
        &["vault", "rename", "fork", "forked"],
        &["vault", "delete", "forked"],
        &["vault", "undelete", "forked"],
    ];
    for words in steps {
        let before = newest(&home);
        agent_ok(&home, "claude", words);
        let all = home.json(&["audit", "-n", "100"]);
        let new: Vec<&Value> = all["entries"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["id"].as_u64().unwrap() > before)
            .collect();
        assert!(!new.is_empty() || words[0] == "commit", "{words:?}");
        for entry in new {
            // The mark of a fork that goes away is the daemon's own.
            let own = entry["operation"] == "settings" && entry["by"] == "system";
            assert!(own || entry["by"] == "agent:claude", "{words:?}: {entry:#}");
        }
    }
    let log = home.json(&["vault", "log", "v"]);
    assert_eq!(log[0]["by"], "agent:claude", "{log:#}");
    assert_eq!(
        home.json(&["vault", "info", "own"])["made_by"],
        "agent:claude"
    );
    // One name, or all of a kind.
    agent_ok(&home, "other", &["write", "/f", "x"]);
    let count = |who: &str| {
        let words = ["audit", "-n", "1000", "--by", who];
        home.json(&words)["total_count"].as_u64().unwrap()
    };
    assert_eq!(count("agent:other"), 1);
    assert!(count("agent") > count("agent:claude"));
    assert_eq!(count("agent:cla"), 0);
}

#[test]
fn jobs_and_streams_bear_the_name_too() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let job = agent_json(&home, "claude", &["job", "start", "--stdin", "--", "cat"]);
    let id = job["job_id"].to_string();
    agent_ok(&home, "claude", &["job", "stdin", &id, "words", "--eof"]);
    agent_ok(&home, "claude", &["job", "wait", &id]);
    let sleeping = agent_json(&home, "claude", &["job", "start", "--", "sleep", "1000"]);
    let sleeping = sleeping["job_id"].to_string();
    agent_ok(&home, "claude", &["job", "kill", &sleeping]);
    for operation in ["job.start", "job.stdin", "job.kill", "job.end"] {
        let told = home.json(&["audit", "--operation", operation]);
        let entries = told["entries"].as_array().unwrap();
        assert!(!entries.is_empty(), "{operation}");
        let by_agent = entries.iter().all(|entry| entry["by"] == "agent:claude");
        assert!(by_agent, "{told:#}");
    }
    // A stream of bytes goes through a route of its own.
    home.ok(&["mkdir", "/d"]);
    home.ok(&["write", "/d/f", "x"]);
    let tar = home.avfs(&["export", "/d", "--tar", "-"]).stdout;
    let mut import = agent_command(&home, "claude", &["import", "-", "/e"]);
    let mut import = import.stdin(Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(&tar).unwrap();
    assert!(import.wait().unwrap().success());
    let told = home.json(&["audit", "--operation", "import"]);
    assert_eq!(told["entries"][0]["by"], "agent:claude", "{told:#}");
}

#[test]
fn a_name_is_a_word() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    for wrong in ["a b", "a:b", "\u{e4}", &"x".repeat(65)] {
        let output = agent(&home, wrong, &["ls", "/"]);
        assert!(!output.status.success(), "{wrong:?}");
    }
    // Over the wire, too: nothing but a name gets into the journal.
    let socket = home.socket();
    for wrong in ["a b", "a:b", ""] {
        let named = ask(&socket, "agent", wrong, "GET", "/v1/vaults", "");
        assert_eq!(named.0, 400, "{wrong:?}: {}", named.1);
    }
    // Whoever has a name has given the owner's class up, whatever else it says.
    let mut both = agent_command(&home, "claude", &["vault", "set", "memory=1g"]);
    let output = both.env("AVFS_CLASS", "owner").output().unwrap();
    assert!(!output.status.success());
}

/// What was made before anybody wrote down by whom, and by an agent without a name.
#[test]
fn agents_without_a_name_are_one() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let unnamed = |words: &[&str]| {
        let mut command = home.command(words);
        let output = command.env("AVFS_CLASS", "agent").output().unwrap();
        output.status.success()
    };
    assert!(unnamed(&["vault", "fork", "v", "w"]));
    assert!(
        !agent(&home, "a", &["vault", "delete", "w"])
            .status
            .success()
    );
    assert!(!unnamed(&["vault", "delete", "v"]));
    assert!(unnamed(&["vault", "delete", "w"]));
}
