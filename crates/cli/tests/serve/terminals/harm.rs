//! Clients that send what is no message, flood, do not read, or ask too often.

use super::*;
use crate::PATIENCE;
use avfs_api::bounds::TERMINAL_MESSAGE_MAX;
use avfs_testkit::{SOON, leftover_processes, wait_for};

#[test]
fn what_cannot_be_done_is_refused_and_the_terminal_stays() {
    let (server, good) = served("read,exec");
    let shell = "echo ready; read line; echo \"<$line>\"; exit 4";
    let job = server.start_job(&good, shell);
    let command = json!({ "shell": shell });
    for mut client in [server.run(&good, &command), server.attach(&good, &job, 0)] {
        client.wait_for("ready");
        for (message, status) in [
            ("nonsense", 400),
            ("[\"signal\",9]", 422),
            ("{\"type\":\"kill\"}", 422),
            ("{\"type\":\"signal\",\"signal\":0}", 400),
            ("{\"type\":\"signal\",\"signal\":1000}", 400),
            ("{\"type\":\"resize\",\"rows\":0,\"columns\":80}", 400),
            ("{\"type\":\"resize\",\"rows\":24,\"columns\":60000}", 400),
        ] {
            let sent = client.socket.send(Message::text(message));
            sent.expect("it listens");
            let refused = client.told("refused");
            assert_eq!(
                refused["problem"]["status"], status,
                "{message}: {refused:#}"
            );
        }
        client.type_keys("still\n");
        client.wait_for("<still>");
        let last = client.very_last();
        let code = match last["type"].as_str() {
            Some("result") => &last["envelope"]["result"]["exit_code"],
            _ => &last["job"]["exit_code"],
        };
        assert_eq!(code, 4, "{last:#}");
    }
}

#[test]
fn what_is_no_command_is_refused() {
    let (server, good) = served("read,exec");
    let attempt = |message: Message, status: u64| {
        let mut client = server.open(&good);
        client.socket.send(message.clone()).expect("it listens");
        let last = client.last("error", CloseCode::Policy);
        assert_eq!(last["problem"]["status"], status, "{message:?}: {last:#}");
    };
    attempt(Message::text("nonsense"), 400);
    attempt(Message::text("[]"), 422);
    attempt(Message::binary(b"ls\n".to_vec()), 400);
    attempt(Message::text("{\"argv\":[\"true\"],\"more\":1}"), 422);
    let stdin = "{\"argv\":[\"cat\"],\"stdin\":{\"text\":\"x\"}}";
    attempt(Message::text(stdin), 422);
    // What the handler refuses is an error as well, also what only the owner may ask for.
    for (command, status) in [
        (json!({ "argv": ["true"], "shell": "true" }), 400),
        (json!({ "argv": ["true"], "driver": "process" }), 403),
    ] {
        let mut client = server.open(&good);
        client.tell(&command);
        let last = client.very_last();
        assert_eq!(last["type"], "error", "{command}: {last:#}");
        assert_eq!(last["problem"]["status"], status, "{command}: {last:#}");
    }
}

/// A message above the limit takes no memory, and ends this conversation alone.
#[test]
fn a_large_message_ends_the_conversation_and_its_command() {
    let (server, good) = served("exec");
    let marker = &format!("6{:07}.5", std::process::id());
    let mut client = server.run(&good, &json!({ "argv": ["sleep", marker] }));
    assert!(wait_for(SOON, || !leftover_processes(marker).is_empty()));
    let large = vec![b'x'; TERMINAL_MESSAGE_MAX + 1];
    // The connection may be closed before all of it is sent.
    let _ = client.socket.send(Message::binary(large));
    while !matches!(client.next(), Came::Closed(_)) {}
    assert!(wait_for(SOON, || leftover_processes(marker).is_empty()));
    let other = json!({ "argv": ["true"] });
    let last = server.run(&good, &other).last("result", CloseCode::Normal);
    assert_eq!(last["envelope"]["result"]["exit_code"], 0, "{last:#}");
}

#[test]
fn a_client_that_does_not_read_holds_its_own_command_alone() {
    let (server, good) = served("read,exec");
    // More than the kernel keeps for a connection.
    let count = 32 << 20;
    let shell = format!("stty raw; head -c {count} /dev/zero; exit 6");
    let mut client = server.run(&good, &json!({ "shell": shell }));
    let mut other = server.run(&good, &json!({ "shell": "echo here; read x; exit 7" }));
    other.wait_for("here");
    assert_eq!(server.get(&good, "/v1/vaults").status, 200);
    let running = || server.home.json(&["daemon", "status"])["running_execs"].clone();
    assert!(
        wait_for(SOON, || running() == 2),
        "it waits for its reader: {}",
        running()
    );
    let last = client.last("result", CloseCode::Normal);
    assert_eq!(last["envelope"]["result"]["exit_code"], 6, "{last:#}");
    assert_eq!(client.seen.len(), count);
    other.type_keys("\n");
    let last = other.last("result", CloseCode::Normal);
    assert_eq!(last["envelope"]["result"]["exit_code"], 7, "{last:#}");
}

/// Input that no command reads stays with its client, and control messages pass a part of it.
#[test]
fn a_client_that_floods_is_not_listened_to_and_others_are_served() {
    let (server, good) = served("read,exec");
    let shell = "stty raw -echo; trap 'exit 8' USR1; echo ready; while :; do sleep 0.05; done";
    let mut client = server.run(&good, &json!({ "shell": shell }));
    client.wait_for("ready");
    let keys = || Message::binary(vec![b'x'; TERMINAL_MESSAGE_MAX]);
    // More than a terminal and a pipe hold, less than is queued.
    for _ in 0..4 {
        client.socket.send(keys()).expect("it listens");
    }
    client.tell(&json!({ "type": "signal", "signal": 10 }));
    let last = client.last("result", CloseCode::Normal);
    assert_eq!(last["envelope"]["result"]["exit_code"], 8, "{last:#}");

    let mut client = server.run(&good, &json!({ "shell": shell }));
    client.wait_for("ready");
    let nonblocking = client.socket.get_ref().set_nonblocking(true);
    nonblocking.expect("a socket");
    let blocked = (0..10_000).any(|_| client.socket.send(keys()).is_err());
    assert!(blocked, "the daemon takes no more than it has room for");
    assert_eq!(server.get(&good, "/v1/vaults").status, 200);
    drop(client);
    let ended = || server.home.json(&["daemon", "status"])["running_execs"] == 0;
    assert!(
        wait_for(PATIENCE, ended),
        "it is noticed that the client is gone"
    );
}

/// What is asked for at a terminal counts for the rate of a key.
#[test]
fn a_client_that_asks_too_often_is_told_so() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let slow = key(&home, "slow", &["--scope", "exec", "--rate", "1"]);
    let server = Server::start(home, &[]);
    let mut client = server.run(&slow, &json!({ "shell": "echo ready; read x; exit 5" }));
    client.wait_for("ready");
    for rows in 1..200 {
        client.tell(&json!({ "type": "resize", "rows": rows, "columns": 80 }));
    }
    let told = client.told("refused");
    assert_eq!(told["problem"]["status"], 429, "{told:#}");
}
