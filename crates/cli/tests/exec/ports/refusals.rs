//! What is no forward, and who may not have one.

use super::forward;
use crate::AVFS;
use avfs_testkit::with_vault;
use serde_json::Value;
use std::net::TcpListener;

#[test]
fn an_agent_opens_no_port_of_the_host() {
    with_vault(AVFS, |home| {
        forward(home, "v", "3000");
        for words in [
            &["port", "forward", "v", "3000"][..],
            &["port", "remove", "v", "3000"],
        ] {
            let words = [&["--json"], words].concat();
            let answer = home.command(&words).env("AVFS_CLASS", "agent").output();
            let answer: Value = serde_json::from_slice(&answer.unwrap().stdout).unwrap();
            assert_eq!(answer["error"], "Denied", "{words:?}: {answer:#}");
        }
        // It may know which there are.
        let words = ["--json", "port", "list"];
        let answer = home.command(&words).env("AVFS_CLASS", "agent").output();
        let answer: Value = serde_json::from_slice(&answer.unwrap().stdout).unwrap();
        assert_eq!(answer["forwards"].as_array().unwrap().len(), 1, "{answer}");
    });
}

#[test]
fn what_is_no_port_is_refused() {
    with_vault(AVFS, |home| {
        for guest in ["0", "65536", "-1", "http", "app.sock", "/", "/../..", ""] {
            let words = ["port", "forward", "v", "--", guest];
            assert_eq!(home.refused(&words).0, "Invalid", "{guest:?}");
        }
        for host in ["0", "65536", "http"] {
            let words = ["port", "forward", "v", "3000", host];
            assert_eq!(home.refused(&words).0, "Invalid", "{host:?}");
        }
        for listen in ["localhost", "127.0.0.1:80", "192.0.2.1"] {
            let words = ["port", "forward", "v", "3000", "--listen", listen];
            assert_eq!(home.refused(&words).0, "Invalid", "{listen:?}");
        }
        let words = ["port", "forward", "nobody", "3000"];
        assert_eq!(home.refused(&words).0, "NotFound");
        assert_eq!(home.refused(&["port", "remove", "v"]).0, "Invalid");
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port().to_string();
        let (kind, answer) = home.refused(&["port", "forward", "v", "3000", &port]);
        assert_eq!(kind, "Conflict");
        let hint = answer["hint"].as_str().unwrap();
        assert!(hint.contains("a free one is picked"), "{answer}");
        assert_eq!(
            home.json(&["port", "list"])["forwards"],
            serde_json::json!([])
        );
    });
}

#[test]
fn it_listens_where_it_is_told() {
    with_vault(AVFS, |home| {
        let opened = home.json(&["port", "forward", "v", "3000", "--listen", "127.0.0.2"]);
        assert_eq!(opened["listen"], "127.0.0.2");
        let port = super::port_of(&opened);
        std::net::TcpStream::connect(("127.0.0.2", port)).unwrap();
        let loopback = std::net::TcpStream::connect(("127.0.0.1", port));
        assert!(loopback.is_err(), "it listens elsewhere");
        let shown = home.ok(&["port", "forward", "v", "3000"]);
        assert!(
            shown.contains("to end it: avfs port remove v 3000"),
            "{shown}"
        );
    });
}
