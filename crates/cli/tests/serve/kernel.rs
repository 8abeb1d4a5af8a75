//! The dialect of agentkernel: its addresses, fields, events and defaults.

use super::{Answer, Server, bearer, home, key};
use avfs_testkit::wait_for;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::Duration;

/// A client of it.
struct Kernel {
    server: Server,
    key: String,
}

impl Kernel {
    fn new() -> Kernel {
        let home = home();
        let key = bearer(&key(&home, "kernel", &["--scope", "read,write,exec"]));
        let server = Server::start(home, &[]);
        Kernel { server, key }
    }

    fn ask(&self, method: &str, address: &str, body: Value) -> Answer {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        self.server.ask(&self.key, method, address, &body)
    }

    /// The data of a successful answer.
    fn data(&self, method: &str, address: &str, body: Value) -> Value {
        let answer = self.ask(method, address, body);
        assert!((200..300).contains(&answer.status), "{address}: {answer:?}");
        let mut value = answer.json();
        assert_eq!(value["success"], true, "{address}: {answer:?}");
        value["data"].take()
    }

    /// The status and the text of a refusal.
    fn refused(&self, method: &str, address: &str, body: Value) -> (u16, String) {
        let answer = self.ask(method, address, body);
        let value = answer.json();
        assert_eq!(value["success"], false, "{address}: {answer:?}");
        let error = value["error"].as_str().expect("an error").to_owned();
        (answer.status, error)
    }

    fn vaults(&self) -> Vec<Value> {
        let listed = self.server.home.json(&["vault", "list"]);
        listed.as_array().expect("a list").clone()
    }
}

#[test]
fn a_run_has_a_place_of_its_own() {
    let kernel = Kernel::new();
    assert_eq!(
        kernel.server.ask("", "GET", "/health", "").json(),
        json!({ "success": true, "data": "ok" })
    );
    let ran = kernel.data(
        "POST",
        "/run",
        json!({ "command": ["echo", "a b", "$HOME"] }),
    );
    assert_eq!(ran["output"], "a b $HOME\n", "no shell joins the words");
    let write = json!({ "command": ["sh", "-c", "ls /left 2>&1; touch /left"] });
    for _ in 0..2 {
        let ran = kernel.data("POST", "/run", write.clone());
        let output = ran["output"].as_str().expect("text");
        assert!(
            output.contains("No such file"),
            "a run sees an earlier one: {output}"
        );
    }
    let failed = kernel.ask(
        "POST",
        "/run",
        json!({ "command": ["sh", "-c", "echo x; exit 3"] }),
    );
    assert_eq!(failed.status, 409, "{failed:?}");
    let failed = failed.json();
    assert_eq!(
        (&failed["success"], &failed["exit_code"]),
        (&json!(false), &json!(3))
    );
    assert_eq!(failed["output"], "x\n");
    assert!(failed["error"].is_string());
    let killed = kernel.ask(
        "POST",
        "/run",
        json!({ "command": ["sh", "-c", "kill -9 $$"] }),
    );
    assert_eq!(killed.json()["exit_code"], Value::Null, "{killed:?}");
    assert!(kernel.vaults().is_empty(), "{:?}", kernel.vaults());
}

/// Nothing that is asked for is silently left out.
#[test]
fn what_cannot_be_had_is_refused() {
    let kernel = Kernel::new();
    let run = |more: Value| {
        let mut body = json!({ "command": ["true"] });
        let fields = more.as_object().expect("fields").clone();
        body.as_object_mut().expect("fields").extend(fields);
        kernel.refused("POST", "/run", body)
    };
    assert_eq!(run(json!({ "image": "python:3.12" })).0, 503);
    assert_eq!(run(json!({ "profile": "strange" })).0, 400);
    assert_eq!(run(json!({ "ports": [80] })).0, 400);
    assert_eq!(run(json!({ "command": "true" })).0, 400);
    assert_eq!(kernel.refused("POST", "/run", json!({})).0, 400);
    assert_eq!(kernel.refused("GET", "/run", Value::Null).0, 405);
    assert_eq!(kernel.refused("GET", "/sandboxes/none", Value::Null).0, 404);
    let volumes = json!({ "name": "x", "volumes": ["/etc"] });
    assert_eq!(kernel.refused("POST", "/sandboxes", volumes).0, 400);
    kernel.data("POST", "/sandboxes", json!({ "name": "box" }));
    let again = kernel.refused("POST", "/sandboxes", json!({ "name": "box" }));
    assert_eq!(again.0, 409);
    let sudo = json!({ "command": ["id"], "sudo": true });
    assert_eq!(kernel.refused("POST", "/sandboxes/box/exec", sudo).0, 403);
    let push = json!({ "command": ["git", "push", "--force"] });
    let (status, error) = kernel.refused("POST", "/sandboxes/box/exec", push);
    assert_eq!(status, 403);
    assert!(error.contains("Permission required"), "{error}");
}

#[test]
fn its_addresses_need_a_credential_with_the_right_scopes() {
    let kernel = Kernel::new();
    let reader = bearer(&key(&kernel.server.home, "reader", &["--scope", "read"]));
    for (method, address) in [
        ("POST", "/run"),
        ("POST", "/run/stream"),
        ("POST", "/batch/run"),
        ("GET", "/sandboxes"),
        ("POST", "/sandboxes"),
        ("GET", "/sandboxes/x"),
        ("DELETE", "/sandboxes/x"),
        ("POST", "/sandboxes/x/exec"),
        ("POST", "/sandboxes/x/stop"),
        ("GET", "/sandboxes/x/files/f"),
        ("PUT", "/sandboxes/x/files/f"),
        ("GET", "/snapshots"),
        ("GET", "/sandboxes/x/logs"),
    ] {
        let answer = kernel.server.ask("", method, address, "{}");
        assert_eq!(answer.status, 401, "{method} {address}: {answer:?}");
        assert_eq!(answer.json()["success"], false, "{answer:?}");
        assert!(answer.has("www-authenticate"), "{answer:?}");
    }
    let body = r#"{"command":["true"]}"#;
    assert_eq!(kernel.server.ask(&reader, "POST", "/run", body).status, 403);
    let made = kernel
        .server
        .ask(&reader, "POST", "/sandboxes", r#"{"name":"x"}"#);
    assert_eq!(made.status, 403, "{made:?}");
    assert_eq!(
        kernel.server.ask(&reader, "GET", "/sandboxes", "").status,
        200
    );
}

/// A number of processors holds, or no command runs: not every user can enforce it.
#[test]
fn processors_are_limited_or_refused() {
    let kernel = Kernel::new();
    let create = json!({ "name": "box", "vcpus": 1 });
    let made = kernel.data("POST", "/sandboxes", create);
    assert_eq!(made["vcpus"], 1, "{made:#}");
    let command = json!({ "command": ["true"] });
    let ran = kernel.ask("POST", "/sandboxes/box/exec", command);
    let refused = "the limit on cpus cannot be enforced here";
    match ran.status {
        200 => assert_eq!(ran.json()["success"], true, "{ran:?}"),
        status => assert!(status == 503 && ran.body.contains(refused), "{ran:?}"),
    }
}

#[test]
fn a_sandbox_lives_until_it_is_removed() {
    let kernel = Kernel::new();
    let create = json!({ "name": "box", "memory_mb": 256, "profile": "moderate" });
    let made = kernel.ask("POST", "/sandboxes", create);
    assert_eq!(made.status, 201, "{made:?}");
    let made = &made.json()["data"];
    assert_eq!(
        (&made["name"], &made["status"]),
        (&json!("box"), &json!("running"))
    );
    assert_eq!(made["memory_mb"], 256);
    assert!(made["backend"].is_string() && made["created_at"].is_string());
    let exec = |words: Value| kernel.data("POST", "/sandboxes/box/exec", words)["output"].clone();
    let words =
        json!({ "command": ["sh", "-c", "pwd; echo $A"], "env": ["A=b"], "workdir": "/tmp" });
    assert_eq!(exec(words), "/tmp\nb\n");
    let put = json!({ "content": "hello world" });
    assert_eq!(
        kernel.data("PUT", "/sandboxes/box/files/dir/hello.txt", put),
        "Wrote 11 bytes to /dir/hello.txt"
    );
    assert_eq!(
        exec(json!({ "command": ["cat", "/dir/hello.txt"] })),
        "hello world"
    );
    assert_eq!(
        kernel.data("GET", "/sandboxes/box/files/dir/hello.txt", Value::Null),
        json!({ "content": "hello world", "encoding": "utf8", "size": 11 })
    );
    let bytes = json!({ "content": "/wA=", "encoding": "base64" });
    kernel.data("PUT", "/sandboxes/box/files/bytes", bytes);
    assert_eq!(
        kernel.data("GET", "/sandboxes/box/files/bytes", Value::Null),
        json!({ "content": "/wA=", "encoding": "base64", "size": 2 })
    );
    let wrong = json!({ "content": "*", "encoding": "base64" });
    assert_eq!(
        kernel.refused("PUT", "/sandboxes/box/files/bytes", wrong).0,
        400
    );
    assert_eq!(
        kernel.data("DELETE", "/sandboxes/box/files/bytes", Value::Null),
        "Deleted /bytes"
    );
    assert_eq!(
        kernel
            .refused("GET", "/sandboxes/box/files/bytes", Value::Null)
            .0,
        404
    );
    let several = json!({ "files": { "/a": "1", "b/c": "2" } });
    kernel.data("POST", "/sandboxes/box/files", several);
    assert_eq!(exec(json!({ "command": ["cat", "/a", "/b/c"] })), "12");
    // Stopping keeps the files.
    assert_eq!(
        kernel.data("POST", "/sandboxes/box/stop", Value::Null)["status"],
        "stopped"
    );
    let refused = kernel.refused(
        "POST",
        "/sandboxes/box/exec",
        json!({ "command": ["true"] }),
    );
    assert_eq!(refused.0, 409);
    assert_eq!(
        kernel.data("POST", "/sandboxes/box/start", Value::Null)["status"],
        "running"
    );
    assert_eq!(exec(json!({ "command": ["cat", "/a"] })), "1");
    let listed = kernel.data("GET", "/sandboxes", Value::Null);
    assert_eq!(listed[0]["name"], "box", "{listed}");
    let logs = kernel.data("GET", "/sandboxes/box/logs", Value::Null);
    assert_eq!(logs[0]["type"], "sandbox_created", "{logs:#}");
    let all = logs.as_array().expect("entries");
    assert!(
        all.iter().any(|it| it["type"] == "command_executed"),
        "{logs:#}"
    );
    kernel.data("DELETE", "/sandboxes/box", Value::Null);
    assert_eq!(kernel.refused("GET", "/sandboxes/box", Value::Null).0, 404);
}

#[test]
fn snapshots_and_forks_begin_as_they_were_taken() {
    let kernel = Kernel::new();
    kernel.data("POST", "/sandboxes", json!({ "name": "box" }));
    let put = |content: &str| {
        let body = json!({ "content": content });
        kernel.data("PUT", "/sandboxes/box/files/f", body);
    };
    let read = |name: &str| {
        let address = format!("/sandboxes/{name}/files/f");
        kernel.data("GET", &address, Value::Null)["content"].clone()
    };
    put("one");
    let taken = json!({ "sandbox": "box", "name": "s1" });
    assert_eq!(kernel.data("POST", "/snapshots", taken)["sandbox"], "box");
    put("two");
    let fork = kernel.data("POST", "/sandboxes/box/fork", json!({ "as_name": "fork" }));
    assert_eq!(fork["sandbox"]["name"], "fork");
    let back = kernel.data(
        "POST",
        "/snapshots/s1/restore",
        json!({ "as_name": "back" }),
    );
    assert_eq!(back["from_snapshot"], "s1");
    assert_eq!((read("back"), read("fork")), (json!("one"), json!("two")));
    let listed = kernel.data("GET", "/snapshots", Value::Null);
    assert_eq!(listed[0]["name"], "s1", "{listed}");
    assert_eq!(
        kernel.data("GET", "/snapshots/s1", Value::Null)["sandbox"],
        "box"
    );
    kernel.data("DELETE", "/snapshots/s1", Value::Null);
    assert_eq!(kernel.refused("GET", "/snapshots/s1", Value::Null).0, 404);
}

#[test]
fn detached_commands_go_on() {
    let kernel = Kernel::new();
    for name in ["box", "other"] {
        kernel.data("POST", "/sandboxes", json!({ "name": name }));
    }
    let words = "echo out; echo err >&2; while [ ! -e /tmp/go ]; do sleep 0.05; done";
    let start = json!({ "command": ["sh", "-c", words] });
    let started = kernel.data("POST", "/sandboxes/box/exec/detach", start.clone());
    assert_eq!(
        (&started["sandbox"], &started["status"]),
        (&json!("box"), &json!("running"))
    );
    let id = started["id"].as_str().expect("an id").to_owned();
    let address = format!("/sandboxes/box/exec/detached/{id}");
    let logs = || kernel.data("GET", &format!("{address}/logs"), Value::Null);
    assert!(wait_for(Duration::from_secs(60), || {
        logs() == json!({ "stdout": "out\n", "stderr": "err\n" })
    }));
    let elsewhere = format!("/sandboxes/other/exec/detached/{id}");
    assert_eq!(kernel.refused("GET", &elsewhere, Value::Null).0, 404);
    kernel.data(
        "PUT",
        "/sandboxes/box/files/tmp/go",
        json!({ "content": "" }),
    );
    assert!(wait_for(Duration::from_secs(60), || {
        let job = kernel.data("GET", &address, Value::Null);
        (&job["status"], &job["exit_code"]) == (&json!("completed"), &json!(0))
    }));
    kernel.data("DELETE", "/sandboxes/box/files/tmp/go", Value::Null);
    let second = kernel.data("POST", "/sandboxes/box/exec/detach", start);
    let second = second["id"].as_str().expect("an id").to_owned();
    let address = format!("/sandboxes/box/exec/detached/{second}");
    kernel.data("DELETE", &address, Value::Null);
    assert!(wait_for(Duration::from_secs(60), || {
        kernel.data("GET", &address, Value::Null)["status"] == "failed"
    }));
    let listed = kernel.data("GET", "/sandboxes/box/exec/detached", Value::Null);
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
}

#[test]
fn a_batch_is_answered_in_order() {
    let kernel = Kernel::new();
    let commands = json!({ "commands": [
        { "command": ["sh", "-c", "sleep 0.3; echo 1"] },
        { "command": ["sh", "-c", "echo 2; exit 2"] },
        { "command": ["no-such-program"] },
        { "command": ["echo", "4"] },
    ] });
    let results = kernel.data("POST", "/batch/run", commands)["results"].clone();
    assert_eq!(
        results[0],
        json!({ "output": "1\n", "error": null, "exit_code": 0 })
    );
    assert_eq!(
        (&results[1]["output"], &results[1]["exit_code"]),
        (&json!("2\n"), &json!(2))
    );
    assert!(results[1]["error"].is_string() && results[2]["error"].is_string());
    assert_eq!(results[3]["output"], "4\n");
    assert!(kernel.vaults().is_empty(), "{:?}", kernel.vaults());
    let many = json!({ "commands": vec![json!({ "command": ["true"] }); 65] });
    assert_eq!(kernel.refused("POST", "/batch/run", many).0, 400);
}

/// The names and data of events, as they came.
fn events(text: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(word) = line.strip_prefix("event: ") {
            name = word.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            let data = serde_json::from_str(data).expect("JSON");
            found.push((std::mem::take(&mut name), data));
        }
    }
    found
}

/// Sends a run and gives the open connection.
fn open(kernel: &Kernel, command: Value) -> std::net::TcpStream {
    let body = json!({ "command": command }).to_string();
    let (key, length) = (&kernel.key, body.len());
    let head = format!(
        "POST /run/stream HTTP/1.1\r\nhost: {}\r\n{key}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}",
        kernel.server.address
    );
    let mut stream = kernel.server.connect();
    stream.write_all(head.as_bytes()).expect("it listens");
    stream
}

fn read_until(stream: &mut std::net::TcpStream, wanted: &str) -> String {
    let mut seen = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.contains(wanted) {
            return text;
        }
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).expect("it answers");
        assert_ne!(read, 0, "{text}");
        seen.extend_from_slice(&piece[..read]);
    }
}

#[test]
fn output_is_streamed_while_the_command_runs() {
    let kernel = Kernel::new();
    // It never ends by itself, so what is read was sent while it ran.
    let mut waiting = open(&kernel, json!(["sh", "-c", "echo first; sleep 1000"]));
    let begun = read_until(&mut waiting, "\"stream\":\"stdout\"}\n");
    let names: Vec<String> = events(&begun).into_iter().map(|it| it.0).collect();
    assert_eq!(names, ["started", "progress", "progress", "output"]);
    // A client that leaves takes the command and its sandbox with it.
    assert_eq!(kernel.vaults().len(), 1);
    drop(waiting);
    assert!(wait_for(Duration::from_secs(60), || kernel
        .vaults()
        .is_empty()));
    let mut ended = open(
        &kernel,
        json!(["sh", "-c", "echo out; echo err >&2; exit 7"]),
    );
    let mut text = String::new();
    let _ = ended.read_to_string(&mut text);
    let told = events(&text);
    assert_eq!(told[0].1["command"][0], "sh");
    assert_eq!(told[0].1["fast"], true);
    assert_eq!(told[1].1["stage"], "sandbox_created");
    assert!(told[1].1["sandbox"].is_string());
    assert_eq!(told[2].1, json!({ "stage": "sandbox_started" }));
    for (data, stream) in [("out\n", "stdout"), ("err\n", "stderr")] {
        let output = json!({ "data": data, "stream": stream });
        assert!(
            told.iter().any(|it| it.0 == "output" && it.1 == output),
            "{told:?}"
        );
    }
    let last = told.last().expect("events");
    assert_eq!(
        *last,
        ("done".into(), json!({ "exit_code": 7, "success": false }))
    );
    assert!(kernel.vaults().is_empty());
}
