//! Forks part ways with their source, and a diff tells how.

use crate::{changes, with_vault};

#[test]
fn a_fork_and_its_source_part_ways() {
    with_vault(|home| {
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
