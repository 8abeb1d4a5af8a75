//! Forks of any state, lineage, names, and checkpoints there and back.

use super::{home, texts};

#[test]
fn a_fork_begins_with_any_state() {
    let home = home();
    let first = home.json(&["write", "/a", "one"])["version"].to_string();
    home.ok(&["checkpoint", "save", "cp"]);
    home.ok(&["write", "/a", "two"]);
    home.ok(&["vault", "fork", "v", "head"]);
    home.ok(&["vault", "fork", "v", "at-cp", "--checkpoint", "cp"]);
    home.ok(&["vault", "fork", "v", "at-1", "--version", &first, "--use"]);
    for (vault, text) in [("head", "two"), ("at-cp", "one"), ("at-1", "one")] {
        assert_eq!(home.ok(&["--vault", vault, "cat", "/a"]), text, "{vault}");
        let diff = home.json(&["--vault", vault, "diff"]);
        assert_eq!(diff["identical"], true, "{vault} as it began");
    }
    assert_eq!(home.ok(&["cat", "/a"]), "one", "the fork is current");
    let fork = |option: &str, value: &str| {
        let words = ["vault", "fork", "v", "x", option, value];
        home.refused(&words).0
    };
    assert_eq!(fork("--checkpoint", "none"), "NotFound");
    assert_eq!(fork("--checkpoint", "a b"), "Invalid");
    assert_eq!(fork("--version", "99"), "NotFound");
    let taken = ["vault", "fork", "v", "head"];
    assert_eq!(home.refused(&taken).0, "AlreadyExists");
    let both = [
        "vault",
        "fork",
        "v",
        "x",
        "--version",
        "1",
        "--checkpoint",
        "cp",
    ];
    assert_eq!(home.avfs(&both).status.code(), Some(2));
}

#[test]
fn a_vault_knows_where_it_comes_from() {
    let home = home();
    home.ok(&["write", "/a", "one"]);
    home.ok(&["checkpoint", "save", "cp"]);
    home.ok(&["vault", "fork", "v", "w"]);
    home.ok(&["--vault", "w", "write", "/a", "two"]);
    home.ok(&["vault", "fork", "w", "x"]);
    let info = home.json(&["vault", "info", "x"]);
    assert_eq!(info["parent"], "w");
    assert_eq!(texts(&info["lineage"], "name"), ["w", "v"]);
    assert_eq!(info["lineage"][1]["checkpoints"], serde_json::json!(["cp"]));
    assert_eq!(info["lineage"][1]["version"], 2);
    let forks = home.json(&["vault", "info", "v"])["forks"].clone();
    assert_eq!(forks, serde_json::json!(["w"]));
    let text = home.ok(&["vault", "info", "x"]);
    assert!(text.contains("w at v2 ← v at cp"), "{text}");
    home.ok(&["vault", "rename", "v", "origin"]);
    home.ok(&["vault", "delete", "w", "-y"]);
    let lineage = home.json(&["vault", "info", "x"])["lineage"].clone();
    assert_eq!(texts(&lineage, "name"), ["w"]);
    assert_eq!(lineage[0]["exists"], false);
    assert_eq!(home.json(&["--vault", "x", "diff"])["identical"], true);
}

#[test]
fn a_vault_keeps_everything_but_its_name() {
    let home = home();
    home.ok(&["write", "/a", "one"]);
    home.ok(&["checkpoint", "save", "cp"]);
    let id = home.json(&["vault", "info"])["id"].clone();
    let renamed = home.json(&["vault", "rename", "v", "w"]);
    assert_eq!(
        (&renamed["old_name"], &renamed["name"], &renamed["current"]),
        (&"v".into(), &"w".into(), &true.into())
    );
    let info = home.json(&["vault", "info"]);
    assert_eq!((&info["id"], &info["name"]), (&id, &"w".into()));
    assert_eq!(home.ok(&["cat", "/a"]), "one");
    assert_eq!(home.shell("echo $AVFS_VAULT")["result"]["stdout"], "w\n");
    assert_eq!(home.refused(&["--vault", "v", "ls"]).0, "NotFound");
    home.ok(&["vault", "create", "v"]);
    assert_eq!(
        home.refused(&["vault", "rename", "w", "v"]).0,
        "AlreadyExists"
    );
    assert_eq!(home.refused(&["vault", "rename", "w", "a/b"]).0, "Invalid");
    assert_eq!(
        home.refused(&["vault", "rename", "none", "x"]).0,
        "NotFound"
    );
}

#[test]
fn a_restore_can_be_undone_and_that_too() {
    let home = home();
    home.ok(&["write", "/d/a", "one", "-p"]);
    home.ok(&["checkpoint", "save", "cp"]);
    home.ok(&["write", "/d/a", "two"]);
    home.ok(&["mkdir", "/new"]);
    home.ok(&["checkpoint", "save", "newer"]);
    let (kind, answer) = home.refused(&["checkpoint", "restore", "--undo"]);
    assert_eq!(kind, "NotFound");
    assert!(answer["hint"].is_string());
    let restored = home.json(&["checkpoint", "restore", "cp"]);
    assert_eq!(
        (&restored["snapshot"], &restored["dirs_restored"]),
        (&"cp".into(), &1.into())
    );
    assert_eq!(restored["files_restored"], 1);
    assert_eq!(home.ok(&["cat", "/d/a"]), "one");
    let undone = home.json(&["checkpoint", "restore", "--undo"]);
    assert_eq!(undone["snapshot"], restored["undo"]);
    assert_eq!(home.ok(&["cat", "/d/a"]), "two");
    home.ok(&["checkpoint", "restore", "--undo"]);
    assert_eq!(home.ok(&["cat", "/d/a"]), "one");
    let names = home.json(&["checkpoint", "list"])["snapshots"].clone();
    let names = texts(&names, "name");
    assert!(
        names.contains(&"cp") && names.contains(&"newer"),
        "{names:?}"
    );
    assert_eq!(home.avfs(&["checkpoint", "restore"]).status.code(), Some(2));
    assert_eq!(
        home.avfs(&["checkpoint", "restore", "cp", "--undo"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_checkpoint_says_what_it_holds_and_who_began_with_it() {
    let home = home();
    home.ok(&["write", "/a", "12345"]);
    let saved = home.json(&["checkpoint", "save", "cp"]);
    assert_eq!(
        (
            &saved["file_count"],
            &saved["total_size"],
            &saved["total_size_human"]
        ),
        (&1.into(), &5.into(), &"5 B".into())
    );
    home.ok(&["write", "/a", "else"]);
    home.ok(&["vault", "fork", "v", "w", "--checkpoint", "cp"]);
    home.ok(&["vault", "fork", "v", "other"]);
    let info = home.json(&["checkpoint", "info", "cp"]);
    assert_eq!(
        (&info["name"], &info["total_size"], &info["version"]),
        (&"cp".into(), &5.into(), &2.into())
    );
    assert_eq!(info["forks"], serde_json::json!(["w"]));
    assert!(
        home.ok(&["checkpoint", "info", "cp"])
            .contains("1 file, 5 B")
    );
    let (kind, kept) = home.refused(&["checkpoint", "delete", "cp"]);
    assert_eq!(kind, "Conflict", "{kept}");
    let said = format!("{} {}", kept["message"], kept["hint"]);
    assert!(said.contains(": w") && said.contains("--force"), "{said}");
    assert!(
        !said.contains("other"),
        "it began with another state: {said}"
    );
    let deleted = home.json(&["checkpoint", "delete", "cp", "--force"]);
    assert_eq!(
        (
            &deleted["action"],
            &deleted["name"],
            &deleted["dependent_forks"]
        ),
        (&"delete".into(), &"cp".into(), &serde_json::json!(["w"]))
    );
    assert_eq!(home.ok(&["--vault", "w", "cat", "/a"]), "12345");
    assert_eq!(home.refused(&["checkpoint", "info", "cp"]).0, "NotFound");
    for name in ["a/b", "a b", "", ".x", "..", &"x".repeat(129)] {
        assert_eq!(home.refused(&["checkpoint", "save", name]).0, "Invalid");
    }
    home.ok(&["checkpoint", "save", "twice"]);
    let (kind, _) = home.refused(&["checkpoint", "save", "twice"]);
    assert_eq!(kind, "AlreadyExists");
}

#[test]
fn a_long_chain_of_forks_is_still_one_step() {
    let home = home();
    home.ok(&["write", "/a", "0"]);
    let mut last = "v".to_owned();
    for i in 1..=30 {
        let name = format!("f{i}");
        home.ok(&["vault", "fork", &last, &name]);
        home.ok(&["--vault", &name, "write", "/a", &i.to_string()]);
        last = name;
    }
    let info = home.json(&["vault", "info", &last]);
    assert_eq!(info["lineage"].as_array().unwrap().len(), 30);
    assert_eq!(info["lineage"][29]["name"], "v");
    assert_eq!(home.ok(&["cat", "/a"]), "0");
    assert_eq!(home.ok(&["--vault", "f30", "cat", "/a"]), "30");
}

#[test]
fn a_list_says_what_checkpoints_use() {
    let home = home();
    let listed = |name: &str| {
        let list = home.json(&["checkpoint", "list"]);
        let all = list["snapshots"].as_array().unwrap().clone();
        all.into_iter().find(|it| it["name"] == name).unwrap()
    };
    home.ok(&["write", "/kept", "12345"]);
    home.ok(&["write", "/changed", "1234567"]);
    home.ok(&["write", "/gone", "123"]);
    home.ok(&["checkpoint", "save", "c"]);
    let fresh = listed("c");
    assert_eq!(
        (&fresh["used_bytes"], &fresh["referenced_bytes"]),
        (&0.into(), &15.into())
    );
    home.ok(&["write", "/changed", "1"]);
    home.ok(&["rm", "/gone"]);
    home.ok(&["write", "/new", "123456789"]);
    let later = listed("c");
    assert_eq!(
        (&later["used_bytes"], &later["referenced_bytes"]),
        (&10.into(), &15.into())
    );
    assert!(home.ok(&["checkpoint", "list"]).contains("10 B"));
}
