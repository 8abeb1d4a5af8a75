//! Who may try to get at a secret: the command, the agent, another user, whoever has a copy of the home.

use super::servers::Server;
use super::{CANARY, run, set, set_value};
use crate::{AVFS, text};
use avfs_testkit::{Home, with_vault};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The variables by which a program of an agent is known.
fn as_agent(home: &Home, words: &[&str]) -> Value {
    let mut command = home.command(&[&["--json"], words].concat());
    let output = command.env("AVFS_CLASS", "agent").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_command_gets_it_sent_to_its_host_alone() {
    with_vault(AVFS, |home| {
        let (own, other) = (Server::plain("127.0.0.1:0"), Server::plain("127.0.0.1:0"));
        let (host, elsewhere) = (own.address.to_string(), other.address.to_string());
        set(home, &["TOKEN", "--host", &host, "--allow-plain-http"]);
        home.ok(&["network", "set", &format!("{host},{elsewhere}")]);
        let attempts = [
            // The placeholder at another host.
            format!(
                "curl -sS -H \"Authorization: Bearer $TOKEN\" {}",
                other.url("/")
            ),
            // Sent there by its own host.
            format!(
                "curl -sSL --location-trusted {}",
                own.url(&format!("/to?{}", other.url("/")))
            ),
            // Another name in the request than the one that is dialled.
            format!("curl -sS -H 'Host: {host}' {}", other.url("/")),
            format!("curl -sS --connect-to {host}:{elsewhere} {}", own.url("/")),
            // Answered with the request itself.
            format!("curl -sS -X TRACE {}", own.url("/echo")),
            // A second header of the name, and one that is smuggled behind a line end.
            format!(
                "curl -sS -H 'Authorization: a' -H 'authorization: b' {}",
                own.url("/")
            ),
            format!(
                "exec 3<>/dev/tcp/127.0.0.1/808; printf 'GET {} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\nX: y\\nHost: {elsewhere}\\r\\n\\r\\n' >&3; cat <&3",
                own.url("/")
            ),
        ];
        for attempt in &attempts {
            let result = run(home, attempt);
            assert!(!text(&result).contains(CANARY), "{attempt}: {result}");
        }
        assert!(!other.received(CANARY), "{:?}", other.heads());
        assert!(other.received("avfs-secret-TOKEN"), "{:?}", other.heads());
        assert!(!own.heads().iter().any(|head| head.starts_with("TRACE")));
        for head in own.heads() {
            let lines = head.to_lowercase();
            assert_eq!(lines.matches("authorization:").count(), 1, "{head}");
        }
    });
}

#[test]
fn plain_http_is_refused_unless_it_is_allowed() {
    with_vault(AVFS, |home| {
        let server = Server::plain("127.0.0.1:0");
        let port = server.address.port();
        set(home, &["TOKEN", "--host", "localhost"]);
        home.ok(&[
            "network",
            "set",
            &format!("localhost,localhost:{port},127.0.0.1:{port}"),
        ]);
        let url = format!("http://localhost:{port}/");
        let result = run(
            home,
            &format!("curl -sS -H \"Authorization: $TOKEN\" {url}"),
        );
        assert!(
            text(&result).contains("default:secret-over-plain-http"),
            "{result}"
        );
        let result = run(
            home,
            &format!("curl -sS -o /dev/null -w '%{{http_code}}' {url}"),
        );
        assert_eq!(
            text(&result),
            "404",
            "without the header it is a request like any other"
        );
        assert!(!server.received("uthorization"), "{:?}", server.heads());
    });
}

#[test]
fn an_agent_neither_sees_nor_sets_secrets() {
    with_vault(AVFS, |home| {
        let server = Server::plain("127.0.0.1:0");
        let host = server.address.to_string();
        set(
            home,
            &[
                "TOKEN",
                "--host",
                &host,
                "--allow-plain-http",
                "--vault",
                "v",
            ],
        );
        home.ok(&["network", "set", &host]);
        for words in [
            &["secret", "list"][..],
            &["secret", "rm", "TOKEN"],
            &["secret", "set", "MINE", "--host", &host],
        ] {
            assert_eq!(as_agent(home, words)["error"], "Denied", "{words:?}");
        }
        // A fork has another name, so it has no secret, and nothing of one is in it.
        assert!(as_agent(home, &["vault", "fork", "v", "mine"])["error"].is_null());
        let ask = format!("echo \"[$TOKEN]\"; curl -sS {}", server.url("/"));
        let exec = ["exec", "--env=NO_PROXY=-", "--env=no_proxy=-"];
        let forked = [&["--vault", "mine"], &exec[..], &["--shell", &ask]].concat();
        let forked = as_agent(home, &forked);
        assert!(
            forked["result"]["stdout"]
                .as_str()
                .unwrap()
                .starts_with("[]\n"),
            "{forked}"
        );
        assert!(!server.received(CANARY));
        // One that is made for a single command is that of its vault.
        let words = [&["--vault", "v"], &exec[..], &["--fork", "--shell", &ask]].concat();
        let own = as_agent(home, &words);
        assert!(
            own["result"]["stdout"]
                .as_str()
                .unwrap()
                .contains("avfs-secret"),
            "{own}"
        );
        assert!(server.received(CANARY));
        assert!(!own.to_string().contains(CANARY));
    });
}

#[test]
fn a_copied_home_tells_nothing_and_says_so() {
    with_vault(AVFS, |home| {
        set(home, &["TOKEN", "--host", "api.example.test"]);
        home.ok(&["network", "set", "api.example.test"]);
        home.ok(&["daemon", "stop"]);
        let key = home.user_home().join(".config/agentvfs/secrets.key");
        let mode = key.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let copy = Home::new(AVFS);
        let mut copying = Command::new("cp");
        let copied = copying
            .arg("-a")
            .arg(home.avfs_home())
            .arg(copy.avfs_home());
        assert!(copied.status().unwrap().success());
        let mut own = Command::new("chown");
        let own = own.args(["-R", &rustix::process::geteuid().as_raw().to_string()]);
        assert!(own.arg(copy.avfs_home()).status().unwrap().success());
        let listed = copy.json(&["secret", "list"]);
        assert_eq!(listed["secrets"][0]["usable"], false, "{listed}");
        let refused = copy.json(&["exec", "--", "true"]);
        assert_eq!(refused["error"], "Unavailable", "{refused}");
        assert!(
            refused["hint"].as_str().unwrap().contains("avfs secret rm"),
            "{refused}"
        );
        copy.ok(&["secret", "rm", "TOKEN"]);
        copy.ok(&["exec", "--", "true"]);
        // A key that others could have read is not used.
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let refused = home.json(&["exec", "--", "true"]);
        assert!(
            refused["message"].as_str().unwrap().contains("chmod 600"),
            "{refused}"
        );
    });
}

#[test]
fn what_cannot_be_a_secret_is_refused_without_showing_it() {
    let home = Home::new(AVFS);
    let long = "x".repeat(5000);
    for (words, value) in [
        (&["A", "--host", "a.test"][..], "short"),
        (&["A", "--host", "a.test"], &*long),
        (&["A", "--host", "a.test"], "canary\tcanary"),
        (&["A", "--host", "*"], CANARY),
        (&["A", "--host", "a.test:8080"], CANARY),
        (&["A", "--host", "a.test", "--header", "Host: {}"], CANARY),
        (&["A", "--host", "a.test", "--header", "X-Key"], CANARY),
        (&["A-B", "--host", "a.test"], CANARY),
        (&["A", "--host", "a.test", "--vault", "a/b"], CANARY),
    ] {
        let output = set_value(&home, words, value);
        let shown = [output.stdout, output.stderr].concat();
        let shown = String::from_utf8_lossy(&shown);
        assert!(!output.status.success(), "{words:?}");
        assert!(
            !shown.contains("canary") && !shown.contains("xxxxx"),
            "{shown}"
        );
    }
    // From a file and from a command of the owner.
    let file = home.path().join("value");
    std::fs::write(&file, format!("{CANARY}\r\n")).unwrap();
    let file = file.to_str().unwrap();
    home.ok(&["secret", "set", "F", "--host", "a.test", "--file", file]);
    let command = format!("cat {file}");
    home.ok(&[
        "secret",
        "set",
        "C",
        "--host",
        "a.test",
        "--command",
        &command,
    ]);
    let failed = home.avfs(&[
        "secret",
        "set",
        "D",
        "--host",
        "a.test",
        "--command",
        "exit 3",
    ]);
    assert!(!failed.status.success());
    let listed = home.ok(&["secret", "list"]);
    assert!(
        listed.contains("F ") && listed.contains("C ") && !listed.contains("D "),
        "{listed}"
    );
}
