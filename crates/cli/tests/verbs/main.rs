//! What each command of `avfs` answers: vaults, files, search, history, transfers, the daemon and its homes, and how the
//! command line speaks.
//!
//! Belongs here: words in, text and exit code out. Whatever is about a command that runs in a vault is `exec`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod basics;
mod completions;
mod daemon;
mod every_verb;
mod files;
mod forks;
mod here;
mod homes;
mod ids;
mod labels;
mod manners;
mod refusals;
mod schemas;
mod search;
mod service;
mod shapes;
mod shell;
mod story;
mod transfer;
mod versions;

use avfs_testkit::Home;
use serde_json::Value;

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");

/// A home with a current vault `v`.
fn home() -> Home {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    home
}

/// The strings under `key` in a list.
fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter().map(|it| it[key].as_str().unwrap()).collect()
}
