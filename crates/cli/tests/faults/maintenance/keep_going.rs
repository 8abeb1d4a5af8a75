//! What is left of a damaged vault can be brought out, and what is not is listed.

use super::spoil::{object_of, records, spoil};
use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use serde_json::Value;
use std::fs;

const LARGE: &str = "head -c 3000000 /dev/urandom > /p/large; truncate -s 200M /p/sparse; \
    head -c 2000000 /dev/urandom | dd of=/p/sparse bs=1M seek=100 conv=notrunc 2>/dev/null";

fn paths(missing: &Value) -> Vec<String> {
    let items = missing.as_array().unwrap().iter();
    let mut paths: Vec<String> = items
        .map(|it| it["path"].as_str().unwrap().to_owned())
        .collect();
    paths.sort();
    paths
}

/// A project in which a small file with two names, all large files and a directory are damaged.
fn with_ruins(check: impl Fn(&Home)) {
    with_vault(AVFS, |home| {
        let made = home.shell(&format!(
            "mkdir -p /p/sub /p/gone; echo fine > /p/fine; echo fine too > /p/sub/fine; \
             echo bad > /p/bad; ln /p/bad /p/sub/bad; echo x > /p/gone/x; ln -s fine /p/link; {LARGE}"
        ));
        assert_eq!(made["success"], true, "{made}");
        for path in ["/p/bad", "/p/gone"] {
            spoil(home, &object_of(home, path));
        }
        for record in records(home).iter().filter(|it| it.stored > 64 << 10) {
            record.spoil();
        }
        check(home);
    });
}

const MISSING: [&str; 5] = ["bad", "gone", "large", "sparse", "sub/bad"];

#[test]
fn a_directory_is_exported_as_far_as_it_can_be_read() {
    with_ruins(|home| {
        let out = home.user_home().join("out");
        let to = out.to_str().unwrap();
        assert_eq!(home.json(&["export", "/p", to])["error"], "Corrupt");
        assert!(!out.exists(), "nothing half-done is left");
        let output = home.avfs(&["--json", "export", "/p", to, "--keep-going"]);
        assert_eq!(output.status.code(), Some(1));
        let exported: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(paths(&exported["missing"]), MISSING, "{exported}");
        assert_eq!(exported["files_exported"], 3, "{exported}");
        assert_eq!(fs::read_to_string(out.join("link")).unwrap(), "fine\n");
        assert_eq!(
            fs::read_to_string(out.join("sub/fine")).unwrap(),
            "fine too\n"
        );
        for path in ["bad", "sub/bad", "large", "sparse", "gone/x"] {
            assert!(!out.join(path).exists(), "{path}");
        }
        assert!(out.join("gone").is_dir());
        let again = home.avfs(&["export", "/p", to, "--keep-going", "--overwrite"]);
        let text = String::from_utf8_lossy(&again.stdout).into_owned();
        assert_eq!(again.status.code(), Some(1), "{text}");
        assert!(text.contains("missing: sub/bad ("), "{text}");
    });
}

#[test]
fn an_archive_holds_what_can_be_read() {
    with_ruins(|home| {
        for name in ["out.tar", "out.tar.zst"] {
            let file = home.user_home().join(name);
            let to = file.to_str().unwrap();
            assert_eq!(
                home.json(&["export", "/p", "--tar", to])["error"],
                "Corrupt"
            );
            assert!(!file.exists());
            let output = home.avfs(&["--json", "export", "/p", "--tar", to, "--keep-going"]);
            assert_eq!(output.status.code(), Some(1));
            let exported: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(paths(&exported["missing"]), MISSING, "{exported}");
            let name = format!("/{name}").replace('.', "-");
            home.ok(&["import", to, &name]);
            assert_eq!(home.ok(&["cat", &format!("{name}/sub/fine")]), "fine too\n");
            assert_eq!(
                home.json(&["cat", &format!("{name}/bad")])["error"],
                "NotFound"
            );
        }
        let stream = home.json(&["export", "/p", "--tar", "-", "--keep-going"]);
        assert_eq!(stream["error"], "Invalid", "{stream}");
    });
}

#[test]
fn a_whole_directory_misses_nothing() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "x"]);
        let out = home.user_home().join("out");
        let exported = home.json(&["export", "/", out.to_str().unwrap(), "--keep-going"]);
        assert_eq!(exported["missing"], serde_json::json!([]), "{exported}");
        assert_eq!(fs::read_to_string(out.join("f")).unwrap(), "x");
    });
}
