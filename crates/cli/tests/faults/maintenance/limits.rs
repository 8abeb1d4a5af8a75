//! Quotas, on every way in.

use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use std::fs;

const MIB: usize = 1 << 20;

fn refused(answer: &serde_json::Value) {
    assert_eq!(answer["error"], "Quota", "{answer}");
    let hint = answer["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("avfs quota"), "{answer}");
}

fn host_file(home: &Home, name: &str, bytes: usize) -> String {
    let path = home.path().join(name);
    fs::write(&path, vec![b'x'; bytes]).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn limits_are_set_shown_and_lifted() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "x"]);
        let none = home.json(&["quota"]);
        assert_eq!(none["max_size_mb"], serde_json::Value::Null);
        assert_eq!(
            (&none["current_size_bytes"], &none["current_files"]),
            (&1.into(), &1.into())
        );
        let set = home.json(&["quota", "set", "max_size_mb", "2"]);
        assert_eq!(
            set,
            serde_json::json!({"action": "set", "key": "max_size_mb", "value": 2})
        );
        home.ok(&["quota", "set", "max_files", "4"]);
        let quota = home.json(&["quota"]);
        assert_eq!(
            (&quota["max_size_mb"], &quota["files_usage_percent"]),
            (&2.into(), &25.0.into())
        );
        let cleared = home.json(&["quota", "clear", "max_files"]);
        assert_eq!(
            cleared,
            serde_json::json!({"action": "clear", "key": "max_files"})
        );
        assert!(home.ok(&["quota"]).contains("no limit"));
    });
}

#[test]
fn file_verbs_and_imports_are_held_to_them() {
    with_vault(AVFS, |home| {
        home.ok(&["quota", "set", "max_size_mb", "2"]);
        home.ok(&["quota", "set", "max_file_size_mb", "1"]);
        let large = host_file(home, "large", MIB + 1);
        let fits = host_file(home, "fits", MIB);
        refused(&home.json(&["write", "/a", "--from-file", &large]));
        home.ok(&["write", "/a", "--from-file", &fits]);
        refused(&home.json(&["write", "/a", "--append", "more"]));
        home.ok(&["write", "/a", "--from-file", &fits]);
        home.ok(&["cp", "/a", "/b"]);
        refused(&home.json(&["cp", "/a", "/c"]));
        refused(&home.json(&["write", "/d", "x"]));
        home.ok(&["mv", "/b", "/c"]);

        let dir = home.path().join("dir");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file"), "some bytes").unwrap();
        let dir = dir.to_str().unwrap();
        refused(&home.json(&["import", dir, "/workspace"]));
        assert_eq!(
            home.json(&["ls", "/"]).as_array().unwrap().len(),
            2,
            "nothing half-done"
        );
        home.ok(&["rm", "/c"]);
        home.ok(&["import", dir, "/workspace"]);
    });
}

#[test]
fn a_command_beyond_the_quota_loses_nothing_and_is_told_how_to_go_on() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/kept", "kept"]);
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        let envelope = home.shell("head -c 3000000 /dev/zero > /large; echo small > /small");
        let result = &envelope["result"];
        assert_eq!(
            (&envelope["success"], &result["exit_code"]),
            (&false.into(), &0.into())
        );
        assert_eq!(result["uncommitted"]["error"], "Quota", "{envelope}");
        assert!(
            result["uncommitted"]["hint"]
                .as_str()
                .unwrap()
                .contains("avfs quota set")
        );
        assert_eq!(result["version"], serde_json::Value::Null);
        let journal = home.json(&["audit", "--operation", "exec_uncommitted"]);
        assert_eq!(journal["entries"][0]["exec"], result["exec"], "{journal}");
        let output = home.avfs(&["exec", "--", "true"]);
        assert_eq!(
            output.status.code(),
            Some(125),
            "it is told for as long as it is so"
        );

        // It is all still there for commands, and other verbs say why they wait.
        let listing = home.shell("cat /small; stat -c %s /large");
        assert_eq!(listing["result"]["stdout"], "small\n3000000\n", "{listing}");
        for words in [&["rm", "/kept"][..], &["checkpoint", "save", "c"]] {
            refused(&home.json(words));
        }
        // Who only reads sees the head, and why it is not more.
        assert_eq!(home.json(&["ls", "/"]).as_array().unwrap().len(), 1);
        assert_eq!(home.ok(&["cat", "/kept"]), "kept");
        let info = home.json(&["vault", "info"]);
        refused(&info["uncommitted"][0]);
        // gc takes nothing of it.
        home.ok(&["gc", "--grace", "0"]);

        // One way on: make room.
        let envelope = home.shell("rm /large");
        assert_eq!(envelope["success"], true, "{envelope}");
        assert_eq!(home.ok(&["cat", "/small"]), "small\n");

        // The other: raise the limit.
        let envelope = home.shell("head -c 3000000 /dev/zero > /large");
        refused(&home.json(&["checkpoint", "save", "c"]));
        home.ok(&["quota", "set", "max_size_mb", "10"]);
        assert_eq!(home.json(&["stat", "/large"])["size"], 3_000_000);
        let log = home.json(&["vault", "log"]);
        assert_eq!(
            log[0]["exec"], envelope["result"]["exec"],
            "the version is that command's"
        );
        assert_eq!(home.json(&["fsck"])["clean"], true);
    });
}

#[test]
fn what_was_beyond_the_quota_survives_the_daemon() {
    with_vault(AVFS, |home| {
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        home.shell("head -c 3000000 /dev/zero > /large");
        home.ok(&["daemon", "stop"]);
        assert_eq!(home.json(&["ls", "/"]).as_array().unwrap().len(), 0);
        let checkpoints = home.json(&["checkpoint", "list"]);
        let names = checkpoints["snapshots"].as_array().unwrap().iter();
        let aside = names
            .filter_map(|it| it["name"].as_str())
            .find(|name| name.starts_with("uncommitted-"))
            .unwrap_or_else(|| panic!("{checkpoints}"));
        home.ok(&["checkpoint", "restore", aside]);
        assert_eq!(home.json(&["stat", "/large"])["size"], 3_000_000);
    });
}

#[test]
fn going_back_and_deleting_are_ways_on_too() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/kept", "kept"]);
        home.ok(&["checkpoint", "save", "good"]);
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        home.shell("head -c 3000000 /dev/zero > /large; rm /kept");
        home.ok(&["checkpoint", "restore", "good"]);
        assert_eq!(home.ok(&["cat", "/kept"]), "kept");
        let listed = home.json(&["checkpoint", "list"]).to_string();
        assert!(
            listed.contains("uncommitted-"),
            "what was given up is kept: {listed}"
        );

        home.shell("head -c 3000000 /dev/zero > /large");
        home.ok(&["vault", "delete", "v"]);
        home.ok(&["vault", "undelete", "v"]);
        assert_eq!(home.json(&["fsck"])["clean"], true);
    });
}
