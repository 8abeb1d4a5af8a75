//! Not a byte, or not a file, is left.

use super::{Disk, Kind, WhatIsUsedUp, check_refused, check_whole, on_disks};
use std::fs;

const EVERYTHING: [WhatIsUsedUp; 2] = [WhatIsUsedUp::Bytes, WhatIsUsedUp::Files];

fn prepare(disk: &Disk) {
    let home = &disk.home;
    for vault in ["v", "w"] {
        home.ok(&["vault", "create", vault]);
        home.ok(&["write", "--vault", vault, "/kept", "kept"]);
        home.ok(&["write", "--vault", vault, "/more", "more"]);
    }
    home.ok(&["vault", "use", "v"]);
    home.ok(&["checkpoint", "save", "before"]);
    home.ok(&["write", "/late", "late"]);
}

fn check_reads(disk: &Disk) {
    let home = &disk.home;
    assert_eq!(home.ok(&["cat", "/kept"]), "kept");
    assert_eq!(home.ok(&["cat", "--vault", "w", "/kept"]), "kept");
    home.ok(&["ls"]);
    home.ok(&["log"]);
    home.ok(&["diff"]);
    assert!(home.ok(&["search", "kept"]).contains("/kept"));
    assert!(home.ok(&["grep", "kept"]).contains("/kept"));
    home.ok(&["stats"]);
    home.ok(&["vault", "list"]);
    check_whole(home);
}

/// Nothing that stores something uses the reserve.
fn check_stores_nothing(disk: &Disk) {
    let home = &disk.home;
    let file = home.path().join("file");
    fs::write(&file, vec![7; 50_000]).unwrap();
    for _ in 0..3 {
        check_refused(home, &["write", "/new", "new"]);
        check_refused(
            home,
            &["write", "/new", "--from-file", file.to_str().unwrap()],
        );
        check_refused(home, &["mkdir", "/directory"]);
        check_refused(home, &["checkpoint", "save", "now"]);
        check_refused(home, &["vault", "create", "x"]);
        check_refused(home, &["vault", "fork", "v", "x"]);
        check_refused(home, &["exec", "--", "true"]);
        check_refused(home, &["job", "start", "--", "true"]);
        if home.is_root() {
            check_refused(home, &["mount", home.path().join("mnt").to_str().unwrap()]);
        }
    }
}

#[test]
fn the_way_out_works_without_room() {
    on_disks(Kind::Memory("size=32m,nr_inodes=600"), |disk| {
        let home = &disk.home;
        for (round, what) in EVERYTHING.into_iter().enumerate() {
            prepare(disk);
            disk.use_up(what);
            check_reads(disk);
            if let WhatIsUsedUp::Bytes = what {
                check_stores_nothing(disk);
            }
            home.ok(&["rm", "/late"]);
            assert_eq!(home.ok(&["ls"]), "kept\nmore\n");
            home.ok(&["rm", "/more"]);
            check_reads(disk);
            // Another daemon starts and finds all that was acknowledged.
            home.ok(&["daemon", "stop"]);
            check_reads(disk);
            assert_eq!(home.ok(&["ls"]), "kept\n");
            home.ok(&["checkpoint", "restore", "before"]);
            assert_eq!(home.ok(&["ls"]), "kept\nmore\n");
            home.ok(&["checkpoint", "delete", "before"]);
            home.ok(&["prune", "--all", "--keep", "1"]);
            home.ok(&["gc"]);
            home.ok(&["compact"]);
            check_reads(disk);
            home.ok(&["vault", "delete", "w", "--force"]);
            home.ok(&["vault", "delete", "v", "--force"]);
            home.ok(&["gc", "--grace", "0"]);
            home.ok(&["compact"]);
            check_whole(home);
            disk.give_back();
            home.ok(&["vault", "create", &format!("after-{round}")]);
            check_whole(home);
        }
    });
}

#[test]
fn a_daemon_starts_and_reads_without_room_and_reserve() {
    on_disks(Kind::Memory("size=32m,nr_inodes=600"), |disk| {
        let home = &disk.home;
        for what in EVERYTHING {
            prepare(disk);
            home.ok(&["daemon", "stop"]);
            fs::remove_dir_all(home.avfs_home().join("reserve")).unwrap();
            disk.remove_log();
            disk.use_up(what);
            check_reads(disk);
            check_refused(home, &["write", "/new", "new"]);
            check_refused(home, &["rm", "/late"]);
            check_refused(home, &["vault", "delete", "w", "--force"]);
            check_refused(home, &["gc"]);
            check_refused(home, &["exec", "--", "true"]);
            check_reads(disk);
            // Nobody has to restart anything once there is room.
            let before = home.daemon_pid();
            disk.give_back();
            home.ok(&["rm", "/late"]);
            assert_eq!(home.exec(&["true"])["success"], true);
            assert_eq!(home.daemon_pid(), before);
            check_reads(disk);
            home.ok(&["vault", "delete", "w", "--force"]);
            home.ok(&["vault", "delete", "v", "--force"]);
        }
    });
}

/// The daemon's socket and log are on the same disk, in directories that have to be made first.
#[test]
fn a_daemon_starts_whose_socket_is_on_the_full_disk() {
    on_disks(Kind::Memory("size=32m,nr_inodes=600"), |disk| {
        let home = &disk.home;
        prepare(disk);
        home.ok(&["daemon", "stop"]);
        let place = home.avfs_home().join("rt");
        for what in EVERYTHING {
            disk.make_own(&place);
            disk.use_up(what);
            let run = |words: &[&str]| {
                let mut command = home.command(words);
                let output = command.env("XDG_RUNTIME_DIR", &place).output().unwrap();
                assert!(output.status.success(), "{what:?} {words:?}: {output:?}");
                String::from_utf8(output.stdout).unwrap()
            };
            assert_eq!(run(&["cat", "/kept"]), "kept");
            run(&["gc"]);
            run(&["daemon", "stop"]);
            assert_eq!(run(&["cat", "/kept"]), "kept");
            run(&["daemon", "stop"]);
            disk.give_back();
            fs::remove_dir_all(&place).unwrap();
        }
    });
}
