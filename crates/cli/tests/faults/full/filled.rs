//! Disks that are filled by writes, imports, commands and jobs: what was acknowledged stays, and goes when it shall.

use super::{Disk, Kind, check_refused, check_whole, on_disks};
use avfs_testkit::{SOON, noise, wait_for};
use std::fs;

/// Writes files until one is refused; gives how many were not.
fn fill_by_writes(disk: &Disk) -> u64 {
    let (home, file) = (&disk.home, disk.home.path().join("file"));
    for number in 0_u64.. {
        fs::write(&file, noise(number, 2 << 20)).unwrap();
        let path = format!("/{number}");
        let words = ["write", &path, "--from-file", file.to_str().unwrap()];
        if home.json(&words)["error"] == "Quota" {
            check_refused(home, &words);
            return number;
        }
    }
    unreachable!("the disk is small")
}

fn check_written(disk: &Disk, count: u64) {
    for number in 0..count {
        let read = disk.home.avfs(&["cat", &format!("/{number}")]);
        assert!(read.stdout == noise(number, 2 << 20), "file {number}");
    }
    check_whole(&disk.home);
}

#[test]
fn what_fills_the_disk_stays_and_can_go() {
    on_disks(Kind::Memory("size=40m"), |disk| {
        let home = &disk.home;
        home.ok(&["vault", "create", "v"]);
        let count = fill_by_writes(disk);
        assert!(count > 5, "{count} files");
        check_written(disk, count);
        let project = home.path().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("large"), noise(99, 12 << 20)).unwrap();
        check_refused(home, &["import", project.to_str().unwrap(), "/p"]);
        home.ok(&["daemon", "stop"]);
        check_written(disk, count);
        // Room is made by removing, forgetting and collecting.
        for number in 2..count {
            home.ok(&["rm", &format!("/{number}")]);
        }
        home.ok(&["prune", "--all", "--keep", "1"]);
        home.ok(&["gc"]);
        check_written(disk, 2);
        home.ok(&["import", project.to_str().unwrap(), "/p"]);
        check_whole(home);
    });
}

#[test]
fn jobs_that_fill_the_disk_can_be_forgotten() {
    on_disks(Kind::Memory("size=24m"), |disk| {
        let home = &disk.home;
        home.ok(&["vault", "create", "v"]);
        home.ok(&["write", "/kept", "kept"]);
        let started = home.json(&["job", "start", "--shell", "cat /dev/urandom"]);
        let job = started["job_id"].to_string();
        let ended = || home.json(&["job", "poll", &job])["state"] != "running";
        let is_full = || home.json(&["write", "/new", "new"])["error"] == "Quota";
        assert!(wait_for(SOON, || ended() || is_full()));
        home.avfs(&["job", "kill", &job]);
        assert!(wait_for(SOON, ended));
        assert_eq!(home.ok(&["cat", "/kept"]), "kept");
        disk.use_up_bytes();
        home.ok(&["daemon", "stop"]);
        assert_eq!(home.ok(&["cat", "/kept"]), "kept");
        home.ok(&["gc", "--grace", "0"]);
        assert_eq!(
            home.json(&["job", "list"])["jobs"]
                .as_array()
                .unwrap()
                .len(),
            0
        );
        disk.give_back();
        home.ok(&["write", "/new", "new"]);
        check_whole(home);
    });
}
