//! Import, export and apply: what goes into a vault and comes out of it.

mod apply;
mod bad_input;
mod disk;
mod exchange;
mod exports;
mod hooks;
mod imports;
mod leftovers;
mod one_file;

use avfs_testkit::Home;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A path beneath the home's own directory.
fn at(home: &Home, name: &str) -> PathBuf {
    home.path().join(name)
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
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
    home.give(&dir);
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

/// What says that a vault has not changed.
fn state(home: &Home) -> (Value, Value) {
    let info = home.json(&["vault", "info"]);
    (info["root"].clone(), info["version"].clone())
}
