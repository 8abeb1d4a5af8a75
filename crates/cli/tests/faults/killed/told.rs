//! Whoever is answered after a helper was replaced is told what was tried again.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use avfs_testkit::{Home, SOON, process_ends, wait_for};
use serde_json::{Value, json};

use super::Helper;
use crate::AVFS;

/// Kills it and waits until it is gone: what is asked next finds it dead.
fn kill(home: &Home, helper: Helper) {
    let pid = helper.kill(home).expect("it is there");
    assert!(process_ends(pid, SOON));
}

fn retried(envelope: &Value) -> Vec<&str> {
    let words = envelope["result"]["retried"].as_array();
    let words = words.into_iter().flatten();
    words.filter_map(Value::as_str).collect()
}

#[test]
fn an_exec_says_what_was_tried_again_for_it() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let first = home.exec(&["true"]);
        assert_eq!(first["result"].get("retried"), None, "{first:#}");
        for (helper, word) in [
            (Helper::Scanner(0), "scanner"),
            (Helper::Agent, "sandbox"),
            (Helper::Mover, "sandbox"),
            (Helper::Keeper, "keeper"),
        ] {
            if helper == Helper::Mover && helper.find(&home).is_none() {
                continue;
            }
            kill(&home, helper);
            let next = home.exec(&["true"]);
            assert_eq!(next["success"], true, "{next:#}");
            assert!(retried(&next).contains(&word), "{helper:?}: {next:#}");
            let after = home.exec(&["true"]);
            assert_eq!(after["result"].get("retried"), None, "{after:#}");
        }
        kill(&home, Helper::Scanner(0));
        let said = home.avfs(&["exec", "--", "true"]);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        let line = "retried because a process of avfs had died: scanner";
        assert!(text.contains(line), "as {}: {text}", home.user());
    }
}

#[test]
fn other_verbs_say_so_too() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["job", "start", "--", "sleep", "1000"]);
        let quiet = home.json(&["stat", "/"]);
        assert_eq!(quiet.get("retried"), None, "{quiet:#}");
        kill(&home, Helper::Scanner(0));
        let seen = home.json(&["stat", "/"]);
        assert_eq!(seen["retried"], json!(["scanner"]), "as {}", home.user());
        // The one that reads layers is the youngest by now.
        kill(&home, Helper::Scanner(2));
        let seen = home.avfs(&["write", "/f", "text"]);
        let note = String::from_utf8_lossy(&seen.stderr).into_owned();
        assert_eq!(
            note,
            "note: retried because a process of avfs had died: scanner\n"
        );
        kill(&home, Helper::Scanner(2));
        // A list has no place for it.
        let listed = home.avfs(&["--json", "log"]);
        assert!(serde_json::from_slice::<Vec<Value>>(&listed.stdout).is_ok());
        assert_eq!(String::from_utf8_lossy(&listed.stderr), note);
        kill(&home, Helper::Scanner(2));
        let answer = over_http(&home);
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(head.contains("\r\navfs-retried: scanner"), "{answer}");
        assert!(!body.contains("retried"), "{answer}");
        assert!(!over_http(&home).contains("retried"));
    }
}

fn over_http(home: &Home) -> String {
    post(
        home,
        "files/stat",
        "application/json",
        &json!({ "path": "/" }),
    )
}

/// Asks the daemon for something, as a program that knows nothing but HTTP would.
fn post(home: &Home, what: &str, accept: &str, body: &Value) -> String {
    let mut socket = UnixStream::connect(home.socket()).unwrap();
    let body = body.to_string();
    let request = format!(
        "POST /v1/vaults/v/{what} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: {accept}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn events_say_it_before_the_last_one() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["job", "start", "--", "sleep", "1000"]);
        let source = home.user_home().join("source");
        let made = home.host_command("mkdir").arg(&source).status();
        assert!(made.unwrap().success());
        let import = json!({ "host_dir": source, "path": "/taken" });
        kill(&home, Helper::Scanner(0));
        let told = post(&home, "files/import", "text/event-stream", &import);
        let again = told.find("event: retried\ndata: {\"retried\":[\"scanner\"]}");
        let (again, last) = (again.expect(&told), told.find("event: result"));
        assert!(last.is_some_and(|last| again < last), "{told}");
        let exec = json!({ "argv": ["true"] });
        let told = post(&home, "exec", "text/event-stream", &exec);
        assert!(!told.contains("retried"), "{told}");
    }
}

#[test]
fn a_job_says_it_in_its_envelope() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["exec", "--", "true"]);
        let started = home.json(&[
            "job",
            "start",
            "--shell",
            "until [ -e /tmp/go ]; do sleep 0.01; done",
        ]);
        let job = started["job_id"].to_string();
        kill(&home, Helper::Scanner(0));
        home.ok(&["write", "/tmp/go", ""]);
        let mut done = Value::Null;
        assert!(wait_for(SOON, || {
            done = home.json(&["job", "wait", &job]);
            done["envelope"].is_object()
        }));
        assert_eq!(retried(&done["envelope"]), ["scanner"], "{done:#}");
    }
}
