//! Commands: what `proxy exec`, jobs and terminals do and report, which rules and approvals hold them, and whether the
//! tools of every day work in them.
//!
//! Belongs here: whatever starts a command and looks at its report. What a view shows, to a command or on the host, is
//! `views`; what is left after something was killed is `faults`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod boundary;
mod concurrency;
mod crowd;
mod defaults;
mod everyday;
mod faults;
mod interrupts;
mod jobs;
mod lending;
mod manners;
mod offline;
mod options;
mod own_names;
mod ports;
mod reports;
mod repositories;
mod rules;
mod secrets;
mod settings;
mod sharing;
mod streams;
mod terminals;
mod toolchains;
mod tools;

use avfs_testkit::Home;
use serde_json::Value;

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");

/// The result of `avfs --json exec WORDS`.
fn exec(home: &Home, words: &[&str]) -> Value {
    let words = [&["exec"], words].concat();
    let mut envelope = home.json(&words);
    assert!(envelope["result"].is_object(), "{words:?}: {envelope}");
    envelope["result"].take()
}

/// The error kind of `avfs --json exec WORDS`, which must be refused.
fn refused(home: &Home, words: &[&str]) -> String {
    home.refused(&[&["exec"], words].concat()).0
}

fn text(result: &Value) -> &str {
    result["stdout"].as_str().expect("a text")
}

/// The texts in a JSON array.
fn texts(value: &Value) -> Vec<&str> {
    let items = value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no array"));
    items
        .iter()
        .map(|item| item.as_str().expect("a text"))
        .collect()
}
