//! Forks part ways with their source, and a diff tells how.

use crate::AVFS;
use avfs_testkit::with_vault;
use serde_json::Value;

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

#[test]
fn a_fork_and_its_source_part_ways() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "old"]);
        home.ok(&["vault", "fork", "v", "f", "--use"]);
        home.shell("echo new > /f; mkdir /d; echo x > /d/x");
        assert_eq!(home.ok(&["--vault", "v", "cat", "/f"]), "old");
        let diff = home.json(&["diff"]);
        assert_eq!(
            changes(&diff),
            ["created /d", "created /d/x", "modified /f"]
        );
        let diff = home.json(&["diff", "vault:v", "HEAD", "--patch"]);
        let patch = diff["patch"].as_str().unwrap();
        assert!(patch.contains("-old") && patch.contains("+new"), "{patch}");
        assert_eq!(
            home.json(&["--vault", "v", "diff", "HEAD", "HEAD"])["identical"],
            true
        );
    });
}
