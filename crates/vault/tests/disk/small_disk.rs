//! A small disk in a mount namespace of its own, ways to use it up, and a home on it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use avfs_store::Store;
use avfs_vault::{
    Cause, Entry, Error, GcMode, GcOptions, Kind, Meta, NewVersion, Principal, RootId, Time, Vault,
    Vaults,
};
use serde_json::json;

const DISK: &str = "AVFS_SMALL_DISK";

/// Runs a test of this file again, with a tmpfs of these options at the directory it is given.
pub fn on_small_disk(test: &str, options: &str) {
    let id = Command::new("id").arg("-u").output().unwrap();
    let mut unshare = vec!["--mount", "--propagation", "private"];
    if id.stdout != b"0\n" {
        // An ordinary user may mount in a user namespace of its own.
        unshare.extend(["--user", "--map-root-user"]);
        let mut trial = Command::new("unshare");
        if !trial
            .args(&unshare)
            .arg("true")
            .output()
            .unwrap()
            .status
            .success()
        {
            avfs_testkit::skip("small disks need a user namespace, which this host refuses");
            return;
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o {options},mode=0700 tmpfs {0} && exec \"$0\" --exact {test} --ignored",
        dir.path().display()
    );
    let mut command = Command::new("unshare");
    command
        .args(&unshare)
        .args(["sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(DISK, dir.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{told}");
    assert!(said.contains("1 passed"), "{said}");
}

pub fn small_disk() -> PathBuf {
    std::env::var_os(DISK)
        .expect("the other test names it")
        .into()
}

/// Takes up all files that the disk can have.
pub fn use_up_files(dir: &Path) {
    let crowd = dir.join("crowd");
    fs::create_dir(&crowd).unwrap();
    for number in 0.. {
        if File::create(crowd.join(number.to_string())).is_err() {
            return;
        }
    }
}

/// Takes up room until only about `kib` are left.
pub fn fill(dir: &Path, kib: usize) {
    let mut ballast = File::create(dir.join("ballast")).unwrap();
    let block = [0; 4096];
    while ballast.write_all(&block).is_ok() {}
    let length = ballast.metadata().unwrap().len();
    ballast
        .set_len(length.saturating_sub(kib as u64 * 1024))
        .unwrap();
}

pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    let seeded = hasher.update(&seed.to_le_bytes());
    seeded.finalize_xof().fill(&mut bytes);
    bytes
}

pub fn write(vaults: &Vaults, vault: &Vault, path: &str, bytes: &[u8]) -> Result<RootId, Error> {
    let _lease = vaults.lease();
    let head = vaults.by_id(vault.id)?.head;
    let (content, size) = vaults.trees().write_bytes(bytes)?;
    let mut edit = vaults.trees().edit(head)?;
    let entry = Entry::file(content, size, Meta::new(0o644, Time::EPOCH));
    edit.put(&path.parse().unwrap(), entry)?;
    let root = edit.finish()?;
    let version = NewVersion {
        by: Principal::OWNER,
        exec: None,
        cause: Cause::Write,
        details: json!({}),
    };
    vaults.publish(vault.id, head, root, version)?;
    Ok(root)
}

pub fn is_full(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.is_full()) || matches!(error, Error::Swept { .. })
}

pub fn check(vaults: &Vaults, vault: &Vault, files: &BTreeMap<String, Vec<u8>>) {
    let head = vaults.by_id(vault.id).unwrap().head;
    assert_eq!(
        vaults.trees().root(head).unwrap().files(),
        files.len() as u64
    );
    for (path, bytes) in files {
        let entry = vaults
            .trees()
            .entry(head, &path.parse().unwrap())
            .unwrap()
            .unwrap();
        let Kind::File { content, size, .. } = entry.kind else {
            panic!("{path} is no file")
        };
        assert_eq!(
            &vaults.trees().read(content, 0, size as usize).unwrap(),
            bytes
        );
    }
    let fsck = vaults.fsck();
    assert!(fsck.is_clean(), "{fsck:#?}");
}

/// Opens a home again; the files of its vault are whole.
pub fn reopened(home: &Path, files: &BTreeMap<String, Vec<u8>>) -> (Vaults, Vault) {
    let vaults = Vaults::open(Store::open(home).unwrap()).unwrap();
    let vault = check_reads(&vaults, files);
    (vaults, vault)
}

/// A home with a vault of two files, whose database was closed, or was cut off in its middle.
pub fn prepared(disk: &Path, end: HowItEnded) -> (PathBuf, BTreeMap<String, Vec<u8>>) {
    let (home, kept) = (disk.join("home"), disk.join("kept"));
    let vaults = Vaults::open(Store::open(&home).unwrap()).unwrap();
    let vault = vaults
        .create(&"v".parse().unwrap(), &Principal::OWNER)
        .unwrap();
    let mut files = BTreeMap::new();
    for (n, size) in [3000, 1_200_000].into_iter().enumerate() {
        let (path, bytes) = (format!("/{n}"), noise(n as u64, size));
        write(&vaults, &vault, &path, &bytes).unwrap();
        files.insert(path, bytes);
    }
    match end {
        HowItEnded::Closed => drop(vaults),
        HowItEnded::Killed => {
            // What a killed process leaves: a log with all that was done, and no index of it that anybody could use.
            let copied = Command::new("cp").arg("-a").args([&home, &kept]).status();
            assert!(copied.unwrap().success());
            drop(vaults);
            fs::remove_dir_all(&home).unwrap();
            fs::rename(&kept, &home).unwrap();
            fs::remove_file(home.join("store.db-shm")).unwrap();
            assert!(fs::metadata(home.join("store.db-wal")).unwrap().len() > 0);
        }
    }
    (home, files)
}

#[derive(Clone, Copy, Debug)]
pub enum HowItEnded {
    Closed,
    Killed,
}

#[derive(Clone, Copy, Debug)]
pub enum WhatIsUsedUp {
    Bytes,
    Files,
}

impl WhatIsUsedUp {
    pub fn use_up(self, disk: &Path) {
        match self {
            WhatIsUsedUp::Bytes => fill(disk, 0),
            WhatIsUsedUp::Files => use_up_files(disk),
        }
    }
}

pub fn free_again(disk: &Path) {
    let _ = fs::remove_file(disk.join("ballast"));
    let _ = fs::remove_dir_all(disk.join("crowd"));
}

pub fn every_full_disk() -> impl Iterator<Item = (HowItEnded, WhatIsUsedUp)> {
    let ends = [HowItEnded::Closed, HowItEnded::Killed];
    let both = |end| [(end, WhatIsUsedUp::Bytes), (end, WhatIsUsedUp::Files)];
    ends.into_iter().flat_map(both)
}

pub fn check_reads(vaults: &Vaults, files: &BTreeMap<String, Vec<u8>>) -> Vault {
    let vault = vaults.get(&"v".parse().unwrap()).unwrap();
    check(vaults, &vault, files);
    vault
}

pub fn free(disk: &Path) -> u64 {
    let now = rustix::fs::statvfs(disk).unwrap();
    now.f_bavail * now.f_frsize
}

pub fn collect() -> GcOptions {
    GcOptions {
        mode: GcMode::Collect,
        grace: std::time::Duration::ZERO,
        roots: Vec::new(),
    }
}

pub fn removed(vaults: &Vaults, vault: &Vault, path: &str) {
    let head = vaults.by_id(vault.id).unwrap().head;
    let mut edit = vaults.trees().edit(head).unwrap();
    edit.remove(&path.parse().unwrap()).unwrap();
    let root = edit.finish().unwrap();
    let version = NewVersion {
        by: Principal::OWNER,
        exec: None,
        cause: Cause::Remove,
        details: json!({}),
    };
    vaults.publish(vault.id, head, root, version).unwrap();
}
