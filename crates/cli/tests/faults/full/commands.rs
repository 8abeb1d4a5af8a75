//! A command that writes until the disk is full.

use super::{Disk, Kind, check_refusal, check_whole, on_disks};
use avfs_testkit::{SOON, wait_for};
use serde_json::Value;
use std::fs;

const FILL: &str = "head -c 400M /dev/urandom > /fill";

fn fill(disk: &Disk) {
    // Layers that are given up go in the background.
    assert!(
        wait_for(SOON, || disk.free() > 120 << 20),
        "{}",
        disk.free()
    );
    let envelope = disk.home.shell(FILL);
    check_refusal(&envelope["result"]["uncommitted"]);
}

/// What was committed before can be read, and whoever does is told that there is more.
fn check_reads(disk: &Disk) {
    let home = &disk.home;
    assert_eq!(home.ok(&["cat", "/kept"]), "kept");
    assert_eq!(home.ok(&["ls"]), "kept\n");
    let is_told = |answer: &Value| {
        let told = answer["uncommitted"].to_string();
        assert!(told.contains("not committed"), "{answer:#}");
    };
    for words in [vec!["diff"], vec!["stat", "/kept"]] {
        is_told(&home.json(&words));
    }
    home.ok(&["log"]);
    let out = home.path().join("out");
    is_told(&home.json(&["export", "/", out.to_str().unwrap()]));
    assert_eq!(fs::read_to_string(out.join("kept")).unwrap(), "kept");
    fs::remove_dir_all(&out).unwrap();
    let output = home.avfs(&["cat", "/kept"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("not committed"), "{told}");
}

#[test]
fn a_command_that_fills_the_disk_leaves_every_way_out() {
    on_disks(Kind::Image, |disk| {
        let home = &disk.home;
        home.ok(&["vault", "create", "v"]);
        home.ok(&["write", "/kept", "kept"]);
        home.ok(&["checkpoint", "save", "before"]);
        home.ok(&["vault", "create", "w"]);

        fill(disk);
        check_reads(disk);
        // Another vault goes on.
        let other = home.json(&["exec", "--vault", "w", "--shell", "echo x > /x"]);
        assert_eq!(other["success"], true, "{other:#}");
        assert_eq!(home.ok(&["cat", "--vault", "w", "/x"]), "x\n");
        // Not a byte more.
        disk.use_up_bytes();
        check_reads(disk);
        // There may be room for so little, as the log of the database takes none while nobody writes.
        let other = home.json(&["exec", "--vault", "w", "--", "true"]);
        if other["success"] != true {
            check_refusal(&other);
        }
        home.ok(&["rm", "/fill"]);
        disk.give_back();
        let listed = home.json(&["ls"]);
        assert_eq!(listed["uncommitted"], Value::Null, "{listed:#}");
        assert_eq!(home.shell("test ! -e /fill")["success"], true);

        // The daemon ends, with what the command wrote not taken in, and another one starts without room.
        fill(disk);
        disk.use_up_bytes();
        home.ok(&["daemon", "stop"]);
        check_reads(disk);
        home.ok(&["checkpoint", "restore", "before", "--force"]);
        disk.give_back();
        assert_eq!(home.json(&["ls"])["uncommitted"], Value::Null);

        fill(disk);
        disk.use_up_bytes();
        home.ok(&["vault", "delete", "v", "--force"]);
        home.ok(&["gc", "--grace", "0"]);
        let layers = || {
            fs::read_dir(home.avfs_home().join("layers"))
                .unwrap()
                .count()
        };
        let gone = wait_for(SOON, || layers() <= 1);
        assert!(gone, "{} layers", layers());
        disk.give_back();
        home.ok(&["write", "--vault", "w", "/y", "y"]);
        check_whole(home);
    });
}
