//! gc, prune, stats and maintain.

use crate::AVFS;
use avfs_testkit::with_vault;
use serde_json::Value;

fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("no number {key} in {value}"))
}

/// A vault with five versions of a file of 20,000 bytes that does not compress.
fn with_history(check: impl Fn(&avfs_testkit::Home)) {
    with_vault(AVFS, |home| {
        for _ in 0..5 {
            let envelope = home.shell("head -c 20000 /dev/urandom > /f");
            assert_eq!(envelope["success"], true, "{envelope}");
        }
        check(home);
    });
}

#[test]
fn what_is_pruned_goes_with_the_next_gc() {
    with_history(|home| {
        assert_eq!(number(&home.json(&["gc"]), "orphans_deleted"), 0);
        let dry = home.json(&["prune", "--keep", "1", "--dry-run"]);
        assert_eq!(
            (number(&dry, "versions_deleted"), &dry["dry_run"]),
            (5, &Value::Bool(true))
        );
        let pruned = home.json(&["prune", "--keep", "1"]);
        assert_eq!(number(&pruned, "versions_deleted"), 5);
        assert!(number(&pruned, "checkpoints_deleted") >= 4, "{pruned}");

        let dry = home.json(&["gc", "--dry-run"]);
        assert_eq!(number(&dry, "orphans_deleted"), 0);
        assert!(number(&dry, "bytes_freed") > 60_000, "{dry}");
        let stats = home.json(&["stats"]);
        assert_eq!(stats["orphaned_bytes"], dry["bytes_freed"]);
        let gone = home.json(&["gc"]);
        assert_eq!(gone["bytes_freed"], dry["bytes_freed"]);
        assert_eq!(gone["orphans_deleted"], dry["orphans_found"]);
        assert!(!home.ok(&["cat", "/f"]).is_empty());
        assert_eq!(home.json(&["fsck"])["clean"], true);
        let stats = home.json(&["stats"]);
        assert_eq!(
            (number(&stats, "files"), number(&stats, "orphaned_blobs")),
            (1, 0)
        );
        assert_eq!(stats["vaults"][0]["name"], "v");
        assert!(number(&stats, "disk_bytes") > 0);
    });
}

#[test]
fn a_deleted_vault_is_given_up_only_after_its_grace() {
    with_history(|home| {
        home.ok(&["vault", "delete", "v"]);
        let kept = home.json(&["gc"]);
        assert_eq!(kept["vaults_recoverable"][0]["name"], "v", "{kept}");
        assert_eq!(number(&kept, "orphans_deleted"), 0);
        let said = home.ok(&["gc", "--dry-run", "--explain"]);
        assert!(said.contains("deleted vault v"), "{said}");
        home.ok(&["vault", "undelete", "v"]);
        home.ok(&["vault", "delete", "v"]);
        let gone = home.json(&["gc", "--grace", "0"]);
        assert_eq!(gone["vaults_forgotten"][0], "v", "{gone}");
        assert!(number(&gone, "bytes_freed") > 90_000, "{gone}");
        assert!(number(&gone, "packs_rewritten") > 0, "{gone}");
        assert_eq!(home.json(&["vault", "undelete", "v"])["error"], "NotFound");
        assert_eq!(home.json(&["fsck"])["clean"], true);
    });
}

#[test]
fn a_live_view_keeps_what_it_stands_on() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "first"]);
        // The view is open from here on, over this state.
        assert_eq!(
            home.shell("echo second > /g; cat /f")["result"]["stdout"],
            "first"
        );
        home.shell("rm /f; echo third > /h");
        home.ok(&["prune", "--keep", "1"]);
        home.ok(&["gc", "--grace", "0"]);
        let envelope = home.shell("cat /g /h; test ! -e /f && echo gone");
        assert_eq!(
            envelope["result"]["stdout"], "second\nthird\ngone\n",
            "{envelope}"
        );
        assert_eq!(home.json(&["fsck"])["clean"], true);
    });
}

#[test]
fn maintain_does_it_all() {
    with_history(|home| {
        let done = home.json(&["maintain", "--keep", "1"]);
        assert_eq!(number(&done, "versions_pruned"), 5, "{done}");
        assert!(number(&done, "bytes_freed_gc") > 60_000, "{done}");
        assert!(number(&done, "final_blobs") < number(&done, "initial_blobs"));
        assert!(
            number(&done, "final_size_bytes") < number(&done, "initial_size_bytes"),
            "{done}"
        );
        let again = home.json(&["maintain", "--skip-gc"]);
        assert_eq!(number(&again, "orphans_deleted"), 0);
        assert_eq!(home.json(&["fsck"])["clean"], true);
    });
}

#[test]
fn compact_gives_back_what_garbage_left() {
    with_history(|home| {
        home.ok(&["prune", "--keep", "1"]);
        let done = home.json(&["compact"]);
        let (before, after) = (number(&done, "size_before"), number(&done, "size_after"));
        assert_eq!(number(&done, "bytes_freed"), before - after, "{done}");
        assert!(done["size_after_human"].is_string(), "{done}");
        assert!(home.ok(&["compact"]).contains("on disk"));
        assert_eq!(home.json(&["fsck"])["clean"], true);
    });
}

#[test]
fn wrong_words_are_refused() {
    with_vault(AVFS, |home| {
        for words in [
            &["prune"][..],
            &["prune", "--keep", "1", "--older-than", "2"],
            &["gc", "--grace", "-1"],
            &["quota", "set", "max_everything", "1"],
        ] {
            assert_eq!(home.avfs(words).status.code(), Some(2), "{words:?}");
        }
        assert_eq!(home.json(&["prune", "--keep", "0"])["error"], "Invalid");
    });
}
