//! A home on a full disk: what is stored can be read, and there is a way out.
//!
//! The disks are small file systems of the test's own, which only root can mount; the homes on them are root's and an
//! ordinary user's.

mod commands;
mod filled;
mod nothing_left;

use avfs_testkit::{Home, skip};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::AVFS;

/// What kind of disk a home is on.
#[derive(Clone, Copy)]
enum Kind {
    /// ext4 in a file of 200 MB.
    Image,
    /// Memory, with these options.
    Memory(&'static str),
}

/// A disk with a home on it; unmounted at the end.
struct Disk {
    home: Home,
}

impl Disk {
    fn of(home: Home, kind: Kind) -> Disk {
        let place = home.avfs_home();
        fs::create_dir_all(&place).unwrap();
        match kind {
            Kind::Image => {
                let image = home.path().join("image");
                File::create(&image).unwrap().set_len(200 << 20).unwrap();
                run(Command::new("mkfs.ext4")
                    .args(["-q", "-F", "-m", "0"])
                    .arg(&image));
                run(Command::new("mount")
                    .args(["-o", "loop"])
                    .arg(&image)
                    .arg(&place));
                fs::remove_dir(place.join("lost+found")).unwrap();
            }
            Kind::Memory(options) => {
                let mut mount = Command::new("mount");
                run(mount
                    .args(["-t", "tmpfs", "-o", options, "tmpfs"])
                    .arg(&place));
            }
        }
        let disk = Disk { home };
        disk.make_own(&place);
        disk
    }

    /// A private directory of the home's user.
    fn make_own(&self, directory: &Path) {
        fs::create_dir_all(directory).unwrap();
        let owner = fs::metadata(self.home.path()).unwrap().uid();
        chown(directory, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(directory, Permissions::from_mode(0o700)).unwrap();
    }

    /// Removes the log of the database, as the last connection does. A daemon that ends while one of its threads still
    /// has a connection leaves the log, and with it room to change something.
    fn remove_log(&self) {
        let database = self.home.avfs_home().join("store.db");
        run(Command::new("sqlite3")
            .arg(&database)
            .arg("select count(*) from sqlite_schema"));
        assert!(!database.with_extension("db-wal").exists());
    }

    /// Takes up all bytes that are left.
    fn use_up_bytes(&self) {
        let mut ballast = File::create(self.ballast()).unwrap();
        for piece in [1 << 20, 4096, 512] {
            while ballast.write_all(&vec![0; piece]).is_ok() {}
        }
        let _ = ballast.sync_all();
    }

    /// Takes up all files that are left.
    fn use_up_files(&self) {
        let crowd = self.home.avfs_home().join("crowd");
        fs::create_dir(&crowd).unwrap();
        let mut number = 0;
        while File::create(crowd.join(number.to_string())).is_ok() {
            number += 1;
        }
    }

    fn use_up(&self, what: WhatIsUsedUp) {
        match what {
            WhatIsUsedUp::Bytes => self.use_up_bytes(),
            WhatIsUsedUp::Files => self.use_up_files(),
        }
    }

    fn give_back(&self) {
        let _ = fs::remove_file(self.ballast());
        let _ = fs::remove_dir_all(self.home.avfs_home().join("crowd"));
    }

    fn free(&self) -> u64 {
        let now = rustix::fs::statvfs(self.home.avfs_home()).unwrap();
        now.f_bavail * now.f_frsize
    }

    fn ballast(&self) -> PathBuf {
        self.home.avfs_home().join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.home.command(&["daemon", "stop", "--force"]).output();
        // Lazily: a daemon that is about to end may still be in there.
        let mut umount = Command::new("umount");
        let _ = umount.arg("-l").arg(self.home.avfs_home()).status();
    }
}

#[derive(Clone, Copy, Debug)]
enum WhatIsUsedUp {
    Bytes,
    Files,
}

/// Does `check` on such a disk for root and for an ordinary user.
fn on_disks(kind: Kind, check: impl Fn(&Disk)) {
    if !rustix::process::geteuid().is_root() {
        skip("only root can mount the small disks of these tests");
        return;
    }
    for home in Home::of_root_and_ordinary_user(AVFS) {
        check(&Disk::of(home, kind));
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

/// That something was refused because the disk is full: how much is free and missing, and the way out.
fn check_refusal(refusal: &Value) {
    assert_eq!(refusal["error"], "Quota", "{refusal:#}");
    let message = refusal["message"].as_str().unwrap();
    assert!(message.contains("no room on the disk"), "{refusal:#}");
    assert!(message.contains("free"), "{refusal:#}");
    assert!(message.contains("more are needed"), "{refusal:#}");
    let hint = refusal["hint"].as_str().unwrap();
    assert!(hint.contains("avfs gc"), "{refusal:#}");
}

fn check_refused(home: &Home, words: &[&str]) {
    check_refusal(&home.json(words));
}

/// All is well with what is stored.
fn check_whole(home: &Home) {
    home.ok(&["fsck"]);
    home.ok(&["audit", "verify"]);
}
