//! Every request, answer and queue has a bound, whoever asks: an agent can neither read the host through the daemon nor
//! use the daemon up.

mod answers;
mod commands;
mod content;
mod documents;
mod floods;
mod places;

use avfs_testkit::Home;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Output;

/// A home of each kind of user, with a vault.
fn homes() -> Vec<Home> {
    let homes = Home::of_every_user(env!("CARGO_BIN_EXE_avfs"));
    for home in &homes {
        home.ok(&["vault", "create", "v"]);
    }
    homes
}

/// Runs the binary in the agent's class.
fn as_agent(home: &Home, words: &[&str]) -> Output {
    let mut command = home.command(words);
    command.env("AVFS_CLASS", "agent");
    command.output().expect("the binary runs")
}

/// The head of a request in the agent's class.
fn head(method: &str, address: &str, more: &str) -> String {
    format!("{method} {address} HTTP/1.1\r\nhost: avfs\r\navfs-class: agent\r\n{more}\r\n\r\n")
}

fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).expect("the daemon listens");
    // Whoever is not read any more goes on with something else.
    let patience = Some(std::time::Duration::from_secs(60));
    stream.set_write_timeout(patience).expect("a socket");
    stream
}

/// Sends a request with a whole body; gives the answer as it came.
fn ask(socket: &Path, method: &str, address: &str, body: &[u8]) -> String {
    let mut stream = connect(socket);
    let length = format!("connection: close\r\ncontent-length: {}", body.len());
    let sent = stream.write_all(head(method, address, &length).as_bytes());
    sent.expect("a fresh connection takes it");
    // A daemon that has refused it reads no more of it.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The most memory that the daemon ever had for itself, in MiB. Pages of its program, which a debug build has many of, are
/// the kernel's to take back.
fn most_memory(home: &Home) -> u64 {
    let pid = home.daemon_pid().expect("it runs");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let kib = |field: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.parse().ok()).expect("a number")
    };
    (kib("VmHWM:") - kib("RssFile:")) / 1024
}
