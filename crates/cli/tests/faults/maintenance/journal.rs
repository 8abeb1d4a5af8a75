//! The journal, filtered.

use crate::AVFS;
use avfs_testkit::{Home, with_vault};

fn operations(home: &Home, words: &[&str]) -> Vec<String> {
    let all: Vec<&str> = ["audit"].iter().chain(words).copied().collect();
    let listing = home.json(&all);
    let entries = listing["entries"]
        .as_array()
        .unwrap_or_else(|| panic!("{listing}"));
    entries
        .iter()
        .map(|entry| entry["operation"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn entries_are_found_by_vault_operation_path_and_time() {
    with_vault(AVFS, |home| {
        home.ok(&["mkdir", "/src"]);
        home.ok(&["write", "/src/a", "1"]);
        home.ok(&["write", "/src2", "2"]);
        home.ok(&["mv", "/src/a", "/b"]);
        home.ok(&["vault", "fork", "v", "w"]);
        home.ok(&["--vault", "w", "write", "/src/c", "3"]);

        let all = operations(home, &[]);
        assert_eq!(all.len(), 7, "{all:?}");
        assert_eq!(operations(home, &["--operation", "write"]), ["write"; 3]);
        assert_eq!(
            operations(home, &["--op", "vault"]),
            ["vault.fork", "vault.create"]
        );
        assert_eq!(
            operations(home, &["--path", "/src"]),
            ["write", "move", "write", "mkdir"]
        );
        assert_eq!(operations(home, &["--path", "/b"]), ["move"]);
        assert_eq!(
            operations(home, &["--path", "src", "--vault", "w"]),
            ["write"]
        );
        assert_eq!(operations(home, &["-n", "2"]).len(), 2);
        assert_eq!(operations(home, &["--since", "1h"]), all);
        assert_eq!(operations(home, &["--until", "1h"]).len(), 0);
        assert_eq!(operations(home, &["--since", "2100-01-01"]).len(), 0);
        assert_eq!(operations(home, &["--until", "2100-01-01T00:00:00Z"]), all);

        let wrong = home.json(&["audit", "--since", "yesterday"]);
        assert_eq!(wrong["error"], "Invalid");
        assert!(wrong["hint"].as_str().unwrap().contains("2h"), "{wrong}");
        home.ok(&["vault", "delete", "w"]);
        let deleted = operations(home, &["--vault", "w"]);
        assert_eq!(deleted, ["vault.delete", "write", "vault.fork"]);
        assert_eq!(
            home.json(&["audit", "--vault", "nobody"])["error"],
            "NotFound"
        );
        assert_eq!(home.json(&["audit", "verify"])["valid"], true);
    });
}
