//! The verbs on vaults and files, driven as a user would.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod files;
mod forks;
mod labels;
mod refusals;
mod search;
mod versions;

use avfs_testkit::Home;
use serde_json::Value;

/// A home with a current vault `v`.
fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_avfs"));
    home.ok(&["vault", "create", "v"]);
    home
}

/// Runs words that must fail; gives the error's kind and the whole answer.
fn refused(home: &Home, words: &[&str]) -> (String, Value) {
    let answer = home.json(words);
    let kind = answer["error"].as_str();
    let kind = kind.unwrap_or_else(|| panic!("avfs {words:?} was not refused: {answer}"));
    assert!(
        answer["message"].as_str().is_some_and(|it| !it.is_empty()),
        "{answer}"
    );
    (kind.to_owned(), answer)
}

/// The strings under `key` in a list.
fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter().map(|it| it[key].as_str().unwrap()).collect()
}
