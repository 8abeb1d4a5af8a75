//! A disk that is full at any moment: an error that says so, nothing half-done, nothing lost.
//!
//! The disk is a small tmpfs in a mount namespace of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod small_disk;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use avfs_store::Store;
use avfs_vault::{Principal, Vaults};
use serde_json::json;

use small_disk::{
    HowItEnded, check, check_reads, collect, every_full_disk, fill, free, free_again, is_full,
    noise, on_small_disk, prepared, removed, reopened, small_disk, write,
};

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
