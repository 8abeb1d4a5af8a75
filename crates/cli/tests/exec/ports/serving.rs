//! Servers in vaults, reached from the host.

use super::{ask, await_listener, forward, port_of, serve, start};
use crate::{AVFS, exec};
use avfs_testkit::with_vault;
use serde_json::{Value, json};

#[test]
fn ten_forks_serve_one_port_at_once() {
    with_vault(AVFS, |home| {
        let names: Vec<String> = (0..10).map(|number| format!("fork-{number}")).collect();
        let ports = names.iter().map(|name| {
            home.ok(&["vault", "fork", "v", name]);
            serve(home, name, "3000");
            forward(home, name, "3000")
        });
        let ports: Vec<u16> = ports.collect();
        for (name, port) in names.iter().zip(&ports) {
            assert_eq!(ask(*port, "!").unwrap(), format!("{name}!"));
        }
        let listing = home.json(&["port", "list"]);
        let forwards = listing["forwards"].as_array().unwrap();
        let listed: Vec<(Value, u16)> = forwards
            .iter()
            .map(|item| (item["vault"].clone(), port_of(item)))
            .collect();
        let expected: Vec<(Value, u16)> = names
            .iter()
            .map(|name| json!(name))
            .zip(ports.clone())
            .collect();
        assert_eq!(listed, expected, "{listing:#}");
        // Each sandbox has a loopback interface of its own.
        let own = "import socket; print(socket.create_connection(('127.0.0.1', 3000)).recv(100).decode())";
        let result = exec(home, &["--vault", "fork-7", "--", "python3", "-c", own]);
        assert_eq!(result["stdout"], "fork-7\n", "{result:#}");
        let result = exec(home, &["--vault", "v", "--", "python3", "-c", own]);
        assert!(
            result["stderr"]
                .as_str()
                .unwrap()
                .contains("ConnectionRefused")
        );
    });
}

#[test]
fn listeners_are_found_with_their_commands() {
    with_vault(AVFS, |home| {
        let nothing = home.json(&["port", "list"]);
        let empty = json!({"forwards": [], "listening": [], "listening_truncated": false});
        assert_eq!(nothing, empty);
        assert_eq!(
            home.ok(&["port", "list"]),
            "no port is forwarded, and no command listens\n"
        );
        serve(home, "v", "3000");
        start(home, "v", &["python3", "/server.py", "4000", "::"]);
        await_listener(home, "v", "4000");
        let listing = home.json(&["port", "list"]);
        let jobs = home.json(&["job", "list"])["jobs"].clone();
        let exec = |index: usize| json!([jobs[index]["exec"]]);
        // The newest job is the first.
        assert_eq!(
            listing["listening"],
            json!([
                {"vault": "v", "guest": "3000", "address": "127.0.0.1:3000", "execs": exec(1)},
                {"vault": "v", "guest": "4000", "address": "[::]:4000", "execs": exec(0)},
            ]),
        );
        let other = home.json(&["vault", "create", "other"]);
        assert!(other.is_object());
        assert_eq!(home.json(&["port", "list", "--vault", "other"]), empty);
        // By IPv6 only.
        assert_eq!(ask(forward(home, "v", "4000"), "").unwrap(), "v");
    });
}

#[test]
fn unix_sockets_are_reached() {
    with_vault(AVFS, |home| {
        for guest in ["/run/app.sock", "/tmp/app.sock", "/workspace.sock"] {
            serve(home, "v", guest);
            let port = forward(home, "v", guest);
            assert_eq!(ask(port, " by path").unwrap(), "v by path", "{guest}");
        }
        // A link leads nowhere but inside.
        home.shell("ln -s /workspace.sock /link");
        assert_eq!(ask(forward(home, "v", "/link"), "").unwrap(), "v");
        let listing = home.json(&["port", "list"]);
        let found = listing["listening"].as_array().unwrap().iter();
        let found: Vec<(&Value, &Value)> = found.map(|it| (&it["guest"], &it["address"])).collect();
        let path = |text: &str| json!(text);
        let paths = [
            path("/run/app.sock"),
            path("/tmp/app.sock"),
            path("/workspace.sock"),
        ];
        let expected: Vec<_> = paths.iter().map(|path| (path, &Value::Null)).collect();
        assert_eq!(found, expected, "{listing:#}");
    });
}

#[test]
fn a_server_in_a_read_only_command_is_reached() {
    with_vault(AVFS, |home| {
        serve(home, "v", "3000");
        let words = [
            "job",
            "start",
            "--readonly",
            "--",
            "python3",
            "/server.py",
            "4000",
        ];
        let answer = home.json(&words);
        assert_eq!(answer["status"], "started", "{answer:#}");
        await_listener(home, "v", "4000");
        assert_eq!(ask(forward(home, "v", "4000"), "").unwrap(), "v");
        assert_eq!(ask(forward(home, "v", "3000"), "").unwrap(), "v");
    });
}
