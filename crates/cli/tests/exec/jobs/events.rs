//! Following a job over HTTP: events that can be resumed where they broke off.

use super::{UNTIL_GO, start, wait, written};
use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

/// One event: its id, its name, and what it says.
type Event = (String, String, Value);

/// The events of a job, after the one with this id.
fn follow(home: &Home, job: &str, last: Option<&str>) -> impl Iterator<Item = Event> + use<> {
    let mut socket = UnixStream::connect(home.socket()).unwrap();
    let last = last.map_or_else(String::new, |last| format!("Last-Event-ID: {last}\r\n"));
    let request = format!(
        "GET /v1/jobs/logs?job_id={job} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: text/event-stream\r\n{last}\r\n"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(socket).lines().map_while(Result::ok);
    std::iter::from_fn(move || {
        let (mut id, mut name, mut data) = (None, None, None);
        // What is not a field is the framing around events.
        for line in lines.by_ref() {
            match line.split_once(": ") {
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("event", value)) => name = Some(value.to_owned()),
                Some(("data", value)) => data = serde_json::from_str(value).ok(),
                _ => {}
            }
            if id.is_some() && name.is_some() && data.is_some() {
                return Some((id.take()?, name.take()?, data.take()?));
            }
        }
        None
    })
}

#[test]
fn events_are_resumed_without_a_gap() {
    with_vault(AVFS, |home| {
        let text = format!("echo one; echo two >&2; {UNTIL_GO}; echo three; echo four >&2");
        let job = start(home, &["--shell", &text]);
        written(home, &job, "one");
        let mut events = follow(home, &job, None);
        let first = events.next().unwrap();
        assert_eq!(
            (&*first.1, &first.2["data"]),
            ("stdout", &Value::from("one\n"))
        );
        assert_eq!(first.2["offset"], 0);
        // Here the connection breaks.
        drop(events);
        home.ok(&["write", "/tmp/go", ""]);
        wait(home, &job);
        let rest: Vec<Event> = follow(home, &job, Some(&first.0)).collect();
        let of = |name: &str| -> String {
            let of = rest.iter().filter(|event| event.1 == name);
            of.map(|event| event.2["data"].as_str().unwrap()).collect()
        };
        assert_eq!(of("stdout"), "three\n");
        // Whether that one had been told with the first is for its id to say.
        let all = if first.0.ends_with("-0") {
            "two\nfour\n"
        } else {
            "four\n"
        };
        assert_eq!(of("stderr"), all);
        let end = rest.last().unwrap();
        assert_eq!((&*end.1, &end.2["exit_code"]), ("end", &Value::from(0)));
    });
}
