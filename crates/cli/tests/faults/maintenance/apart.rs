//! Damage stays with the vault that it is in: all others go on, and what cannot be read is named.

use super::spoil::{object_of, root_of, spoil};
use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use serde_json::Value;

/// Beside `v`, which has a checkpoint `good`, a vault `other` with something that gc can remove.
fn with_two(check: impl Fn(&Home)) {
    with_vault(AVFS, |home| {
        home.ok(&["mkdir", "/d"]);
        home.ok(&["write", "/d/f", "of v"]);
        home.ok(&["checkpoint", "save", "good"]);
        home.ok(&["write", "/d/g", "more of v"]);
        home.ok(&["vault", "create", "other"]);
        for n in 0..4 {
            home.ok(&["--vault", "other", "write", "/f", &format!("of other {n}")]);
        }
        check(home);
    });
}

fn named<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    let found = items.iter().find(|item| item[key] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}

/// All that goes through every vault answers, and says which one is damaged.
fn all_answer(home: &Home) {
    let stats = home.json(&["stats"]);
    let list = home.json(&["vault", "list"]);
    for list in [&list, &stats["vaults"]] {
        assert_eq!(named(list, "name", "v")["damaged"], true, "{list}");
        assert!(named(list, "name", "v")["damage"].is_string(), "{list}");
        assert_eq!(named(list, "name", "other")["damaged"], false, "{list}");
        assert_eq!(named(list, "name", "other")["files"], 1, "{list}");
    }
    let text = home.ok(&["vault", "list"]);
    assert!(text.contains("damaged: vault v: "), "{text}");
    assert!(home.ok(&["stats"]).contains("damaged: vault v: "));
    home.ok(&["vault", "info", "v"]);
    home.ok(&["vault", "log", "v"]);
    home.ok(&["checkpoint", "list"]);
    home.ok(&["compact"]);
    assert_eq!(home.ok(&["--vault", "other", "cat", "/f"]), "of other 3");
    let pruned = home.json(&["prune", "--all", "--keep", "1"]);
    assert_eq!(pruned["vaults_processed"], 2, "{pruned}");
}

/// gc removes nothing while something might belong to what cannot be read, and all once that is given up.
fn gc_holds_back_until_it_is_gone(home: &Home) {
    let dry = home.json(&["gc", "--dry-run"]);
    assert!(dry["orphans_found"].as_u64().unwrap() > 0, "{dry}");
    let collected = home.json(&["gc"]);
    assert_eq!(collected["orphans_deleted"], 0, "{collected}");
    let seen = &collected["held_back"][0]["seen"];
    assert_eq!(named(seen, "vault", "v")["vault"], "v", "{collected}");
    let text = home.ok(&["gc"]);
    assert!(
        text.contains("held back:") && text.contains("vault v"),
        "{text}"
    );
    assert!(home.ok(&["maintain"]).contains("held back:"));
    assert_eq!(home.ok(&["--vault", "other", "cat", "/f"]), "of other 3");

    home.ok(&["vault", "delete", "v"]);
    let collected = home.json(&["gc", "--grace", "0"]);
    assert_eq!(collected["held_back"], serde_json::json!([]), "{collected}");
    assert!(
        collected["orphans_deleted"].as_u64().unwrap() > 5,
        "{collected}"
    );
    assert_eq!(home.json(&["fsck"])["clean"], true);
    let list = home.json(&["vault", "list"]);
    assert_eq!(list[0]["damaged"], false, "{list}");
}

#[test]
fn a_damaged_root_stays_with_its_vault() {
    with_two(|home| {
        let root = root_of(home);
        spoil(home, &root);
        all_answer(home);
        let pruned = home.json(&["prune", "--all", "--keep", "1"]);
        assert_eq!(pruned["damaged"][0]["vault"], "v", "{pruned}");
        let forked = home.json(&["vault", "fork", "v", "fork"]);
        assert_eq!(forked["error"], "Corrupt", "{forked}");
        let list = home.json(&["vault", "list"]);
        assert_eq!(list.as_array().unwrap().len(), 2, "{list}");
        // Without a fork, its name is free.
        home.ok(&["vault", "fork", "v", "fork", "--checkpoint", "good"]);
        assert_eq!(home.ok(&["--vault", "fork", "cat", "/d/f"]), "of v");
        home.ok(&["vault", "delete", "fork"]);
        gc_holds_back_until_it_is_gone(home);
    });
}

#[test]
fn a_damaged_directory_stays_with_its_vault() {
    with_two(|home| {
        let tree = object_of(home, "/d");
        spoil(home, &tree);
        all_answer(home);
        let list = home.json(&["vault", "list"]);
        let damage = named(&list, "name", "v")["damage"].as_str().unwrap();
        assert!(damage.starts_with("/d: "), "{damage}");
        let collected = home.json(&["gc"]);
        let seen = &collected["held_back"][0]["seen"];
        assert_eq!(named(seen, "vault", "v")["path"], "/d", "{collected}");
        gc_holds_back_until_it_is_gone(home);
    });
}

#[test]
fn a_checkpoint_is_the_way_out_of_a_damaged_head() {
    with_two(|home| {
        let root = root_of(home);
        spoil(home, &root);
        let restored = home.json(&["checkpoint", "restore", "good"]);
        assert_eq!(restored["snapshot"], "good", "{restored}");
        assert!(restored["damage"].is_string(), "{restored}");
        assert_eq!(home.ok(&["cat", "/d/f"]), "of v");
        assert_eq!(
            home.shell("cat /d/f; echo x > /d/new")["result"]["stdout"],
            "of v"
        );
        let list = home.json(&["vault", "list"]);
        assert_eq!(named(&list, "name", "v")["damaged"], false, "{list}");
        // What it was is kept for undo, and cannot be gone back to.
        let undo = home.json(&["checkpoint", "restore", "--undo"]);
        assert_eq!(undo["error"], "Corrupt", "{undo}");
        assert_eq!(home.ok(&["cat", "/d/f"]), "of v");
        let checkpoints = home.json(&["checkpoint", "list"]);
        let broken = checkpoints["snapshots"].as_array().unwrap().iter();
        assert_eq!(broken.filter(|it| it["damage"].is_string()).count(), 1);
    });
}
