//! A change of the list reaches commands that run, and their open connections.

use crate::servers::Echo;
use crate::{agent, with_names};
use avfs_testkit::{Home, SOON, wait_for};
use serde_json::Value;

const A: &str = "127.0.0.1 a.example.test";

/// Connects again and again, and says what has become of it whenever that changes.
const LOOP: &str = "
import socket, sys, time
was = None
while True:
    try:
        with socket.create_connection((sys.argv[1], int(sys.argv[2])), 20) as stream:
            stream.sendall(b'loop\\n')
            now = 'open' if stream.recv(5) else 'shut'
    except OSError:
        now = 'shut'
    if now != was:
        print(now, flush=True)
        was = now
    time.sleep(0.02)
";

/// Holds one connection, and says when it ends.
const HOLD: &str = "
import socket, sys
stream = socket.create_connection((sys.argv[1], int(sys.argv[2])), 60)
stream.sendall(b'held\\n')
print(stream.recv(5).decode(), flush=True)
try:
    print('ended', stream.recv(5), flush=True)
except OSError as error:
    print('cut', error, flush=True)
";

fn start(home: &Home, words: &[&str]) -> String {
    let answer = home.json(&[&["job", "start"], words].concat());
    assert_eq!(answer["status"], "started", "{answer:#}");
    answer["job_id"].to_string()
}

/// Waits until a job has written this.
#[track_caller]
fn written(home: &Home, job: &str, text: &str) {
    let mut polled = Value::Null;
    let has = wait_for(SOON, || {
        polled = home.json(&["job", "poll", job]);
        polled["stdout"]
            .as_str()
            .is_some_and(|all| all.ends_with(text))
    });
    assert!(has, "it never wrote {text:?}: {polled:#}");
}

#[test]
fn a_job_loses_and_gets_its_network_while_it_runs() {
    with_names(&[A], |world| {
        let (home, echo) = (&world.home, Echo::start());
        let port = echo.port.to_string();
        home.ok(&["write", "/loop.py", LOOP]);
        // A warm sandbox, in which something ran before.
        home.ok(&["exec", "--", "true"]);
        let job = start(
            home,
            &["--", "python3", "/loop.py", "a.example.test", &port],
        );
        written(home, &job, "shut\n");
        let hosts = [
            format!("a.example.test:{port}"),
            format!("127.0.0.1:{port}"),
        ];
        let said = home.ok(&["network", "allow", &hosts[0], &hosts[1]]);
        assert!(
            said.contains("by a proxy only: the host's loopback"),
            "{said}"
        );
        written(home, &job, "shut\nopen\n");
        home.ok(&["network", "set", "none"]);
        written(home, &job, "open\nshut\n");
        home.ok(&[
            "vault",
            "set",
            &format!("network={},{}", hosts[0], hosts[1]),
        ]);
        written(home, &job, "shut\nopen\n");
        // An agent can take it away as well.
        let left = agent(home, &["network", "deny", &hosts[1]]);
        assert_eq!(left["hosts"].as_array().unwrap().len(), 1, "{left}");
        written(home, &job, "open\nshut\n");
        home.ok(&["job", "kill", &job]);
    });
}

#[test]
fn an_open_connection_is_cut() {
    with_names(&[A], |world| {
        let (home, echo) = (&world.home, Echo::start());
        let port = echo.port.to_string();
        home.ok(&["write", "/hold.py", HOLD]);
        let list = format!("a.example.test:{port},127.0.0.1:{port}");
        home.ok(&["network", "set", &list]);
        let job = start(
            home,
            &["--", "python3", "/hold.py", "a.example.test", &port],
        );
        written(home, &job, "held\n\n");
        home.ok(&["network", "set", "none"]);
        let ended = home.json(&["job", "wait", &job, "--timeout", "60s"]);
        assert_eq!(ended["running"], false, "{ended:#}");
        let said = home.ok(&["job", "logs", &job]);
        assert!(said.contains("cut") || said.contains("ended b''"), "{said}");
        assert!(
            wait_for(SOON, || echo.seen.has("closed")),
            "{:?}",
            echo.seen.all()
        );
    });
}

/// What a job tried is in the journal while it runs, and what its entries say adds up to what it did.
#[test]
fn attempts_of_a_job_are_journaled_while_it_runs() {
    with_names(&[A], |world| {
        let (home, echo) = (&world.home, Echo::start());
        let port = echo.port.to_string();
        home.ok(&["write", "/loop.py", LOOP]);
        let list = format!("a.example.test:{port},127.0.0.1:{port}");
        home.ok(&["network", "set", &list]);
        let words = ["--", "python3", "/loop.py", "a.example.test", &port];
        let job = start(home, &words);
        let logged = || home.json(&["network", "log"])["execs"].clone();
        assert!(
            wait_for(SOON, || logged().to_string().contains("a.example.test")),
            "{:#}",
            logged()
        );
        let polled = home.json(&["job", "poll", &job]);
        assert_eq!(polled["running"], true, "{polled:#}");
        // A refusal is another kind, which is told of as well.
        home.ok(&["network", "set", "none"]);
        assert!(
            wait_for(SOON, || logged().to_string().contains("default:not-listed")),
            "{:#}",
            logged()
        );
        home.ok(&["job", "kill", &job]);
        home.json(&["job", "wait", &job, "--timeout", "60s"]);
        // One record, whose sums are those of the report, though the journal has several entries.
        let execs = logged();
        assert_eq!(execs.as_array().unwrap().len(), 1, "{execs:#}");
        let connected = echo.seen.all();
        let connected = connected.iter().filter(|it| *it == "connected").count();
        let allowed = execs[0]["allowed"].as_array().unwrap();
        let allowed = allowed.iter().filter(|it| it["port"] == echo.port);
        let counted: u64 = allowed.map(|it| it["count"].as_u64().unwrap()).sum();
        assert_eq!(counted, connected as u64, "{execs:#}");
        let journal = home.json(&["audit", "--limit", "100"]);
        let entries = journal.to_string().matches("exec_network").count();
        assert!((2..=10).contains(&entries), "{journal:#}");
    });
}

/// A list of the command's own is not the vault's, so a change of the vault's leaves it.
#[test]
fn the_owners_own_list_for_one_command_stays() {
    with_names(&[A], |world| {
        let (home, echo) = (&world.home, Echo::start());
        let port = echo.port.to_string();
        home.ok(&["write", "/loop.py", LOOP]);
        let list = format!("a.example.test:{port},127.0.0.1:{port}");
        let words = [
            "--network",
            &list,
            "--",
            "python3",
            "/loop.py",
            "a.example.test",
            &port,
        ];
        let job = start(home, &words);
        written(home, &job, "open\n");
        home.ok(&["network", "set", "c.example.test"]);
        home.ok(&["network", "set", "none"]);
        let seen = echo.seen.all().len();
        assert!(wait_for(SOON, || echo.seen.all().len() > seen + 10));
        assert_eq!(home.ok(&["job", "logs", &job]), "open\n");
        home.ok(&["job", "kill", &job]);
    });
}

/// Says whenever the number of certificates in the two files changes.
const WATCH: &str = "
import time
was = None
while True:
    now = [open('/etc/agentvfs/' + name).read().count('BEGIN CERT') for name in ('authority.pem', 'authorities.pem')]
    if now != was:
        print(*now, flush=True)
        was = now
    time.sleep(0.02)
";

/// A sandbox has no authority of its own until TLS is opened in it; then commands that run already find it.
#[test]
fn a_job_finds_the_authority_that_is_made_when_tls_is_opened() {
    with_names(&[A], |world| {
        let home = &world.home;
        home.ok(&["write", "/watch.py", WATCH]);
        let job = start(home, &["--", "python3", "/watch.py"]);
        let mut before = String::new();
        let said = wait_for(SOON, || {
            let polled = home.json(&["job", "poll", &job]);
            before = polled["stdout"].as_str().unwrap_or_default().to_owned();
            before.ends_with('\n')
        });
        assert!(said);
        let (own, all) = before.trim().split_once(' ').unwrap();
        assert_eq!(own, "0");
        let all: u32 = all.parse().unwrap();
        home.ok(&["network", "set", "a.example.test"]);
        let answer = home.ok(&["exec", "--", "cat", "/etc/agentvfs/authority.pem"]);
        assert_eq!(answer, "");
        home.ok(&["network", "inspect", "a.example.test", "GET /"]);
        written(home, &job, &format!("1 {}\n", all + 1));
        let ours = home.ok(&["exec", "--", "cat", "/etc/agentvfs/authority.pem"]);
        assert!(ours.contains("BEGIN CERTIFICATE"), "{ours}");
        // Another sandbox has another one, and nobody inside can change it.
        home.ok(&["vault", "fork", "v", "other"]);
        let read = [
            "--vault",
            "other",
            "exec",
            "--",
            "cat",
            "/etc/agentvfs/authority.pem",
        ];
        let other = home.ok(&read);
        assert!(
            other.contains("BEGIN CERTIFICATE") && other != ours,
            "{other}"
        );
        let words = ["exec", "--", "touch", "/etc/agentvfs/authority.pem"];
        let refused = home.json(&words);
        assert_ne!(refused["result"]["exit_code"], 0, "{refused:#}");
        home.ok(&["job", "kill", &job]);
    });
}
