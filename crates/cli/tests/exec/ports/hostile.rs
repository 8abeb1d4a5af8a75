//! Servers and clients that mean harm.

use super::{ask, await_listener, connect, fate, forward, serve, start};
use crate::AVFS;
use avfs_testkit::{SOON, status_kib, wait_for, with_vault};
use std::io::{ErrorKind, Read, Write};

/// Sends without end, whatever it is sent.
const ENDLESS: &str = r#"
import socket, threading
listener = socket.create_server(("127.0.0.1", 3000))
def pour(client):
    try:
        while True: client.sendall(b"x" * 65536)
    except OSError: pass
while True:
    threading.Thread(target=pour, args=(listener.accept()[0],), daemon=True).start()
"#;

/// Has a full queue of connections and accepts none.
const DEAF: &str = r#"
import socket, time
listener = socket.socket()
listener.bind(("127.0.0.1", 3000))
listener.listen(0)
time.sleep(10000)
"#;

#[test]
fn endless_data_takes_no_memory_and_nobody_elses_turn() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "fork", "v", "good"]);
        start(home, "v", &["python3", "-c", ENDLESS]);
        await_listener(home, "v", "3000");
        serve(home, "good", "3000");
        let (bad, good) = (forward(home, "v", "3000"), forward(home, "good", "3000"));
        // These never read.
        let silent: Vec<_> = (0..50).map(|_| connect(bad)).collect();
        let mut reading = connect(bad);
        let mut bytes = vec![0; 32 << 20];
        reading.read_exact(&mut bytes).unwrap();
        assert_eq!(ask(good, "!").unwrap(), "good!");
        let memory = status_kib(home.daemon_pid().unwrap(), "VmRSS");
        assert!(memory < 200 * 1024, "the daemon has {memory} KiB");
        let open = |count: usize| {
            let forwards = home.json(&["port", "list", "--vault", "v"])["forwards"].clone();
            forwards[0]["connections"] == count
        };
        assert!(wait_for(SOON, || open(51)));
        drop((silent, reading));
        assert!(wait_for(SOON, || open(0)));
    });
}

#[test]
fn a_server_that_never_accepts_is_nobody_elses_trouble() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "fork", "v", "good"]);
        start(home, "v", &["python3", "-c", DEAF]);
        await_listener(home, "v", "3000");
        serve(home, "good", "3000");
        let (bad, good) = (forward(home, "v", "3000"), forward(home, "good", "3000"));
        let waiting: Vec<_> = (0..200).map(|_| connect(bad)).collect();
        assert_eq!(ask(good, "!").unwrap(), "good!");
        home.shell("echo commands begin as before");
        // Removal does not wait for them.
        home.ok(&["port", "remove", "v", "3000"]);
        for mut stream in waiting {
            assert_eq!(
                stream.read(&mut [0]).unwrap_err().kind(),
                ErrorKind::ConnectionReset
            );
        }
    });
}

#[test]
fn a_thousand_connections_at_once() {
    with_vault(AVFS, |home| {
        raise_open_files();
        serve(home, "v", "3000");
        let port = forward(home, "v", "3000");
        let mut streams: Vec<_> = (0..1000).map(|_| connect(port)).collect();
        for (number, stream) in streams.iter_mut().enumerate() {
            write!(stream, "{number:04}").unwrap();
        }
        for (number, stream) in streams.iter_mut().enumerate() {
            let mut answer = [0; 5];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, format!("v{number:04}").as_bytes());
        }
        // Beyond the bound of 1,024 a connection is reset, and those that are there go on.
        let more: Vec<_> = (0..40).map(|_| connect(port)).collect();
        let mut refused = 0;
        for mut stream in more {
            refused += usize::from(stream.read(&mut [0]).is_err());
        }
        assert_eq!(refused, 40 - 24);
        let last = streams.last_mut().unwrap();
        last.write_all(b"again").unwrap();
        last.read_exact(&mut [0; 5]).unwrap();
        drop(streams);
        assert!(wait_for(SOON, || ask(port, "").is_ok_and(|it| it == "v")));
    });
}

/// A name of a socket is any bytes, and a list of listeners has an end.
#[test]
fn listeners_have_odd_names_and_are_many() {
    const ODD: &str = r#"
import socket, time
held = []
for name in [b"/tmp/a\nb\x1b[2J", b"/tmp/\xff\xfe", b"/tmp/" + b"x" * 100]:
    held.append(socket.socket(socket.AF_UNIX)); held[-1].bind(name); held[-1].listen()
for port in range(20000, 20600):
    held.append(socket.create_server(("127.0.0.1", port)))
print("ready", flush=True)
time.sleep(10000)
"#;
    with_vault(AVFS, |home| {
        start(home, "v", &["python3", "-c", ODD]);
        let mut listing = serde_json::Value::Null;
        assert!(wait_for(SOON, || {
            listing = home.json(&["port", "list"]);
            listing["listening_truncated"] == true
        }));
        let found = listing["listening"].as_array().unwrap();
        assert!(found.len() <= 1000, "{}", found.len());
        let shown = home.ok(&["port", "list"]);
        assert!(!shown.contains('\x1b'), "{shown}");
        assert!(shown.ends_with("commands listen at more places than are listed\n"));
        let port = forward(home, "v", "20000");
        connect(port);
    });
}

/// A command cannot have a forward lead to a socket of the host.
#[test]
fn a_path_leads_nowhere_but_inside() {
    with_vault(AVFS, |home| {
        let socket = home.socket();
        let socket = socket.to_str().unwrap();
        home.shell(&format!(
            "ln -s {socket} /link; ln -s /proc/1/root{socket} /other; sleep 0"
        ));
        start(home, "v", &["sleep", "1000"]);
        for guest in [socket, "/link", "/other", "/proc/1/fd/3", "/etc/passwd"] {
            assert_eq!(
                fate(forward(home, "v", guest)),
                ErrorKind::ConnectionReset,
                "{guest}"
            );
        }
    });
}

fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}
