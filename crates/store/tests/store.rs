//! The store through its public face: what goes in comes out, or says why not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use avfs_store::ledger::Transaction;
use avfs_store::{Durability, Error, ObjectId, Store};
use proptest::prelude::*;

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    paths
}

/// Bytes that do not compress, different for each seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

#[test]
fn the_home_is_private_and_complete() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("deep/home");
    let _store = Store::open(&home).unwrap();
    assert_eq!(home.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for name in ["store.db", "packs", "objects"] {
        assert!(home.join(name).exists(), "{name}");
    }
}

#[test]
fn bytes_come_back_before_and_after_a_transaction_and_a_reopen() {
    let home = tempfile::tempdir().unwrap();
    let objects: Vec<Vec<u8>> = vec![
        vec![],
        b"small".to_vec(),
        b"text that compresses ".repeat(1000),
        noise(1, 100_000),
        noise(2, 3 << 20),
        noise(3, 5 << 20),
    ];
    let ids: Vec<ObjectId> = {
        let store = Store::open(home.path()).unwrap();
        let ids: Vec<_> = objects
            .iter()
            .map(|bytes| store.put(bytes).unwrap())
            .collect();
        for (id, bytes) in ids.iter().zip(&objects) {
            assert_eq!(&*store.get(*id).unwrap(), &bytes[..]);
            assert_eq!(*id, ObjectId::of(bytes));
        }
        assert_eq!(store.stats().unwrap().objects, 0, "nothing is indexed yet");
        store.flush().unwrap();
        assert_eq!(store.stats().unwrap().objects, objects.len() as u64);
        ids
    };
    let store = Store::open(home.path()).unwrap();
    for (id, bytes) in ids.iter().zip(&objects) {
        assert_eq!(&*store.get(*id).unwrap(), &bytes[..]);
    }
    let large = files(&home.path().join("objects"));
    assert_eq!(large.len(), 1);
    assert_eq!(
        large[0].metadata().unwrap().permissions().mode() & 0o222,
        0,
        "unwritable"
    );
}

#[test]
fn what_no_transaction_covered_is_gone_after_a_reopen() {
    let home = tempfile::tempdir().unwrap();
    let id = Store::open(home.path())
        .unwrap()
        .put(b"never acknowledged")
        .unwrap();
    let store = Store::open(home.path()).unwrap();
    assert!(!store.contains(id).unwrap());
    assert!(matches!(store.get(id), Err(Error::Missing { id: missing }) if missing == id));
}

#[test]
fn equal_bytes_are_stored_once() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    for _ in 0..10 {
        store.put(&noise(1, 10_000)).unwrap();
        store.flush().unwrap();
    }
    let stats = store.stats().unwrap();
    assert_eq!((stats.objects, stats.bytes_stored), (1, 10_000));
    let pack = &files(&home.path().join("packs"))[0];
    assert!(pack.metadata().unwrap().len() < 11_000);
}

#[test]
fn a_failed_transaction_changes_nothing_and_keeps_objects_staged() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    store.prepare_ledger().unwrap();
    let row = |t: &Transaction<'_>| t.set_home_setting("x", Some("1"));
    let id = store.put(b"staged").unwrap();
    let failed: Result<(), Error> = store.write(Durability::Full, |transaction| {
        row(transaction)?;
        store.put(b"put inside")?;
        Err(Error::SyncFailed)
    });
    assert!(matches!(failed, Err(Error::SyncFailed)));
    assert_eq!(store.stats().unwrap().objects, 0);
    assert_eq!(&*store.get(id).unwrap(), b"staged");
    let found = || store.read(|rows| rows.home_setting("x")).unwrap();
    assert_eq!(found(), None);
    store.write(Durability::Full, row).unwrap();
    assert_eq!(found().as_deref(), Some("1"));
    assert_eq!(store.stats().unwrap().objects, 2);
}

#[test]
fn objects_put_inside_a_transaction_are_part_of_it() {
    let home = tempfile::tempdir().unwrap();
    let id = {
        let store = Store::open(home.path()).unwrap();
        store
            .write(Durability::Relaxed, |_| store.put(b"inside"))
            .unwrap()
    };
    assert_eq!(
        &*Store::open(home.path()).unwrap().get(id).unwrap(),
        b"inside"
    );
}

#[test]
fn a_changed_byte_is_corrupt_and_never_missing() {
    let home = tempfile::tempdir().unwrap();
    let ids: Vec<_> = {
        let store = Store::open(home.path()).unwrap();
        let ids = [noise(1, 3000), noise(2, 5 << 20)].map(|bytes| store.put(&bytes).unwrap());
        store.flush().unwrap();
        ids.into()
    };
    let [pack, large] = ["packs", "objects"].map(|d| files(&home.path().join(d)).remove(0));
    std::fs::set_permissions(&large, std::fs::Permissions::from_mode(0o600)).unwrap();
    for path in [&pack, &large] {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 1000).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 1000).unwrap();
    }
    let store = Store::open(home.path()).unwrap();
    for id in &ids {
        assert!(matches!(store.get(*id), Err(Error::Corrupt { .. })));
        assert!(store.contains(*id).unwrap());
    }
    OpenOptions::new()
        .write(true)
        .open(&pack)
        .unwrap()
        .set_len(500)
        .unwrap();
    std::fs::remove_file(&large).unwrap();
    for id in &ids {
        assert!(
            matches!(store.get(*id), Err(Error::Corrupt { .. })),
            "cut short, or gone"
        );
    }
}

#[test]
fn appends_after_a_torn_tail_and_finds_everything_again_without_the_index() {
    let home = tempfile::tempdir().unwrap();
    let mut ids = Vec::new();
    for round in 0..3 {
        let store = Store::open(home.path()).unwrap();
        ids.extend((0..20).map(|n| store.put(&noise(round * 100 + n, 700)).unwrap()));
        store.flush().unwrap();
        drop(store);
        let pack = &files(&home.path().join("packs"))[0];
        let mut file = OpenOptions::new().append(true).open(pack).unwrap();
        file.write_all(&noise(round, 333)).unwrap();
        file.write_all(b"AVO1 and then the power went").unwrap();
    }
    let store = Store::open(home.path()).unwrap();
    ids.push(store.put(&noise(9, 5 << 20)).unwrap());
    store.flush().unwrap();
    assert!(ids.iter().all(|id| store.get(*id).is_ok()));
    drop(store);
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(home.path().join(name));
    }
    let found = Store::rebuild(home.path(), |_, found| Ok::<_, Error>(found)).unwrap();
    assert_eq!(found, ids.len() as u64);
    let store = Store::open(home.path()).unwrap();
    assert!(ids.iter().all(|id| store.get(*id).is_ok()));
    assert_eq!(store.reindex().unwrap(), 0);
}

#[test]
fn a_newer_format_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    drop(store);
    let database = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    database
        .execute_batch("UPDATE store SET format = 99")
        .unwrap();
    drop(database);
    assert!(matches!(
        Store::open(home.path()),
        Err(Error::UnknownFormat { found: 99, .. })
    ));
}

#[test]
fn many_threads_put_read_and_commit_at_once() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..300 {
                    // Half of the objects are the same in all threads.
                    let seed = if n % 2 == 0 { n } else { thread * 1000 + n };
                    let bytes = noise(seed, 600 + n as usize * 20);
                    let id = store.put(&bytes).unwrap();
                    assert_eq!(&*store.get(id).unwrap(), &bytes[..]);
                    if n % 50 == 0 {
                        store.flush().unwrap();
                    }
                }
            });
        }
    });
    store.flush().unwrap();
    assert_eq!(store.stats().unwrap().objects, 150 + 4 * 150);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Any mixture of puts, flushes and reopens keeps exactly what was flushed, and all of it.
    #[test]
    fn keeps_what_was_flushed(
        steps in prop::collection::vec((0u8..10, 0u64..40, 0usize..3000), 1..60)
    ) {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(home.path()).unwrap();
        let (mut staged, mut kept) = (BTreeMap::new(), BTreeMap::new());
        for (step, seed, length) in steps {
            match step {
                0 => {
                    drop(store);
                    store = Store::open(home.path()).unwrap();
                    staged.clear();
                }
                1 => {
                    store.flush().unwrap();
                    kept.append(&mut staged);
                }
                _ => {
                    let bytes = noise(seed, length);
                    staged.insert(store.put(&bytes).unwrap(), bytes);
                }
            }
            for (id, bytes) in kept.iter().chain(&staged) {
                prop_assert_eq!(&*store.get(*id).unwrap(), &bytes[..]);
            }
        }
        store.flush().unwrap();
        kept.append(&mut staged);
        prop_assert_eq!(store.stats().unwrap().objects, kept.len() as u64);
    }
}

#[test]
fn a_store_at_rest_leaves_no_log_on_the_disk() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let log = home.path().join("store.db-wal");
    let ids: Vec<ObjectId> = (0..50)
        .map(|seed| store.put(&noise(seed, 100)).unwrap())
        .collect();
    store.flush().unwrap();
    assert!(log.metadata().unwrap().len() > 0);
    store.release_caches().unwrap();
    assert_eq!(log.metadata().unwrap().len(), 0);
    for (seed, id) in ids.into_iter().enumerate() {
        assert_eq!(store.get(id).unwrap()[..], noise(seed as u64, 100)[..]);
    }
    store.put(&noise(99, 100)).unwrap();
    store.flush().unwrap();
}

#[test]
fn good_bytes_repair_a_damaged_object() {
    let home = tempfile::tempdir().unwrap();
    for (n, length) in [(1, 3_000), (2, 5 << 20)] {
        let bytes = noise(n, length);
        let id = {
            let store = Store::open(home.path()).unwrap();
            let id = store.put(&bytes).unwrap();
            store.flush().unwrap();
            id
        };
        let record = match length > 4 << 20 {
            true => home.path().join("objects").join(id.to_string()),
            false => files(&home.path().join("packs"))[0].clone(),
        };
        let mut content = std::fs::read(&record).unwrap();
        let place = content.len() - 100;
        content[place] ^= 1;
        std::fs::remove_file(&record).unwrap();
        std::fs::write(&record, content).unwrap();
        let store = Store::open(home.path()).unwrap();
        assert!(matches!(store.get(id), Err(Error::Corrupt { .. })));
        assert!(!store.is_intact(id).unwrap());
        // What was found lasts, and so does the repair.
        store.flush().unwrap();
        drop(store);
        let store = Store::open(home.path()).unwrap();
        assert!(!store.is_intact(id).unwrap());
        assert_eq!(store.put(&bytes).unwrap(), id);
        assert_eq!(&*store.get(id).unwrap(), &bytes[..]);
        store.flush().unwrap();
        drop(store);
        let store = Store::open(home.path()).unwrap();
        assert!(store.is_intact(id).unwrap());
        assert_eq!(&*store.get(id).unwrap(), &bytes[..]);
        assert!(store.check_database().unwrap().is_empty());
    }
}

#[test]
fn packs_without_their_database_are_refused_and_can_be_taken_in() {
    let home = tempfile::tempdir().unwrap();
    let id = {
        let store = Store::open(home.path()).unwrap();
        let id = store.put(b"kept").unwrap();
        store.flush().unwrap();
        id
    };
    for emptied in [false, true] {
        for name in ["store.db", "store.db-wal", "store.db-shm"] {
            let _ = std::fs::remove_file(home.path().join(name));
        }
        if emptied {
            std::fs::write(home.path().join("store.db"), b"").unwrap();
        }
        let refused = Store::open(home.path()).map(drop);
        assert!(matches!(refused, Err(Error::DatabaseLost { .. })));
        // Cut off in the middle, it has changed nothing, and is begun anew.
        let failed = Store::rebuild(home.path(), |_, _| Err::<(), _>(Error::Full));
        assert!(matches!(failed, Err(Error::Full)));
        let refused = Store::open(home.path()).map(drop);
        assert!(matches!(refused, Err(Error::DatabaseLost { .. })));
        let found = Store::rebuild(home.path(), |_, found| Ok::<_, Error>(found));
        assert_eq!(found.unwrap(), 1);
        let store = Store::open(home.path()).unwrap();
        assert_eq!(&*store.get(id).unwrap(), b"kept");
    }
}

/// A log without its database holds pages of another file than the new one.
#[test]
fn what_is_left_of_a_lost_database_stays_out_of_the_new_one() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("store.db-wal");
    let (id, left) = {
        let store = Store::open(home.path()).unwrap();
        let id = store.put(b"kept").unwrap();
        store.flush().unwrap();
        (id, std::fs::read(&log).unwrap())
    };
    assert!(left.len() > 4096);
    std::fs::remove_file(home.path().join("store.db")).unwrap();
    std::fs::write(&log, &left).unwrap();
    Store::rebuild(home.path(), |_, _| Ok::<_, Error>(())).unwrap();
    let aside = home.path().join("store.db.lost-wal");
    assert_eq!(std::fs::read(aside).unwrap(), left);
    let store = Store::open(home.path()).unwrap();
    assert_eq!(&*store.get(id).unwrap(), b"kept");
    assert!(store.check_database().unwrap().is_empty());
}

/// Only what is looked for is stored, and a whole record elsewhere is as good as the bytes.
#[test]
fn what_is_damaged_is_taken_from_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let bytes = [noise(1, 3000), noise(2, 4000), noise(3, 5000)];
    let ids = {
        let store = Store::open(home.path()).unwrap();
        let ids = bytes.each_ref().map(|bytes| store.put(bytes).unwrap());
        store.flush().unwrap();
        ids
    };
    let pack = &files(&home.path().join("packs"))[0];
    std::fs::copy(pack, home.path().join("packs/00000009.pack")).unwrap();
    let mut damaged = std::fs::read(pack).unwrap();
    for at in [100, 3000 + 64 + 100, 7000 + 128 + 100] {
        damaged[at] ^= 1;
    }
    std::fs::write(pack, damaged).unwrap();
    let store = Store::open(home.path()).unwrap();
    for id in ids {
        assert!(store.get(id).is_err());
    }
    let mending = store.mending([ids[0], ids[1]].into());
    mending.put(&noise(7, 100)).unwrap();
    mending.put(&bytes[0]).unwrap();
    assert_eq!(mending.mended().unwrap(), [ids[0]]);
    assert!(!store.contains(ObjectId::of(&noise(7, 100))).unwrap());
    mending.salvage().unwrap();
    assert_eq!(mending.mended().unwrap(), [ids[1]]);
    assert!(store.is_damaged(ids[2]) && store.any_damage());
    // Its only whole record lies in a pack of which little is needed: that one stays.
    store.compact().unwrap();
    assert_eq!(store.reindex().unwrap(), 0);
    for (id, bytes) in ids.iter().zip(&bytes) {
        assert_eq!(&*store.get(*id).unwrap(), &bytes[..]);
    }
    assert!(!store.any_damage(), "who reads it finds it whole");
}

#[test]
fn packs_that_an_older_database_does_not_know_stay() {
    let home = tempfile::tempdir().unwrap();
    let old = home.path().join("old.db");
    {
        let store = Store::open(home.path()).unwrap();
        store.put(b"first").unwrap();
        store.flush().unwrap();
    }
    std::fs::copy(home.path().join("store.db"), &old).unwrap();
    // What came later is in a pack of its own.
    let later = noise(7, 1000);
    let pack = {
        let donor = tempfile::tempdir().unwrap();
        let store = Store::open(donor.path()).unwrap();
        store.put(&later).unwrap();
        store.flush().unwrap();
        std::fs::read(&files(&donor.path().join("packs"))[0]).unwrap()
    };
    std::fs::write(home.path().join("packs/00000007.pack"), pack).unwrap();
    std::fs::copy(&old, home.path().join("store.db")).unwrap();
    for _ in 0..2 {
        let store = Store::open(home.path()).unwrap();
        assert_eq!(store.foreign_packs().unwrap(), 1);
        store.put(&noise(8, 2000)).unwrap();
        store.flush().unwrap();
        store.compact().unwrap();
        assert!(home.path().join("packs/00000007.pack").exists());
    }
    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.reindex().unwrap(), 1);
    assert_eq!(store.foreign_packs().unwrap(), 0);
    assert_eq!(&*store.get(ObjectId::of(&later)).unwrap(), &later[..]);
}
