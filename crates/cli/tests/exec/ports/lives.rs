//! When a forward begins and ends.

use super::{ask, await_listener, connect, fate, forward, port_of, serve, start};
use crate::AVFS;
use avfs_testkit::{Home, SOON, wait_for, with_vault};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

#[test]
fn it_leads_to_whatever_sandbox_is_live() {
    with_vault(AVFS, |home| {
        let port = forward(home, "v", "3000");
        // No sandbox, one in which nobody listens, a server.
        assert_eq!(fate(port), ErrorKind::ConnectionReset);
        home.shell("true");
        assert_eq!(fate(port), ErrorKind::ConnectionReset);
        let job = serve(home, "v", "3000");
        assert_eq!(ask(port, "").unwrap(), "v");
        let mut open = connect(port);
        open.read_exact(&mut [0]).unwrap();
        home.ok(&["job", "kill", &job]);
        // Its end is the connection's.
        assert!(matches!(open.read(&mut [0]), Ok(0) | Err(_)));
        assert!(wait_for(SOON, || fate(port) == ErrorKind::ConnectionReset));
        // Another state of the vault, in another sandbox.
        home.ok(&["checkpoint", "save", "then"]);
        home.ok(&["write", "/name", "later"]);
        home.ok(&["checkpoint", "restore", "then"]);
        home.ok(&["vault", "rename", "v", "w"]);
        start(home, "w", &["python3", "/server.py", "3000"]);
        await_listener(home, "w", "3000");
        assert_eq!(ask(port, "").unwrap(), "v");
        assert_eq!(home.json(&["port", "list"])["forwards"][0]["vault"], "w");
    });
}

#[test]
fn removal_cuts() {
    with_vault(AVFS, |home| {
        serve(home, "v", "3000");
        let ports = [forward(home, "v", "3000"), forward(home, "v", "3000")];
        let other = forward(home, "v", "4000");
        let mut open = connect(ports[0]);
        open.read_exact(&mut [0]).unwrap();
        let removed = home.json(&["port", "remove", "v", "3000"]);
        let removed = removed["removed"].as_array().unwrap();
        assert_eq!(removed.len(), 2);
        assert_eq!(removed[0]["connections"], 1);
        let cut = open.read(&mut [0]).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::ConnectionReset);
        for port in ports {
            assert_eq!(fate(port), ErrorKind::ConnectionRefused);
            TcpListener::bind(("127.0.0.1", port)).unwrap();
        }
        assert_eq!(fate(other), ErrorKind::ConnectionReset);
        home.ok(&["port", "remove", "v", "--all"]);
        assert_eq!(fate(other), ErrorKind::ConnectionRefused);
        assert_eq!(
            home.ok(&["port", "remove", "v", "--all"]),
            "no port of the host led into the vault\n"
        );
        assert_eq!(home.refused(&["port", "remove", "v", "3000"]).0, "NotFound");
    });
}

#[test]
fn it_ends_with_the_vault() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "fork", "v", "w"]);
        for vault in ["v", "w"] {
            serve(home, vault, "3000");
        }
        let [ours, others] = ["v", "w"].map(|vault| forward(home, vault, "3000"));
        home.ok(&["vault", "delete", "v", "--force"]);
        assert_eq!(fate(ours), ErrorKind::ConnectionRefused);
        assert_eq!(ask(others, "").unwrap(), "w");
        home.ok(&["vault", "undelete", "v"]);
        assert_eq!(fate(ours), ErrorKind::ConnectionRefused);
        // A vault that could not be deleted keeps its own.
        assert_eq!(home.refused(&["vault", "delete", "w"]).0, "Conflict");
        assert_eq!(ask(others, "").unwrap(), "w");
        let forwards = home.json(&["port", "list"])["forwards"].clone();
        assert_eq!(forwards.as_array().unwrap().len(), 1, "{forwards}");
    });
}

#[test]
fn it_is_journaled() {
    with_vault(AVFS, |home| {
        let opened = home.json(&["port", "forward", "v", "3000"]);
        home.ok(&["port", "remove", "v", "3000"]);
        let entries = home.json(&["audit", "--limit", "2"])["entries"].clone();
        let host = format!("127.0.0.1:{}", port_of(&opened));
        for (entry, operation) in [(0, "port.remove"), (1, "port.forward")] {
            let entry = &entries[entry];
            assert_eq!(entry["operation"], operation, "{entries:#}");
            assert_eq!(entry["vault"], "v");
            assert_eq!(entry["details"], json!({"guest": "3000", "host": host}));
        }
    });
}

/// The daemon does not end by itself while a port is forwarded, and it does afterwards.
#[test]
fn it_outlives_the_idle_time() {
    let home = Home::new(AVFS);
    let mut server = home.command(&["serve", "--idle-timeout", "1"]);
    let mut server = server.stderr(Stdio::null()).spawn().unwrap();
    assert!(wait_for(SOON, || home.daemon_pid().is_some()));
    home.ok(&["vault", "create", "v"]);
    let port = forward(&home, "v", "3000");
    let pid = home.daemon_pid();
    // Nothing is asked of the daemon for several times the idle time.
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert!(server.try_wait().unwrap().is_none(), "it ended");
    assert_eq!(fate(port), ErrorKind::ConnectionReset);
    let status = home.json(&["daemon", "status"]);
    assert_eq!((&status["forwards"], home.daemon_pid()), (&json!(1), pid));
    home.ok(&["port", "remove", "v", "3000"]);
    assert!(wait_for(SOON, || matches!(server.try_wait(), Ok(Some(_)))));
    assert!(server.wait().unwrap().success());
}

#[test]
fn the_daemon_ends_with_connections_open() {
    with_vault(AVFS, |home| {
        serve(home, "v", "3000");
        let port = forward(home, "v", "3000");
        let mut open = connect(port);
        open.write_all(b"x").unwrap();
        open.read_exact(&mut [0; 2]).unwrap();
        home.ok(&["daemon", "stop", "--force"]);
        assert!(matches!(open.read(&mut [0]), Ok(0) | Err(_)));
        assert_eq!(fate(port), ErrorKind::ConnectionRefused);
        // The next one knows nothing of it.
        assert_eq!(home.json(&["port", "list"])["forwards"], json!([]));
    });
}
