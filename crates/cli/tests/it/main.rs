//! The binary driven as a user would: words in, text and exit code out.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod boundary;
mod daemon;
mod files;
mod homes;
mod interrupts;
mod manners;
mod memory;
mod shapes;
mod sharing;
mod tools;

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

/// `kind path` of every change in an envelope's result or a diff.
fn changes(value: &Value) -> Vec<String> {
    let items = value["changes"]
        .as_array()
        .unwrap_or_else(|| panic!("{value} has no changes"));
    let text = |item: &Value, key: &str| item[key].as_str().expect("a text").to_owned();
    items
        .iter()
        .map(|item| format!("{} {}", text(item, "kind"), text(item, "path")))
        .collect()
}
