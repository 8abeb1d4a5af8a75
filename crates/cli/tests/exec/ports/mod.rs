//! Ports of the host that lead to servers in vaults.
//!
//! Who may lie: a server that sends without end, never answers, never accepts, or gives its socket any name; a client on
//! the host that opens connections without end; an agent that wants a port of the host.

mod databases;
mod hostile;
mod lives;
mod refusals;
mod serving;

use avfs_testkit::{Home, SOON, wait_for};
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A server on a port, or at a path, which answers each connection with the content of `/name` and what it was sent.
const SERVER: &str = r#"
import os, socket, sys, threading
where = sys.argv[1]
if where.startswith("/"):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
    listener.listen(1024)
else:
    listener = socket.create_server((sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1", int(where)), backlog=1024,
        family=socket.AF_INET6 if ":" in sys.argv[-1] else socket.AF_INET)
def serve(client):
    with client:
        client.sendall(open("/name", "rb").read())
        while data := client.recv(65536):
            client.sendall(data)
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
"#;

/// Starts a job in a vault; gives its number.
fn start(home: &Home, vault: &str, words: &[&str]) -> String {
    let words = [&["--vault", vault, "job", "start", "--"], words].concat();
    let answer = home.json(&words);
    assert_eq!(answer["status"], "started", "{words:?}: {answer:#}");
    answer["job_id"].as_u64().expect("a number").to_string()
}

/// Starts the server in a vault, and waits until it listens.
fn serve(home: &Home, vault: &str, guest: &str) -> String {
    home.ok(&["--vault", vault, "write", "/server.py", SERVER]);
    home.ok(&["--vault", vault, "write", "/name", vault]);
    let job = start(home, vault, &["python3", "/server.py", guest]);
    await_listener(home, vault, guest);
    job
}

fn await_listener(home: &Home, vault: &str, guest: &str) {
    let mut listing = Value::Null;
    let listens = wait_for(SOON, || {
        listing = home.json(&["port", "list", "--vault", vault]);
        let found = listing["listening"].as_array().expect("a list");
        found.iter().any(|item| item["guest"] == guest)
    });
    let jobs = home.json(&["job", "list"]);
    assert!(listens, "nothing listens on {guest}: {listing:#} {jobs:#}");
}

/// Forwards a free port of the host; gives it.
fn forward(home: &Home, vault: &str, guest: &str) -> u16 {
    let opened = home.json(&["port", "forward", vault, guest]);
    assert_eq!(opened["listen"], "127.0.0.1", "{opened}");
    assert_eq!(
        (&opened["vault"], &opened["guest"]),
        (&vault.into(), &guest.into())
    );
    port_of(&opened)
}

fn port_of(item: &Value) -> u16 {
    let port = item["host_port"]
        .as_u64()
        .unwrap_or_else(|| panic!("{item} has no port"));
    u16::try_from(port).unwrap()
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

/// What the server answers to this.
fn ask(port: u16, text: &str) -> io::Result<String> {
    let mut stream = connect(port);
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// How a connection ends to which nobody answers.
fn fate(port: u16) -> io::ErrorKind {
    match TcpStream::connect(("127.0.0.1", port)) {
        Err(error) => error.kind(),
        Ok(mut stream) => {
            stream
                .set_read_timeout(Some(Duration::from_secs(60)))
                .unwrap();
            match stream.read(&mut [0]) {
                Ok(0) => io::ErrorKind::UnexpectedEof,
                Ok(_) => panic!("somebody answers on port {port}"),
                Err(error) => error.kind(),
            }
        }
    }
}
