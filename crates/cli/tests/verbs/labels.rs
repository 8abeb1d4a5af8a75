//! Labels: tags and metadata, versioned with the vault.

use super::{home, texts};
use serde_json::json;

#[test]
fn tags_come_and_go() {
    let home = home();
    home.ok(&["write", "/d/a", "x", "-p"]);
    home.ok(&["write", "/b", "x"]);
    let tagged = home.json(&["tag", "/d/a", "reviewed"]);
    assert_eq!(
        (&tagged["path"], &tagged["tag"], &tagged["action"]),
        (&"/d/a".into(), &"reviewed".into(), &"added".into())
    );
    home.ok(&["tag", "/d/a", "todo"]);
    home.ok(&["tag", "/d", "todo"]);
    let listed = home.json(&["tag", "/d/a", "--list"]);
    assert_eq!(
        listed,
        json!({ "path": "/d/a", "tags": ["reviewed", "todo"] })
    );
    let all = home.json(&["tag", "--list-all"]);
    assert_eq!(
        all,
        json!({ "count": 2, "tags": [
            { "name": "reviewed", "file_count": 1 },
            { "name": "todo", "file_count": 2 },
        ] })
    );
    let found = home.json(&["find", "--tag", "todo"]);
    assert_eq!(texts(&found["results"], "path"), ["/d", "/d/a"]);
    let found = home.json(&["find", "--tag", "todo", "--tag", "reviewed"]);
    assert_eq!(texts(&found["results"], "path"), ["/d/a"]);
    assert_eq!(home.json(&["find", "--tag", "unknown"])["count"], 0);
    let renamed = home.json(&["tag", "--rename", "todo:later"]);
    assert_eq!(
        (
            &renamed["old_name"],
            &renamed["new_name"],
            &renamed["file_count"]
        ),
        (&"todo".into(), &"later".into(), &2.into())
    );
    home.ok(&["tag", "--rename", "later:todo"]);
    home.ok(&["tag", "/b", "passing"]);
    assert_eq!(
        home.json(&["tag", "--delete", "passing"])["action"],
        "deleted"
    );
    assert_eq!(home.refused(&["tag", "--delete", "passing"]).0, "NotFound");
    assert_eq!(home.refused(&["tag", "--rename", "todo"]).0, "Invalid");
    let (kind, answer) = home.refused(&["tag", "--create", "new"]);
    assert_eq!(kind, "Invalid", "{answer}");
    assert_eq!(home.json(&["untag", "/d/a", "todo"])["action"], "removed");
    assert_eq!(home.refused(&["untag", "/d/a", "todo"]).0, "NotFound");
    assert_eq!(home.ok(&["tag", "/d/a", "-l"]), "reviewed\n");
    assert_eq!(home.json(&["stat", "/d/a"])["tags"], json!(["reviewed"]));
}

#[test]
fn metadata_is_set_read_and_moved() {
    let home = home();
    home.ok(&["write", "/a", "x"]);
    home.ok(&["write", "/b", "x"]);
    let set = home.json(&["meta", "/a", "owner", "ann"]);
    assert_eq!(
        (&set["path"], &set["key"], &set["value"], &set["action"]),
        (&"/a".into(), &"owner".into(), &"ann".into(), &"set".into())
    );
    home.ok(&["meta", "/a", "note", "--two words = é"]);
    assert_eq!(
        home.json(&["meta", "/a", "owner"]),
        json!({ "path": "/a", "key": "owner", "value": "ann" })
    );
    let all = home.json(&["meta", "/a"]);
    assert_eq!(
        all,
        json!({ "path": "/a", "metadata": { "note": "--two words = é", "owner": "ann" } })
    );
    let exported = home.ok(&["meta", "/a", "--export"]);
    let imported = home.json(&["meta", "/b", "--import", &exported]);
    assert_eq!(
        (&imported["imported"], &imported["action"]),
        (&2.into(), &"imported".into())
    );
    assert_eq!(home.json(&["meta", "/b"])["metadata"], all["metadata"]);
    let found = home.json(&["find", "--meta", "owner=ann"]);
    assert_eq!(texts(&found["results"], "path"), ["/a", "/b"]);
    home.ok(&["meta", "/b", "owner", "bob"]);
    assert_eq!(home.json(&["find", "--meta", "owner=ann"])["count"], 1);
    assert_eq!(home.json(&["find", "--meta", "owner"])["count"], 2);
    let deleted = home.json(&["meta", "/b", "owner", "--delete"]);
    assert_eq!(
        (&deleted["action"], &deleted["value"]),
        (&"deleted".into(), &json!(null))
    );
    assert_eq!(home.refused(&["meta", "/b", "owner"]).0, "NotFound");
    assert_eq!(home.refused(&["meta", "/b", "owner", "-d"]).0, "NotFound");
}

#[test]
fn labels_are_part_of_the_vaults_state() {
    let home = home();
    home.ok(&["write", "/a", "x"]);
    home.ok(&["tag", "/a", "first"]);
    home.ok(&["checkpoint", "save", "cp"]);
    home.ok(&["vault", "fork", "v", "w"]);
    home.ok(&["tag", "/a", "second"]);
    let tags = |vault: &str| home.ok(&["--vault", vault, "tag", "/a", "--list"]);
    assert_eq!(
        (tags("v"), tags("w")),
        ("first\nsecond\n".into(), "first\n".into())
    );
    assert_eq!(home.json(&["diff", "cp"])["changes"][0]["kind"], "xattrs");
    home.ok(&["write", "/a", "new content"]);
    assert_eq!(tags("v"), "first\nsecond\n", "a write keeps them");
    home.ok(&["mv", "/a", "/b"]);
    assert_eq!(home.ok(&["tag", "/b", "-l"]), "first\nsecond\n");
    home.ok(&["checkpoint", "restore", "cp"]);
    assert_eq!(tags("v"), "first\n");
    let causes = home.json(&["log", "/a"]);
    assert!(texts(&causes, "cause").contains(&"label"));
    home.ok(&["tag", "/a", "third"]);
    home.ok(&["revert", "/a"]);
    assert_eq!(tags("v"), "first\n");
    // Commands see them and keep them.
    let script = "import os; print(os.listxattr('/a')); open('/a', 'a').write('more')";
    let seen = home.exec(&["python3", "-c", script]);
    assert_eq!(
        seen["result"]["stdout"], "['user.avfs.tag.first']\n",
        "{seen}"
    );
    assert_eq!(tags("v"), "first\n");
    assert_eq!(home.ok(&["cat", "/a"]), "xmore");
}

#[test]
fn labels_have_limits() {
    let home = home();
    home.ok(&["write", "/a", "x"]);
    home.ok(&["ln", "-s", "a", "/link"]);
    home.shell("mkfifo /pipe");
    let before = home.json(&["vault", "info"])["version"].clone();
    for tag in ["", "a b", "-x", "a=b", "a\nb", &"x".repeat(65)] {
        let words = ["tag", "/a", "--", tag];
        assert_eq!(home.refused(&words).0, "Invalid", "{tag:?}");
    }
    let long = "v".repeat(1025);
    assert_eq!(home.refused(&["meta", "/a", "k", &long]).0, "Invalid");
    assert_eq!(home.refused(&["meta", "/a", "k k", "v"]).0, "Invalid");
    for text in ["[]", "{\"k\": 1}", "nonsense", "{\"a b\": \"x\"}"] {
        let words = ["meta", "/a", "--import", text];
        assert_eq!(home.refused(&words).0, "Invalid", "{text}");
    }
    let much: String = (0..3)
        .map(|i| format!("\"k{i}\": \"{}\"", "v".repeat(1000)))
        .collect::<Vec<_>>()
        .join(",");
    let much = format!("{{{much}}}");
    assert_eq!(
        home.refused(&["meta", "/a", "--import", &much]).0,
        "Invalid"
    );
    assert_eq!(
        home.json(&["meta", "/a"])["metadata"],
        json!({}),
        "all or nothing"
    );
    assert_eq!(home.refused(&["tag", "/none", "x"]).0, "NotFound");
    assert_eq!(home.refused(&["tag", "/pipe", "x"]).0, "Invalid");
    assert_eq!(home.refused(&["tag", "/tmp/x", "x"]).0, "Invalid");
    assert_eq!(home.refused(&["tag", "/usr/bin", "x"]).0, "Denied");
    assert_eq!(home.json(&["vault", "info"])["version"], before);
    home.ok(&["tag", "/link", "through"]);
    assert_eq!(home.ok(&["tag", "/a", "-l"]), "through\n");
    home.ok(&["tag", "/a", &"x".repeat(64)]);
    home.ok(&["meta", "/a", "k", &"v".repeat(1024)]);
    assert_eq!(home.exec(&["sh", "-c", "echo y >> /a"])["success"], true);
    assert_eq!(home.json(&["meta", "/a", "k"])["value"], "v".repeat(1024));
    for words in [&["tag"][..], &["tag", "/a"], &["meta"], &["untag", "/a"]] {
        assert_eq!(home.avfs(words).status.code(), Some(2), "{words:?}");
    }
}
