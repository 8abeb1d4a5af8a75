//! A disk that is full or cannot be written: said so, and nothing that was there is lost.

use super::{at, project};
use crate::AVFS;
use avfs_testkit::Home;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small filesystem, unmounted at the end. Only root can have one.
struct Small(PathBuf);

impl Small {
    fn mount(path: &Path, size: &str) -> Small {
        fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args([
            "-t",
            "tmpfs",
            "-o",
            &format!("mode=700,size={size}"),
            "tmpfs",
        ]);
        assert!(mount.arg(path).status().unwrap().success());
        Small(path.to_owned())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a daemon that is about to end may still be in there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_full_disk_loses_nothing() {
    if !is_root() {
        return;
    }
    let home = Home::new(AVFS);
    let small = Small::mount(&home.avfs_home(), "6m");
    home.ok(&["vault", "create", "v"]);
    let dir = project(&home);
    // What cannot be compressed takes its room.
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 24) as u8
    })
    .take(16_000_000)
    .collect();
    home.ok(&["write", "/kept", "kept"]);
    fs::write(dir.join("noise"), &noise).unwrap();
    let version = home.json(&["vault", "info"])["version"].clone();
    let (kind, answer) = home.refused(&["import", "project"]);
    assert_eq!(kind, "Quota", "{answer}");
    host_tar(&dir);
    let (kind, answer) = home.refused(&["import", "noise.tar", "/t"]);
    assert_eq!(kind, "Quota", "{answer}");
    assert_eq!(home.ok(&["cat", "/kept"]), "kept");
    assert_eq!(home.json(&["vault", "info"])["version"], version);
    home.ok(&["audit", "verify"]);
    home.ok(&["daemon", "stop"]);
    assert_eq!(
        home.ok(&["cat", "/kept"]),
        "kept",
        "a new daemon reads it too"
    );
    drop(home);
    drop(small);
}

fn host_tar(dir: &Path) {
    super::host(dir, &["tar", "cf", "../noise.tar", "noise"]);
}

#[test]
fn a_full_target_gets_nothing_half_done() {
    if !is_root() {
        return;
    }
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let dir = project(&home);
    let small = Small::mount(&at(&home, "small"), "1m");
    home.ok(&["import", "project"]);
    assert_eq!(
        home.refused(&["export", "/workspace", "small/out"]).0,
        "Quota"
    );
    assert_eq!(
        home.refused(&["export", "/workspace", "--tar", "small/out.tar"])
            .0,
        "Quota"
    );
    assert_eq!(fs::read_dir(at(&home, "small")).unwrap().count(), 0);

    // A directory on the small disk, to which more comes back than fits.
    super::write(&at(&home, "small/dir"), "file", "old");
    home.ok(&["import", "small/dir", "/dir"]);
    home.ok(&["write", "/dir/file", "new"]);
    home.ok(&["cp", "/workspace/big", "/dir/big"]);
    assert_eq!(
        home.refused(&["export", "--changed-only", "small/dir"]).0,
        "Quota"
    );
    assert_eq!(
        fs::read_to_string(at(&home, "small/dir/file")).unwrap(),
        "old"
    );
    assert_eq!(fs::read_dir(at(&home, "small/dir")).unwrap().count(), 1);
    home.ok(&["rm", "/dir/big"]);
    home.ok(&["export", "--changed-only", "small/dir"]);
    assert_eq!(
        fs::read_to_string(at(&home, "small/dir/file")).unwrap(),
        "new"
    );
    assert!(dir.exists());
    drop(home);
    drop(small);
}

#[test]
fn a_home_that_cannot_be_written_says_so() {
    let home = match Home::of_ordinary_user(AVFS) {
        Some(home) => home,
        None => Home::new(AVFS),
    };
    home.ok(&["vault", "create", "v"]);
    home.ok(&["write", "/kept", "kept"]);
    home.ok(&["daemon", "stop"]);
    let modes = |mode: u32| {
        let home = home.avfs_home();
        for path in ["", "packs", "objects", "store.db", "lock"] {
            fs::set_permissions(home.join(path), PermissionsExt::from_mode(mode)).unwrap();
        }
    };
    modes(0o500);
    let answer = home.json(&["write", "/kept", "new"]);
    assert_eq!(answer["error"], "Unavailable", "{answer}");
    assert!(answer["hint"].is_string(), "{answer}");
    assert_eq!(home.ok(&["cat", "/kept"]), "kept");
    modes(0o700);
    assert_eq!(home.ok(&["cat", "/kept"]), "kept");
}
