//! `proxy exec`: every option has its effect or is refused, and every report is true.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod concurrency;
mod crowd;
mod defaults;
mod faults;
mod options;
mod own_names;
mod settings;
mod streams;

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");

use avfs_testkit::Home;
use serde_json::Value;

/// Does `check` in a fresh home of every kind of user this test can be, with a vault `v` in it.
fn with_vault(check: impl Fn(&Home)) {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        check(&home);
    }
}

/// The result of `avfs --json exec WORDS`.
fn exec(home: &Home, words: &[&str]) -> Value {
    let words = [&["exec"], words].concat();
    let mut envelope = home.json(&words);
    assert!(envelope["result"].is_object(), "{words:?}: {envelope}");
    envelope["result"].take()
}

/// The error kind of `avfs --json exec WORDS`, which must be refused.
fn refused(home: &Home, words: &[&str]) -> String {
    let answer = home.json(&[&["exec"], words].concat());
    let kind = answer["error"].as_str();
    kind.unwrap_or_else(|| panic!("{words:?} was not refused: {answer}"))
        .to_owned()
}

fn text(result: &Value) -> &str {
    result["stdout"].as_str().expect("a text")
}
