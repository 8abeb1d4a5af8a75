//! Deleting a vault, and bringing it back.

use crate::AVFS;
use avfs_testkit::with_vault;
#[test]
fn a_deleted_vault_can_be_brought_back() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "kept"]);
        home.ok(&["checkpoint", "save", "c"]);
        home.ok(&["exec", "--", "sh", "-c", "echo more > /g"]);
        let said = home.ok(&["vault", "delete", "v"]);
        assert!(said.contains("avfs vault undelete v"), "{said}");
        assert_eq!(home.json(&["vault", "list"]).as_array().unwrap().len(), 0);
        let deleted = home.json(&["vault", "list", "--deleted"]);
        assert_eq!(deleted[0]["name"], "v");
        assert!(deleted[0]["deleted_at"].is_string());

        home.ok(&["vault", "create", "v"]);
        let taken = home.json(&["vault", "undelete", "v"]);
        assert_eq!(taken["error"], "AlreadyExists", "{taken}");
        let back = home.json(&["vault", "undelete", "v", "--as", "w"]);
        assert_eq!(back["undeleted"], "w", "{back}");
        assert_eq!(home.ok(&["--vault", "w", "cat", "/f"]), "kept");
        assert_eq!(home.ok(&["--vault", "w", "cat", "/g"]), "more\n");
        let checkpoints = home.json(&["--vault", "w", "checkpoint", "list"]);
        assert_eq!(checkpoints["snapshots"][0]["name"], "c");
        home.ok(&["--vault", "w", "exec", "--", "cat", "/g"]);

        let missing = home.json(&["vault", "undelete", "nothing"]);
        assert_eq!(missing["error"], "NotFound");
        assert!(missing["hint"].as_str().unwrap().contains("--deleted"));
    });
}
