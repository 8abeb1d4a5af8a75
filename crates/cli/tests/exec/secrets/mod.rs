//! Secrets: their hosts receive them, and nobody else finds them anywhere.

mod attacks;
mod canary;
mod servers;

use avfs_testkit::Home;
use serde_json::Value;
use std::io::Write;
use std::process::{Output, Stdio};

/// Found nowhere but at its host.
const CANARY: &str = "canary-6b1f0c9e-Sings+Nowhere";

/// Sets a secret whose value comes by standard input.
fn set_value(home: &Home, words: &[&str], value: &str) -> Output {
    let words = [&["--json", "secret", "set"], words].concat();
    let mut command = home.command(&words);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = running.stdin.take().unwrap();
    // One that is refused before it reads has closed its end.
    let _ = writeln!(input, "{value}");
    drop(input);
    running.wait_with_output().unwrap()
}

/// Sets the canary, and gives the answer.
fn set(home: &Home, words: &[&str]) -> Value {
    let output = set_value(home, words, CANARY);
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(!answer.contains("canary-"), "{answer}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{answer}{error}");
    serde_json::from_str(&answer).unwrap()
}

/// Runs shell text that uses the proxy for addresses of loopback, too; gives the result.
fn run(home: &Home, text: &str) -> Value {
    let words = ["exec", "--env=NO_PROXY=-", "--env=no_proxy=-", "--shell"];
    let mut envelope = home.json(&[&words[..], &[text]].concat());
    assert!(!envelope.to_string().contains(CANARY), "{envelope}");
    envelope["result"].take()
}
