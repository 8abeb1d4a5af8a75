//! Every request, answer and queue has a bound, whoever asks: an agent can neither read the host through the daemon nor
//! use the daemon up.

mod answers;
mod commands;
mod content;
mod documents;
mod floods;
mod places;

use avfs_testkit::{Home, status_kib};
use std::path::Path;
use std::process::Output;

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

/// Sends a request with a whole body in the agent's class; gives the answer as it came.
fn ask(socket: &Path, method: &str, address: &str, body: &[u8]) -> String {
    avfs_testkit::ask(socket, &["avfs-class: agent"], (method, address), body)
}

/// The most memory that the daemon ever had for itself, in MiB. Pages of its program, which a debug build has many of, are
/// the kernel's to take back.
fn most_memory(home: &Home) -> u64 {
    let pid = home.daemon_pid().expect("it runs");
    (status_kib(pid, "VmHWM:") - status_kib(pid, "RssFile:")) / 1024
}
