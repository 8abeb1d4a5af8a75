//! Events: of a command while it runs, of a job from any position, of all vaults.

use super::{Server, bearer, home, key};
use avfs_testkit::wait_for;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One event as it came.
#[derive(Clone, Debug, Default, PartialEq)]
struct Event {
    id: String,
    name: String,
    data: Value,
}

/// An open stream of events.
struct Stream {
    lines: BufReader<TcpStream>,
    /// How many comments came.
    heartbeats: usize,
}

impl Stream {
    /// Asks for events. The answer must be a stream.
    fn open(server: &Server, headers: &str, request: (&str, &str), body: &str) -> Stream {
        let (method, address) = request;
        let host = server.address;
        let length = body.len();
        let head = format!(
            "{method} {address} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).expect("it listens");
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = lines.read_line(&mut head).expect("a head");
            assert_ne!(read, 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        Stream {
            lines,
            heartbeats: 0,
        }
    }

    /// The next event; none when the stream ends.
    fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() && !event.name.is_empty() {
                return Some(event);
            }
            // Sizes of chunks have no colon.
            match line.split_once(':') {
                Some(("", _)) => self.heartbeats += 1,
                Some(("id", value)) => event.id = value.trim().to_owned(),
                Some(("event", value)) => event.name = value.trim().to_owned(),
                Some(("data", value)) => event.data = serde_json::from_str(value).expect("JSON"),
                _ => {}
            }
        }
    }

    fn rest(mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// The bytes of an event of output.
fn bytes(event: &Event) -> Vec<u8> {
    use base64ct::{Base64, Encoding};
    match event.data["data"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => {
            let coded = event.data["data_b64"].as_str().expect("bytes");
            Base64::decode_vec(coded).expect("base64")
        }
    }
}

fn served(scopes: &str) -> (Server, String) {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let good = bearer(&key(&home, "good", &["--scope", scopes]));
    (Server::start(home, &[]), good)
}

#[test]
fn a_command_is_numbered_events_under_every_spelling() {
    let (server, good) = served("read,write,exec");
    let accept = format!("{good}\r\naccept: text/event-stream");
    for (headers, address) in [
        (&accept, "/v1/vaults/v/exec"),
        (&good, "/v1/vaults/v/exec/stream"),
    ] {
        for words in ["argv", "command"] {
            let body = json!({ words: ["sh", "-c", "echo out; echo err >&2; exit 7"] });
            let stream = Stream::open(&server, headers, ("POST", address), &body.to_string());
            let events = stream.rest();
            let names: Vec<&str> = events.iter().map(|it| &*it.name).collect();
            assert_eq!(names.first(), Some(&"started"), "{names:?}");
            assert_eq!(names.last(), Some(&"result"), "{names:?}");
            let ids: Vec<String> = events.iter().map(|it| it.id.clone()).collect();
            let expected: Vec<String> = (1..=events.len()).map(|it| it.to_string()).collect();
            assert_eq!(ids, expected);
            let result = &events[events.len() - 1].data["result"];
            assert_eq!(result["exit_code"], 7, "{result:#}");
            for (stream, text) in [("stdout", "out\n"), ("stderr", "err\n")] {
                let told = events.iter().filter(|it| it.name == stream);
                let told: Vec<u8> = told.flat_map(bytes).collect();
                assert_eq!(told, text.as_bytes(), "{stream}");
                assert_eq!(result[stream], text);
            }
        }
    }
    let both = r#"{"argv":["true"],"command":["true"]}"#;
    let refused = server.ask(&good, "POST", "/v1/vaults/v/exec", both);
    assert_eq!(refused.status, 422, "{refused:?}");
    // What is refused before anything began is a plain answer.
    let refused = server.ask(&accept, "POST", "/v1/vaults/none/exec", "{}");
    assert!((400..500).contains(&refused.status), "{refused:?}");
}

#[test]
fn a_silent_command_has_heartbeats() {
    let (server, good) = served("read,write,exec");
    let waits = "while [ ! -e /tmp/go ]; do sleep 0.1; done; echo end";
    let body = json!({ "shell": waits }).to_string();
    let request = ("POST", "/v1/vaults/v/exec/stream");
    let mut stream = Stream::open(&server, &good, request, &body);
    assert_eq!(stream.next().map(|it| it.name).as_deref(), Some("started"));
    while stream.heartbeats == 0 {
        let mut line = String::new();
        let read = stream.lines.read_line(&mut line).expect("a heartbeat");
        assert_ne!(read, 0);
        stream.heartbeats += usize::from(line.starts_with(':'));
    }
    server.home.ok(&["--vault", "v", "write", "/tmp/go", ""]);
    let events = stream.rest();
    let last = events.last().expect("a result");
    assert_eq!(last.data["result"]["stdout"], "end\n", "{last:?}");
}

/// An exit code is the kernel's, or there is none.
#[test]
fn no_exit_code_is_made_up() {
    let (server, good) = served("read,write,exec");
    let run = |body: Value| {
        let request = ("POST", "/v1/vaults/v/exec/stream");
        let events = Stream::open(&server, &good, request, &body.to_string()).rest();
        let last = events.last().expect("a last event").clone();
        assert_eq!(last.name, "result", "{last:?}");
        last.data["result"].clone()
    };
    let killed = run(json!({ "shell": "kill -9 $$" }));
    assert_eq!(killed["exit_code"], Value::Null, "{killed:#}");
    assert_eq!(
        (&killed["status"], &killed["signal"]),
        (&json!("signaled"), &json!(9))
    );
    let late = run(json!({ "argv": ["sleep", "1000"], "timeout_ms": 300 }));
    assert_eq!(late["status"], "timed_out", "{late:#}");
    assert_eq!(late["exit_code"], Value::Null);
    let missing = run(json!({ "argv": ["no-such-program"] }));
    assert_eq!(missing["exit_code"], Value::Null, "{missing:#}");
    let escaped =
        run(json!({ "shell": "setsid sh -c 'exec >/dev/null 2>&1; sleep 1000' & exit 3" }));
    assert_eq!(escaped["exit_code"], 3, "{escaped:#}");
    let closed = run(json!({ "shell": "exec >&- 2>&-; exit 4" }));
    assert_eq!(closed["exit_code"], 4, "{closed:#}");
    // What is alive in its own session is ended, and changes nothing about the exit code.
    let daemon = "setsid -f sh -c 'exec <&- >&- 2>&-; sleep 1000'; exit 2";
    let daemon = run(json!({ "shell": daemon }));
    assert_eq!(daemon["exit_code"], 2, "{daemon:#}");
    let limits = json!({ "memory": 64 << 20 });
    let eats = "python3 -c 'x = bytearray(1 << 30)'; exit 6";
    let hungry = run(json!({ "shell": eats, "limits": limits }));
    match hungry["status"].as_str() {
        Some("exited") => assert_eq!(hungry["exit_code"], 6, "{hungry:#}"),
        _ => assert_eq!(hungry["exit_code"], Value::Null, "{hungry:#}"),
    }
    // The command itself is what has no memory: killed by the kernel, or by the watch of the limit.
    let eats = "import os; x = [os.urandom(1 << 20) for _ in range(1 << 10)]";
    let hungry = run(json!({ "argv": ["python3", "-c", eats], "limits": limits }));
    match hungry["exit_code"].as_i64() {
        // Python itself was refused memory, and said so.
        Some(code) => assert!(
            code == 1 && hungry["stderr"].to_string().contains("MemoryError"),
            "{hungry:#}"
        ),
        None => assert_eq!(hungry["limit_hit"]["limit"], "memory", "{hungry:#}"),
    }
}

/// Neither is one made up for a command whose output does not fit anywhere.
#[test]
fn a_gigabyte_of_output_is_counted_and_its_exit_code_kept() {
    let (server, good) = served("read,write,exec");
    let shell = "head -c 1G /dev/zero; exit 5";
    let body = json!({ "shell": shell, "timeout_ms": 600_000, "output_limit": 100 });
    let ran = server.ask(&good, "POST", "/v1/vaults/v/exec", &body.to_string());
    let result = &ran.json()["result"];
    assert_eq!(result["exit_code"], 5, "{}", result["status"]);
    assert_eq!(result["output"]["stdout"]["bytes"], 1_u64 << 30);
    assert_eq!(result["output"]["stdout"]["truncated"], true);
}

/// A client that comes back with the id of the last event that it saw misses nothing and gets nothing twice.
#[test]
fn a_jobs_stream_cut_at_every_event_is_the_whole_log() {
    let (server, good) = served("read,write,exec");
    let writes = "for i in 1 2 3 4 5 6; do echo out $i; printf '\\377%s' $i; echo err $i >&2; sleep 0.05; done; exit 3";
    let home = &server.home;
    let body = json!({ "exec": { "shell": writes } }).to_string();
    let started = server.ask(&good, "POST", "/v1/vaults/v/jobs", &body).json();
    let job = started["job_id"].to_string();
    let address = format!("/v1/jobs/logs?job_id={job}");
    let open = |last: &str| {
        let mut headers = format!("{good}\r\naccept: text/event-stream");
        if !last.is_empty() {
            headers += &format!("\r\nlast-event-id: {last}");
        }
        Stream::open(&server, &headers, ("GET", &address), "")
    };
    // One event per connection, also while the job runs.
    let (mut last, mut seen) = (String::new(), Vec::new());
    for _ in 0..200 {
        let event = open(&last).next().expect("an event");
        last.clone_from(&event.id);
        let is_end = event.name == "end";
        seen.push(event);
        if is_end {
            break;
        }
    }
    let logs = |stream: &str| {
        let words = ["job", "logs", &job, "--stream", stream];
        let output = home.avfs(&words);
        assert!(output.status.success(), "{output:?}");
        match stream {
            "stdout" => output.stdout,
            _ => [output.stdout, output.stderr].concat(),
        }
    };
    let told = |events: &[Event], name: &str| -> Vec<u8> {
        events
            .iter()
            .filter(|it| it.name == name)
            .flat_map(bytes)
            .collect()
    };
    for stream in ["stdout", "stderr"] {
        assert_eq!(told(&seen, stream), logs(stream), "{stream}");
    }
    let end = seen.last().expect("events");
    assert_eq!((&*end.name, &end.data["exit_code"]), ("end", &json!(3)));
    // Cut after every event of a whole stream, and resumed to the end.
    let whole = open("").rest();
    for cut in 0..whole.len() {
        let rest = open(&whole[cut].id).rest();
        let both = [&whole[..=cut], &rest[..]].concat();
        for stream in ["stdout", "stderr"] {
            assert_eq!(told(&both, stream), logs(stream), "{cut} {stream}");
        }
        assert_eq!(rest.last().map(|it| &*it.name), Some("end"), "{cut}");
    }
    for wrong in ["x", "1", "1-", "-1-2", "1-2-3"] {
        let headers = format!("{good}\r\naccept: text/event-stream\r\nlast-event-id: {wrong}");
        assert_eq!(
            server.ask(&headers, "GET", &address, "").status,
            400,
            "{wrong}"
        );
    }
}

#[test]
fn changes_of_all_vaults_are_told_from_any_position() {
    let (server, good) = served("read");
    let headers = format!("{good}\r\naccept: text/event-stream");
    let mut live = Stream::open(&server, &headers, ("GET", "/v1/events"), "");
    let ready = live.next().expect("where it begins");
    assert_eq!(ready.name, "ready");
    let home = &server.home;
    for number in 0..5 {
        home.ok(&["--vault", "v", "write", "/f", &number.to_string()]);
    }
    home.ok(&["vault", "create", "w"]);
    home.ok(&["vault", "delete", "w", "-y"]);
    let mut seen = vec![ready];
    while seen
        .last()
        .is_none_or(|it| it.data["operation"] != "vault.delete")
    {
        seen.push(live.next().expect("a change"));
    }
    let operations: Vec<&str> = seen[1..]
        .iter()
        .map(|it| it.data["operation"].as_str().expect("an operation"))
        .collect();
    assert!(operations.len() >= 7, "{operations:?}");
    for event in &seen[1..] {
        assert_eq!(event.id, event.data["id"].to_string());
    }
    // From every position the rest is the same, also without events.
    for cut in 0..seen.len() - 1 {
        let headers = format!("{headers}\r\nlast-event-id: {}", seen[cut].id);
        let mut again = Stream::open(&server, &headers, ("GET", "/v1/events"), "");
        assert_eq!(again.next().map(|it| it.id), Some(seen[cut].id.clone()));
        // The name of a vault is the one that it has by now.
        let told = |it: &Event| (it.id.clone(), it.name.clone(), it.data["hash"].clone());
        for expected in &seen[cut + 1..] {
            let next = again.next().expect("a change");
            assert_eq!(told(&next), told(expected), "{cut}");
        }
        let page = format!("/v1/events?after={}", seen[cut].id);
        let page = server.ask(&good, "GET", &page, "").json();
        let hashes = |entries: &[Value]| -> Vec<Value> {
            entries.iter().map(|it| it["hash"].clone()).collect()
        };
        let rest: Vec<Value> = seen[cut + 1..].iter().map(|it| it.data.clone()).collect();
        let listed = page["entries"].as_array().expect("entries");
        assert_eq!(hashes(listed), hashes(&rest), "{cut}");
        assert_eq!(page["more"], false);
    }
    for (header, status) in [
        ("last-event-id: x", 400),
        ("last-event-id: -1", 400),
        // Nothing would ever come.
        ("last-event-id: 999999", 409),
    ] {
        let headers = format!("{headers}\r\n{header}");
        assert_eq!(server.ask(&headers, "GET", "/v1/events", "").status, status);
    }
}

/// Who may use some vaults is told of these alone, by name and by id, also when they are gone.
#[test]
fn changes_of_other_vaults_are_not_told() {
    let home = home();
    for vault in ["mine-1", "other"] {
        home.ok(&["vault", "create", vault]);
    }
    let limited = key(&home, "limited", &["--scope", "read", "--vault", "mine-*"]);
    let limited = bearer(&limited);
    let server = Server::start(home, &[]);
    let headers = format!("{limited}\r\naccept: text/event-stream");
    let mut live = Stream::open(&server, &headers, ("GET", "/v1/events?after=0"), "");
    let home = &server.home;
    for vault in ["other", "mine-1"] {
        home.ok(&["--vault", vault, "write", "/f", vault]);
    }
    key(home, "another", &["--scope", "read"]);
    home.ok(&["vault", "delete", "other", "-y"]);
    home.ok(&["vault", "delete", "mine-1", "-y"]);
    let mut seen = Vec::new();
    while seen
        .last()
        .is_none_or(|it: &Event| it.data["operation"] != "vault.delete")
    {
        seen.push(live.next().expect("a change"));
    }
    let text = format!("{seen:?}");
    assert!(text.contains("mine-1") && !text.contains("other"), "{text}");
    assert!(!text.contains("key."), "what concerns no vault: {text}");
    let page = server.ask(&limited, "GET", "/v1/events?after=0", "");
    assert!(!page.body.contains("other"), "{page:?}");
}

#[test]
fn a_page_of_changes_can_be_waited_for() {
    let (server, good) = served("read");
    let now = server.ask(&good, "GET", "/v1/events", "").json();
    assert_eq!(now["entries"], json!([]), "{now}");
    let address = format!("/v1/events?after={}&wait_ms=30000", now["after"]);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.ask(&good, "GET", &address, "").json());
        server.home.ok(&["--vault", "v", "write", "/f", "x"]);
        let page = waiting.join().expect("no panic");
        assert_eq!(page["entries"][0]["path"], "/f", "{page:#}");
    });
}

/// What a job tries to reach is told while it runs.
#[test]
fn attempts_of_a_running_job_are_told() {
    let (server, good) = served("read");
    let headers = format!("{good}\r\naccept: text/event-stream");
    let mut live = Stream::open(&server, &headers, ("GET", "/v1/events"), "");
    assert_eq!(live.next().map(|it| it.name).as_deref(), Some("ready"));
    let home = &server.home;
    let script = "getent hosts nowhere.example.test; sleep 600";
    let started = home.json(&["--vault", "v", "job", "start", "--shell", script]);
    let job = started["job_id"].to_string();
    let told = loop {
        let event = live.next().expect("a change");
        if event.data["details"]["denied"].is_array() {
            break event.data;
        }
    };
    let denied = &told["details"]["denied"][0];
    assert_eq!(denied["host"], "nowhere.example.test", "{told:#}");
    assert_eq!(denied["rule"], "default:not-listed", "{told:#}");
    let polled = home.json(&["job", "poll", &job]);
    assert_eq!(polled["running"], true, "{polled:#}");
    home.ok(&["job", "kill", &job]);
}

/// A stream that nobody ends does not keep the daemon from being stopped.
#[test]
fn streams_of_changes_end_with_the_daemon() {
    let (server, good) = served("read");
    let headers = format!("{good}\r\naccept: text/event-stream");
    let mut live = Stream::open(&server, &headers, ("GET", "/v1/events"), "");
    assert_eq!(live.next().map(|it| it.name).as_deref(), Some("ready"));
    let mut server = server;
    server.home.ok(&["daemon", "stop"]);
    assert!(live.next().is_none());
    assert!(wait_for(Duration::from_secs(60), || {
        server.child.try_wait().is_ok_and(|it| it.is_some())
    }));
}
