//! Layers that a command made to stop a vault, its home, or the daemon.

use crate::AVFS;
use avfs_testkit::{Home, process_ends, signal, wait_for, with_vault};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the daemon as a crash would.
fn crash(home: &Home) {
    let daemon = home.daemon_pid().expect("a daemon");
    signal(daemon, Signal::KILL);
    assert!(process_ends(daemon, PATIENCE));
}

fn is_quota(why: &Value) {
    assert_eq!(why["error"], "Quota", "{why}");
    assert!(
        why["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
        "{why}"
    );
}

#[test]
fn an_apparent_size_above_the_quota_is_refused_unread_and_stops_nobody() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/kept", "kept"]);
        home.ok(&["vault", "create", "other"]);
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        let words = [
            "exec",
            "--json",
            "--disk",
            "10m",
            "--timeout",
            "30s",
            "--shell",
        ];
        let envelope = home.json(&[&words[..], &["truncate -s 4T /big"]].concat());
        is_quota(&envelope["result"]["uncommitted"]);
        assert_eq!(envelope["success"], false, "{envelope}");
        let hit = envelope["result"]["limit_hit"].to_string();
        assert!(hit.contains("disk"), "{envelope}");

        // The head is there for readers, and the other vault for everybody.
        assert_eq!(home.ok(&["cat", "/kept"]), "kept");
        is_quota(&home.json(&["vault", "info"])["uncommitted"][0]);
        home.ok(&["--vault", "other", "exec", "--", "true"]);
        // A command can make room.
        let envelope = home.shell("rm /big; echo new > /new");
        assert_eq!(envelope["success"], true, "{envelope}");
        assert_eq!(
            home.json(&["vault", "info"])["uncommitted"],
            serde_json::json!([])
        );
        assert_eq!(home.ok(&["cat", "/new"]), "new\n");
    });
}

#[test]
fn a_layer_that_no_quota_lets_in_stays_and_is_told_after_a_crash() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/kept", "kept"]);
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        home.shell("truncate -s 4T /big; echo beside > /beside");
        crash(home);
        // Any request starts the next daemon, which serves others at once.
        home.ok(&["vault", "create", "other"]);
        home.ok(&["--vault", "other", "exec", "--", "true"]);
        assert_eq!(home.ok(&["cat", "/kept"]), "kept");
        is_quota(&home.json(&["vault", "info", "v"])["uncommitted"][0]);
        // The vault is used without it.
        let envelope = home.json(&["--vault", "v", "exec", "--json", "--", "touch", "/later"]);
        assert_eq!(envelope["success"], true, "{envelope}");
        // With the limit raised, it is taken in beside the head, which has moved.
        home.ok(&["quota", "clear", "max_size_mb"]);
        home.ok(&["write", "/last", "word"]);
        home.ok(&["vault", "delete", "v", "--force"]);
        let layers = home.avfs_home().join("layers");
        let left = std::fs::read_dir(layers).expect("layers").count();
        assert!(left <= 1, "only those of the other vault are left");
    });
}

#[test]
fn deleting_by_force_and_going_back_by_force_give_up_what_is_too_much() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/kept", "kept"]);
        home.ok(&["checkpoint", "save", "good"]);
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        home.shell("truncate -s 4T /big; rm /kept");
        is_quota(&home.json(&["checkpoint", "restore", "good"]));
        home.ok(&["checkpoint", "restore", "good", "--force"]);
        assert_eq!(home.ok(&["cat", "/kept"]), "kept");
        let discarded = home.json(&["audit", "--operation", "uncommitted_discarded"]);
        assert_eq!(discarded["entries"].as_array().map(Vec::len), Some(1));

        home.shell("truncate -s 4T /big");
        is_quota(&home.json(&["vault", "delete", "v"]));
        home.ok(&["vault", "delete", "v", "--force"]);
        home.ok(&["vault", "undelete", "v"]);
        home.ok(&["vault", "use", "v"]);
        assert_eq!(home.ok(&["cat", "/kept"]), "kept");
        assert_eq!(home.json(&["fsck"])["clean"], true);
    });
}

#[test]
fn a_fork_for_one_command_goes_whatever_it_holds() {
    with_vault(AVFS, |home| {
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        let words = ["exec", "--json", "--fork", "--shell", "truncate -s 4T /big"];
        let envelope = home.json(&words);
        assert_eq!(envelope["success"], false, "{envelope}");
        let vaults = home.json(&["vault", "list"]);
        assert_eq!(vaults.as_array().map(Vec::len), Some(1), "{vaults}");
    });
}

#[test]
fn the_limit_on_the_disk_holds_for_a_command_that_is_over_before_anybody_looks() {
    with_vault(AVFS, |home| {
        for place in ["/big", "/tmp/big"] {
            let text = format!("truncate -s 100M {place}");
            let envelope = home.json(&["exec", "--json", "--disk", "10m", "--shell", &text]);
            let result = &envelope["result"];
            assert_eq!(result["status"], "limit_exceeded", "{envelope}");
            assert!(
                result["limit_hit"].to_string().contains("disk"),
                "{envelope}"
            );
            assert_eq!(envelope["success"], false);
            home.shell(&format!("rm {place}"));
        }
        let envelope = home.json(&["exec", "--json", "--disk", "10m", "--", "touch", "/small"]);
        assert_eq!(envelope["success"], true, "{envelope}");
    });
}

#[test]
fn scratch_space_counts_against_the_quota() {
    with_vault(AVFS, |home| {
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        home.ok(&["quota", "set", "max_files", "4"]);
        let envelope = home.shell("head -c 3000000 /dev/zero > /tmp/large");
        is_quota(&envelope["result"]["uncommitted"]);
        // Nothing may grow beside it, by whatever way.
        is_quota(&home.json(&["write", "/f", "x"]));
        is_quota(&home.json(&["write", "/tmp/f", "x"]));
        is_quota(&home.json(&["write", "/tmp/large", "--append", "x"]));
        let envelope = home.shell("echo more > /more");
        is_quota(&envelope["result"]["uncommitted"]);
        let envelope = home.shell("rm /tmp/large");
        assert_eq!(envelope["success"], true, "{envelope}");
        home.ok(&["write", "/f", "x"]);
        home.ok(&["write", "/tmp/f", "x"]);

        let host = home.path().join("large");
        std::fs::write(&host, vec![b'x'; 2_000_000]).unwrap();
        let large = host.to_str().unwrap();
        is_quota(&home.json(&["write", "/tmp/g", "--from-file", large]));
        assert_eq!(home.ok(&["cat", "/tmp/g"]), "", "nothing half-done");
        // By now there are /more, /f, /tmp/f and /tmp/g.
        is_quota(&home.json(&["touch", "/tmp/h"]));
        let envelope = home.shell("touch /tmp/i");
        is_quota(&envelope["result"]["uncommitted"]);
    });
}

#[test]
fn a_tree_deeper_than_any_path_is_committed_reported_and_removed() {
    with_vault(AVFS, |home| {
        let make = "import os\n\
                    for top in ('/workspace', '/tmp'):\n \
                    os.makedirs(top + '/deep', exist_ok=True); os.chdir(top + '/deep')\n \
                    for n in range(5000): os.mkdir('d'); os.chdir('d')";
        let envelope = home.exec(&["python3", "-c", make]);
        assert_eq!(envelope["success"], true, "{envelope}");
        let skipped = envelope["result"]["skipped"].as_array().unwrap();
        assert_eq!(skipped[0]["reason"], "its path is too long", "{skipped:?}");
        home.ok(&["rm", "-r", "/tmp/deep"]);
        // While somebody works in it, the file verb goes through the view.
        let job = home.json(&["job", "start", "--", "sleep", "600"]);
        home.ok(&["rm", "-r", "/workspace/deep"]);
        assert_eq!(
            home.json(&["ls", "/workspace"]).as_array().map(Vec::len),
            Some(0)
        );
        assert_eq!(job["status"], "started", "{job}");
        home.ok(&["vault", "delete", "v", "--force"]);
        let layers = home.avfs_home().join("layers");
        let gone = || std::fs::read_dir(&layers).is_ok_and(|mut it| it.next().is_none());
        assert!(wait_for(PATIENCE, gone), "all of it is removed");
    });
}
