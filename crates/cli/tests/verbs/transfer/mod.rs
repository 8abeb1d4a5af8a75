//! In and out, and how the command line behaves: the binary driven as a user would.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod back;
mod bad_input;
mod disk;
mod exchange;
mod exports;
mod hooks;
mod imports;
mod leftovers;
mod manners;

use avfs_testkit::Home;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");

/// Does `check` in a fresh home of every kind of user, with a vault `v` in it.
fn with_vault(check: impl Fn(&Home)) {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        check(&home);
    }
}

/// A path beneath the home's own directory.
fn at(home: &Home, name: &str) -> PathBuf {
    home.path().join(name)
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Makes everything beneath `path` belong to the home's user.
fn give(home: &Home, path: &Path) {
    use std::os::unix::fs::MetadataExt;
    let owner = home.path().metadata().unwrap().uid();
    let mut command = Command::new("chown");
    let status = command.args(["-R", "-h", &format!("{owner}:{owner}")]);
    assert!(status.arg(path).status().unwrap().success());
}

/// A project with one of everything, owned by the home's user.
fn project(home: &Home) -> PathBuf {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = at(home, "project");
    for (name, text) in [
        ("README", "read me\n"),
        ("src/main.py", "print('hello')\n"),
        ("src/deep/er/x", ""),
        ("--version", "a name like an option"),
        ("run.sh", "#!/bin/sh\necho run\n"),
    ] {
        write(&dir, name, text);
    }
    fs::write(dir.join("big"), "0123456789abcdef".repeat(200_000)).unwrap();
    fs::set_permissions(dir.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(dir.join("README"), PermissionsExt::from_mode(0o600)).unwrap();
    symlink("src/main.py", dir.join("link")).unwrap();
    symlink("/no/where", dir.join("src/dangling")).unwrap();
    fs::hard_link(dir.join("README"), dir.join("src/README.too")).unwrap();
    fs::create_dir(dir.join("empty")).unwrap();
    give(home, &dir);
    // What changed in the last 20 ms would not be trusted by the next import.
    std::thread::sleep(std::time::Duration::from_millis(60));
    dir
}

/// Runs a host command in `dir`, which must succeed.
fn host(dir: &Path, words: &[&str]) {
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// The error of a command that must fail; says which.
fn refused<S: AsRef<std::ffi::OsStr>>(home: &Home, words: &[S]) -> (String, Value) {
    let answer = home.json(words);
    let shown: Vec<_> = words
        .iter()
        .map(|word| word.as_ref().to_string_lossy())
        .collect();
    let kind = answer["error"].as_str();
    let kind = kind.unwrap_or_else(|| panic!("{shown:?} was accepted: {answer}"));
    assert!(
        !answer["message"].as_str().unwrap().is_empty(),
        "{shown:?}: {answer}"
    );
    (kind.to_owned(), answer)
}

/// What says that a vault has not changed.
fn state(home: &Home) -> (Value, Value) {
    let info = home.json(&["vault", "info"]);
    (info["root"].clone(), info["version"].clone())
}
