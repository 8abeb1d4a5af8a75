//! Clients that type, resize, leave and come back.

use super::*;
use crate::PATIENCE;
use avfs_testkit::{SOON, leftover_processes, wait_for};

#[test]
fn a_command_runs_at_a_terminal_that_its_client_types_at_and_resizes() {
    let (server, good) = served("exec");
    let size = json!({ "rows": 30, "columns": 100, "term": "xterm-256color" });
    let shell = "stty size; echo $TERM; read line; echo \"<$line>\"; \
        until [ \"$(stty size)\" = '31 101' ]; do sleep 0.05; done; echo resized; \
        echo made > /made; exit 5";
    let mut client = server.run(&good, &json!({ "shell": shell, "tty": size }));
    client.wait_for("30 100");
    client.wait_for("xterm-256color");
    client.type_keys("typed\n");
    client.wait_for("<typed>");
    client.tell(&json!({ "type": "resize", "rows": 31, "columns": 101 }));
    client.wait_for("resized");
    let last = client.last("result", CloseCode::Normal);
    let result = &last["envelope"]["result"];
    assert_eq!(result["exit_code"], 5, "{result:#}");
    let sent = client.seen.len();
    assert_eq!(result["output"]["stdout"]["bytes"], sent, "{result:#}");
    assert_eq!(result["stdout"], "", "it was sent already");
    assert_eq!(result["changed_files"], json!(["/made"]), "{last:#}");
    assert_eq!(server.home.ok(&["--vault", "v", "cat", "/made"]), "made\n");
}

/// An exit code is the kernel's, or there is none.
#[test]
fn signals_reach_the_command_and_no_exit_code_is_made_up() {
    let (server, good) = served("exec");
    let traps = "trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done";
    let mut client = server.run(&good, &json!({ "shell": traps }));
    client.wait_for("ready");
    client.tell(&json!({ "type": "signal", "signal": 10 }));
    let last = client.last("result", CloseCode::Normal);
    assert_eq!(last["envelope"]["result"]["exit_code"], 9, "{last:#}");

    let mut client = server.run(&good, &json!({ "shell": traps }));
    client.wait_for("ready");
    client.tell(&json!({ "type": "signal", "signal": 9 }));
    let last = client.last("result", CloseCode::Normal);
    let result = &last["envelope"]["result"];
    assert_eq!(result["exit_code"], Value::Null, "{result:#}");
    assert_eq!(
        (&result["status"], &result["signal"]),
        (&json!("signaled"), &json!(9))
    );

    // As at any terminal, a key is a signal for what is in front.
    let mut client = server.run(&good, &json!({ "shell": "echo ready; sleep 86.4" }));
    client.wait_for("ready");
    client.type_keys("\x03");
    let last = client.last("result", CloseCode::Normal);
    assert_eq!(last["envelope"]["result"]["signal"], 2, "{last:#}");

    let slow = json!({ "argv": ["sleep", "1000"], "timeout_ms": 300 });
    let last = server.run(&good, &slow).last("result", CloseCode::Normal);
    let result = &last["envelope"]["result"];
    assert_eq!(result["status"], "timed_out", "{result:#}");
    assert_eq!(result["exit_code"], Value::Null);
}

#[test]
fn a_client_that_leaves_ends_its_command() {
    let (server, good) = served("exec");
    let marker = &format!("7{:07}.5", std::process::id());
    for says_so in [true, false] {
        let mut client = server.run(&good, &json!({ "argv": ["sleep", marker] }));
        assert!(wait_for(SOON, || !leftover_processes(marker).is_empty()));
        if says_so {
            client.socket.close(None).expect("it listens");
            while !matches!(client.next(), Came::Closed(_)) {}
        }
        drop(client);
        assert!(
            wait_for(SOON, || leftover_processes(marker).is_empty()),
            "{says_so}"
        );
    }
}

#[test]
fn a_job_is_attached_to_left_and_attached_to_again() {
    let (server, good) = served("read,exec");
    let shell =
        "echo begin; while read line; do echo \"<$line>\"; [ \"$line\" = end ] && exit 3; done";
    let job = server.start_job(&good, shell);
    let mut first = server.attach(&good, &job, 0);
    let mut second = server.attach(&good, &job, 0);
    first.wait_for("begin");
    first.type_keys("one\n");
    first.wait_for("<one>");
    second.wait_for("<one>");
    let at = first.seen.len();
    drop(first);
    second.type_keys("two\n");
    second.wait_for("<two>");
    let mut again = server.attach(&good, &job, at);
    again.wait_for("<two>");
    assert!(!again.text().contains("begin"), "{}", again.text());
    again.tell(&json!({ "type": "resize", "rows": 40, "columns": 132 }));
    let listed = || server.home.json(&["job", "list"]);
    let resized = || listed()["jobs"][0]["terminal"]["columns"] == 132;
    assert!(wait_for(SOON, resized), "{}", listed());
    again.type_keys("end\n");
    for client in [&mut again, &mut second] {
        let last = client.last("end", CloseCode::Normal);
        assert_eq!(last["job"]["exit_code"], 3, "{last:#}");
        assert_eq!(last["job"]["status"], "exited");
    }
    let logs = server.home.avfs(&["job", "logs", &job.to_string()]).stdout;
    assert_eq!(second.text(), String::from_utf8_lossy(&logs));
    // A job that has ended shows what it wrote, and says so.
    let mut late = server.attach(&good, &job, 0);
    let last = late.last("end", CloseCode::Normal);
    assert_eq!((late.seen, &last["job"]["exit_code"]), (logs, &json!(3)));
}

/// A client that comes back with the number of bytes that it has misses nothing and gets nothing twice.
#[test]
fn a_terminal_cut_at_every_message_is_the_whole_log() {
    let (server, good) = served("read,exec");
    let writes =
        "for i in 1 2 3 4 5 6; do echo out $i; printf '\\377%s' $i; sleep 0.05; done; exit 3";
    let job = server.start_job(&good, writes);
    let mut seen = Vec::new();
    let end = loop {
        let mut client = server.attach(&good, &job, seen.len());
        match client.next() {
            Came::Bytes => seen.extend_from_slice(&client.seen),
            Came::Text(end) => break end,
            Came::Closed(code) => panic!("{code:?}"),
        }
    };
    assert_eq!(
        (&end["type"], &end["job"]["exit_code"]),
        (&json!("end"), &json!(3))
    );
    let logs = server.home.avfs(&["job", "logs", &job.to_string()]).stdout;
    assert_eq!(seen, logs);
}

/// The socket of the daemon serves terminals to its own user.
#[test]
fn the_socket_has_terminals_too() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    home.ok(&["daemon", "start"]);
    let stream = std::os::unix::net::UnixStream::connect(home.socket()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut client = Client::over(stream, "avfs", OPEN_V, &[]).expect("a terminal");
    client.tell(&json!({ "argv": ["stty", "size"] }));
    client.told("started");
    let last = client.last("result", CloseCode::Normal);
    assert_eq!(last["envelope"]["result"]["exit_code"], 0, "{last:#}");
    assert_eq!(client.text(), "24 80\r\n");
}

#[test]
fn a_daemon_that_ends_leaves_no_client_waiting() {
    let (server, good) = served("read,exec");
    let job = server.start_job(&good, "echo begin; read x");
    let mut attached = server.attach(&good, &job, 0);
    attached.wait_for("begin");
    let mut running = server.run(&good, &json!({ "shell": "echo begin; read x" }));
    running.wait_for("begin");
    server.home.ok(&["daemon", "stop", "--force"]);
    for mut client in [attached, running] {
        let last = client.very_last();
        let code = &last["envelope"]["result"]["exit_code"];
        assert_eq!(code, &Value::Null, "{last:#}");
        assert_eq!(last["job"]["exit_code"], Value::Null, "{last:#}");
    }
}

/// As a page would: the client that JavaScript has, which can name protocols and no headers.
#[test]
fn a_page_opens_a_terminal() {
    let Some(tools) = avfs_testkit::tools(env!("CARGO_MANIFEST_DIR")) else {
        return;
    };
    let node = tools.join("mcp-js-1/node");
    if !node.exists() {
        let missing = format!("{} is not there; scripts/test makes it", node.display());
        return avfs_testkit::skip(&missing);
    }
    let (server, good) = served("exec");
    let url = format!("ws://{}{OPEN_V}", server.address);
    // The sources may be closed to the user who runs this.
    let script = server.home.path().join("page.mjs");
    std::fs::write(&script, include_str!("page.mjs")).expect("own file");
    let mut page = server.home.host_command(node);
    let output = page.arg(script).args([&url, &good]).output();
    let output = output.expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{err}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["protocol"], "avfs.terminal", "{said:#}");
    assert_eq!(said["exit_code"], 5, "{said:#}");
    assert_eq!(
        (&said["code"], &said["clean"]),
        (&json!(1000), &json!(true))
    );
    let text = said["text"].as_str().expect("text");
    assert!(
        text.contains("<typed>") && text.contains("31 101"),
        "{text}"
    );
}
