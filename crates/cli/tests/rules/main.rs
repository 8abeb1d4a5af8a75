//! Rules, classes and approvals, through the real binary.

mod files;

use avfs_testkit::Home;
use serde_json::Value;

const BIN: &str = env!("CARGO_BIN_EXE_avfs");

fn homes() -> Vec<Home> {
    Home::of_every_user(BIN)
}

fn home() -> Home {
    Home::new(BIN)
}

/// Runs the binary, which must end with this code; gives what it printed.
fn ends_with(home: &Home, code: i32, words: &[&str]) -> String {
    let output = home.avfs(words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "avfs {words:?}\n{text}");
    text
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} in {value:#}"))
}
