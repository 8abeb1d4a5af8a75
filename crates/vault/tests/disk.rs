//! A disk that is full at any moment: an error that says so, nothing half-done, nothing lost.
//!
//! The disk is a small tmpfs in a mount namespace of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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
fn on_small_disk(test: &str, options: &str) {
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

fn small_disk() -> PathBuf {
    std::env::var_os(DISK)
        .expect("the other test names it")
        .into()
}

/// Takes up all files that the disk can have.
fn use_up_files(dir: &Path) {
    let crowd = dir.join("crowd");
    fs::create_dir(&crowd).unwrap();
    for number in 0.. {
        if File::create(crowd.join(number.to_string())).is_err() {
            return;
        }
    }
}

/// Takes up room until only about `kib` are left.
fn fill(dir: &Path, kib: usize) {
    let mut ballast = File::create(dir.join("ballast")).unwrap();
    let block = [0; 4096];
    while ballast.write_all(&block).is_ok() {}
    let length = ballast.metadata().unwrap().len();
    ballast
        .set_len(length.saturating_sub(kib as u64 * 1024))
        .unwrap();
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    let seeded = hasher.update(&seed.to_le_bytes());
    seeded.finalize_xof().fill(&mut bytes);
    bytes
}

fn write(vaults: &Vaults, vault: &Vault, path: &str, bytes: &[u8]) -> Result<RootId, Error> {
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

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.is_full()) || matches!(error, Error::Swept { .. })
}

fn check(vaults: &Vaults, vault: &Vault, files: &BTreeMap<String, Vec<u8>>) {
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

#[test]
#[ignore = "needs the small disk that another test makes"]
fn with_so_much_left() {
    let disk = &small_disk();
    let mut vaults = Vaults::open(Store::open(&disk.join("home")).unwrap()).unwrap();
    let vault = vaults
        .create(&"v".parse().unwrap(), &Principal::OWNER)
        .unwrap();
    let (mut files, mut refused) = (BTreeMap::new(), 0);
    for (n, left) in (0..400_usize).step_by(12).enumerate() {
        fill(disk, left);
        let path = format!("/{n}");
        // Of all sizes: within one buffer, in chunks, and above both.
        let bytes = noise(n as u64, [3000, 70_000, 1_500_000][n % 3]);
        match write(&vaults, &vault, &path, &bytes) {
            Ok(_) => drop(files.insert(path, bytes)),
            Err(error) => {
                assert!(is_full(&error), "{left} KiB left: {error}");
                refused += 1;
            }
        }
        // Whatever happened, a little room is enough for a little work.
        fs::remove_file(disk.join("ballast")).unwrap();
        fill(disk, 300);
        write(&vaults, &vault, "/small", &n.to_le_bytes()).unwrap();
        files.insert("/small".into(), n.to_le_bytes().to_vec());
        fs::remove_file(disk.join("ballast")).unwrap();
        check(&vaults, &vault, &files);
        if n % 5 == 4 {
            drop(vaults);
            vaults = Vaults::open(Store::open(&disk.join("home")).unwrap()).unwrap();
            check(&vaults, &vault, &files);
            vaults.gc(&collect(), &Principal::OWNER).unwrap();
            check(&vaults, &vault, &files);
        }
    }
    assert!(refused > 5, "{refused} writes were refused");
    assert!(files.len() > 5, "{} were not", files.len());
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    on_small_disk("with_so_much_left", "size=24m");
}

#[test]
#[ignore = "needs the small disk that another test makes"]
fn with_nothing_but_reading() {
    let disk = &small_disk();
    let (home, files) = prepared(disk, HowItEnded::Killed);
    let mount = |option: &str| {
        let mut command = Command::new("mount");
        let status = command.args(["-o", option]).arg(disk).status();
        assert!(status.unwrap().success());
    };
    mount("remount,bind,ro");
    let vaults = Vaults::open(Store::open(&home).unwrap()).unwrap();
    check_reads(&vaults, &files);
    let error = vaults.create(&"w".parse().unwrap(), &Principal::OWNER);
    let error = error.unwrap_err();
    assert!(error.to_string().contains("can only be read"), "{error}");
    drop(vaults);
    mount("remount,bind,rw");
    let (vaults, vault) = reopened(&home, &files);
    write(&vaults, &vault, "/f", b"x").unwrap();
}

#[test]
fn a_read_only_home_is_read() {
    on_small_disk("with_nothing_but_reading", "size=8m");
}

/// Opens a home again; the files of its vault are whole.
fn reopened(home: &Path, files: &BTreeMap<String, Vec<u8>>) -> (Vaults, Vault) {
    let vaults = Vaults::open(Store::open(home).unwrap()).unwrap();
    let vault = check_reads(&vaults, files);
    (vaults, vault)
}

/// A home with a vault of two files, whose database was closed, or was cut off in its middle.
fn prepared(disk: &Path, end: HowItEnded) -> (PathBuf, BTreeMap<String, Vec<u8>>) {
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
enum HowItEnded {
    Closed,
    Killed,
}

#[derive(Clone, Copy, Debug)]
enum WhatIsUsedUp {
    Bytes,
    Files,
}

impl WhatIsUsedUp {
    fn use_up(self, disk: &Path) {
        match self {
            WhatIsUsedUp::Bytes => fill(disk, 0),
            WhatIsUsedUp::Files => use_up_files(disk),
        }
    }
}

fn free_again(disk: &Path) {
    let _ = fs::remove_file(disk.join("ballast"));
    let _ = fs::remove_dir_all(disk.join("crowd"));
}

fn every_full_disk() -> impl Iterator<Item = (HowItEnded, WhatIsUsedUp)> {
    let ends = [HowItEnded::Closed, HowItEnded::Killed];
    let both = |end| [(end, WhatIsUsedUp::Bytes), (end, WhatIsUsedUp::Files)];
    ends.into_iter().flat_map(both)
}

fn check_reads(vaults: &Vaults, files: &BTreeMap<String, Vec<u8>>) -> Vault {
    let vault = vaults.get(&"v".parse().unwrap()).unwrap();
    check(vaults, &vault, files);
    vault
}

#[test]
#[ignore = "needs the small disk that another test makes"]
fn without_room_and_reserve() {
    let disk = &small_disk();
    for full in every_full_disk() {
        let (end, used_up) = full;
        let (home, mut files) = prepared(disk, end);
        fs::remove_dir_all(home.join("reserve")).unwrap();
        used_up.use_up(disk);
        let (vaults, vault) = reopened(&home, &files);
        let error = write(&vaults, &vault, "/new", b"new").unwrap_err();
        assert!(is_full(&error), "{full:?}: {error}");
        check_reads(&vaults, &files);
        // What others remove is enough, and nobody has to open anything again.
        free_again(disk);
        write(&vaults, &vault, "/new", b"new").unwrap();
        files.insert("/new".into(), b"new".to_vec());
        check_reads(&vaults, &files);
        drop(vaults);
        drop(reopened(&home, &files));
        fs::remove_dir_all(&home).unwrap();
    }
}

#[test]
fn a_home_without_room_is_opened_and_read() {
    on_small_disk("without_room_and_reserve", "size=16m,nr_inodes=120");
}

#[test]
#[ignore = "needs the small disk that another test makes"]
fn with_the_reserve_alone() {
    let disk = &small_disk();
    for full in every_full_disk() {
        let (end, used_up) = full;
        let (home, files) = prepared(disk, end);
        used_up.use_up(disk);
        let (vaults, vault) = reopened(&home, &files);
        for _ in 0..3 {
            let error = write(&vaults, &vault, "/new", &noise(9, 100_000)).unwrap_err();
            assert!(is_full(&error), "{full:?}: {error}");
        }
        let head = vaults.by_id(vault.id).unwrap().head;
        let other = vaults.versions(vault.id, 9).unwrap().last().unwrap().root;
        assert_ne!(head, other);
        vaults
            .record(avfs_vault::NewJournalEntry {
                vault: None,
                exec: None,
                principal: Principal::OWNER,
                operation: avfs_vault::JournalEvent::Repair.into(),
                details: json!({}),
            })
            .unwrap();
        vaults.delete(&vault.name, &Principal::OWNER).unwrap();
        let report = vaults.gc(&collect(), &Principal::OWNER).unwrap();
        assert_eq!(report.forgotten.len(), 1, "{full:?}: {report:?}");
        assert!(report.compacted.packs > 0, "{full:?}: {report:?}");
        free_again(disk);
        let again = vaults.create(&"again".parse().unwrap(), &Principal::OWNER);
        again.unwrap();
        drop(vaults);
        fs::remove_dir_all(&home).unwrap();
    }
}

#[test]
fn the_way_out_works_with_the_reserve_alone() {
    on_small_disk("with_the_reserve_alone", "size=16m,nr_inodes=120");
}

fn free(disk: &Path) -> u64 {
    let now = rustix::fs::statvfs(disk).unwrap();
    now.f_bavail * now.f_frsize
}

fn collect() -> GcOptions {
    GcOptions {
        mode: GcMode::Collect,
        grace: std::time::Duration::ZERO,
        roots: Vec::new(),
    }
}

fn removed(vaults: &Vaults, vault: &Vault, path: &str) {
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

#[test]
#[ignore = "needs the small disk that another test makes"]
fn with_more_garbage_than_room() {
    let disk = &small_disk();
    let home = disk.join("home");
    let vaults = Vaults::open(Store::open(&home).unwrap()).unwrap();
    let vault = vaults
        .create(&"v".parse().unwrap(), &Principal::OWNER)
        .unwrap();
    let mut files = BTreeMap::new();
    for n in 0..10 {
        let (path, bytes) = (format!("/{n}"), noise(n, 1_500_000));
        write(&vaults, &vault, &path, &bytes).unwrap();
        files.insert(path, bytes);
    }
    for n in [0, 1, 3, 5, 6, 8] {
        removed(&vaults, &vault, &format!("/{n}"));
        files.remove(&format!("/{n}"));
    }
    vaults
        .prune(vault.id, avfs_vault::Keep::Newest(1), &Principal::OWNER)
        .unwrap();
    fill(disk, 100);
    let before = free(disk);
    // The four files that are left fit neither into what is free nor into the reserve.
    let report = vaults.gc(&collect(), &Principal::OWNER).unwrap();
    assert_eq!(report.compacted.waiting, 1, "{report:?}");
    let after = free(disk);
    assert!(
        after > before + 8_000_000,
        "{before} bytes were free, now {after}"
    );
    check(&vaults, &vault, &files);
    drop(vaults);
    let vaults = Vaults::open(Store::open(&home).unwrap()).unwrap();
    check(&vaults, &vault, &files);
    // With room the pack is written anew.
    let report = vaults.gc(&collect(), &Principal::OWNER).unwrap();
    assert_eq!(
        (report.compacted.packs, report.compacted.waiting),
        (1, 0),
        "{report:?}"
    );
    check(&vaults, &vault, &files);
}

#[test]
fn gc_frees_before_it_writes() {
    on_small_disk("with_more_garbage_than_room", "size=24m");
}

#[test]
#[ignore = "needs the small disk that another test makes"]
fn with_work_that_does_not_fit() {
    let disk = &small_disk();
    let (home, mut files) = prepared(disk, HowItEnded::Closed);
    let (vaults, vault) = reopened(&home, &files);
    fill(disk, 3 << 10);
    let before = free(disk);
    for n in 0..5 {
        let error = write(&vaults, &vault, "/new", &noise(n, 6_000_000)).unwrap_err();
        assert!(is_full(&error), "{error}");
        let after = free(disk);
        assert!(
            after + 300_000 > before,
            "{before} bytes were free, now {after}"
        );
    }
    write(&vaults, &vault, "/new", b"new").unwrap();
    files.insert("/new".into(), b"new".to_vec());
    check_reads(&vaults, &files);
    drop(vaults);
    reopened(&home, &files);
}

#[test]
fn work_that_does_not_fit_leaves_nothing_behind() {
    on_small_disk("with_work_that_does_not_fit", "size=24m");
}

#[test]
#[ignore = "needs the small disk that another test makes"]
fn with_a_journal_that_grows() {
    let disk = &small_disk();
    let (home, files) = prepared(disk, HowItEnded::Closed);
    let (vaults, vault) = reopened(&home, &files);
    fill(disk, 0);
    let record = |text: String| {
        vaults.record(avfs_vault::NewJournalEntry {
            vault: None,
            exec: None,
            principal: Principal::OWNER,
            operation: avfs_vault::JournalEvent::Repair.into(),
            details: json!({ "text": text }),
        })
    };
    let mut recorded = 0;
    let error = loop {
        match record("x".repeat(20_000)) {
            Ok(_) => recorded += 1,
            Err(error) => break error,
        }
        assert!(recorded < 2000, "the reserve has an end");
    };
    assert!(is_full(&error), "{error}");
    assert!(recorded > 3, "{recorded} entries");
    // A part of the reserve is not for this, so that the owner still gets out.
    check_reads(&vaults, &files);
    vaults.delete(&vault.name, &Principal::OWNER).unwrap();
    vaults.gc(&collect(), &Principal::OWNER).unwrap();
    assert!(vaults.fsck().is_clean());
}

#[test]
fn a_journal_that_grows_leaves_the_owner_a_way_out() {
    on_small_disk("with_a_journal_that_grows", "size=24m");
}

#[test]
#[ignore = "needs the small disk that another test makes"]
fn with_every_step_at_every_size() {
    let disk = &small_disk();
    let (home, mut files) = prepared(disk, HowItEnded::Closed);
    let (owner, mut refused) = (Principal::OWNER, 0);
    let name: avfs_vault::CheckpointName = "here".parse().unwrap();
    for left in (0..320).step_by(16) {
        let (vaults, vault) = reopened(&home, &files);
        fill(disk, left);
        let path = format!("/at-{left}");
        match write(&vaults, &vault, &path, &noise(left as u64, 60_000)) {
            Ok(_) => drop(files.insert(path, noise(left as u64, 60_000))),
            Err(error) => {
                assert!(is_full(&error), "{left} KiB left: {error}");
                refused += 1;
            }
        }
        let vault = check_reads(&vaults, &files);
        let origin = avfs_vault::CheckpointOrigin::Asked;
        let saved = vaults.save_checkpoint(vault.id, Some(&name), vault.head, origin, &owner);
        match saved {
            Ok(_) => {
                vaults.restore(vault.id, vault.head, &name, &owner).unwrap();
                check_reads(&vaults, &files);
                vaults.delete_checkpoint(vault.id, &name, &owner).unwrap();
            }
            Err(error) => assert!(is_full(&error), "{left} KiB left: {error}"),
        }
        vaults.gc(&collect(), &owner).unwrap();
        vaults.compact().unwrap();
        check_reads(&vaults, &files);
        drop(vaults);
        drop(reopened(&home, &files));
        fs::remove_file(disk.join("ballast")).unwrap();
    }
    assert!((2..18).contains(&refused), "{refused} writes were refused");
}

#[test]
fn every_step_is_whole_at_every_size() {
    on_small_disk("with_every_step_at_every_size", "size=24m");
}
