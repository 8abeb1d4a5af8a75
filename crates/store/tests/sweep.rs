//! Sweeps and compaction: what is dead goes, what anybody may still need stays.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use avfs_store::{Error, ObjectId, Store, Swept};

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

fn put_many(store: &Store, seeds: std::ops::Range<u64>, length: usize) -> Vec<ObjectId> {
    let ids = seeds.map(|seed| store.put(&noise(seed, length)).unwrap());
    let ids = ids.collect();
    store.flush().unwrap();
    ids
}

/// Sweeps all of `dead` that may go.
fn sweep(store: &Store, dead: &[ObjectId]) -> Swept {
    let confirm = |_: &avfs_store::ledger::Rows<'_>, dead| Ok::<_, Error>(dead);
    store.sweep(store.mark(), dead.to_vec(), confirm).unwrap()
}

fn pack_bytes(home: &Path) -> u64 {
    let packs = std::fs::read_dir(home.join("packs")).unwrap();
    packs
        .map(|pack| pack.unwrap().metadata().unwrap().len())
        .sum()
}

#[test]
fn the_dead_go_and_their_bytes_with_them() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let dead = put_many(&store, 0..60, 5000);
    let live = put_many(&store, 100..120, 5000);
    let large = put_many(&store, 200..201, 5 << 20);
    let mut all = dead.clone();
    all.extend(&large);
    let before = pack_bytes(home.path());
    let swept = sweep(&store, &all);
    let bytes = 60 * 5000 + (5 << 20);
    assert_eq!(swept, Swept { objects: 61, bytes });
    let stats = store.stats().unwrap();
    assert_eq!((stats.objects, stats.bytes_stored), (20, 20 * 5000));
    assert_eq!(
        std::fs::read_dir(home.path().join("objects"))
            .unwrap()
            .count(),
        0
    );

    let compacted = store.compact().unwrap();
    assert_eq!(compacted.packs, 1);
    assert!(pack_bytes(home.path()) <= before / 3, "{compacted:?}");
    assert_eq!(
        store.disk_usage().unwrap().pack_bytes,
        pack_bytes(home.path())
    );
    assert_eq!(
        store.compact().unwrap().packs,
        0,
        "there is nothing left to do"
    );
    drop(store);
    let store = Store::open(home.path()).unwrap();
    for id in &live {
        store.verify(*id).unwrap();
    }
    for id in &all {
        assert!(matches!(store.get(*id), Err(Error::Missing { .. })));
    }
    // What is gone can come again.
    assert_eq!(put_many(&store, 0..60, 5000), dead);
    assert!(dead.iter().all(|id| store.verify(*id).is_ok()));
}

#[test]
fn a_pack_that_an_interrupted_compaction_left_is_removed_by_the_next() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let dead = put_many(&store, 0..60, 5000);
    let live = put_many(&store, 100..120, 5000);
    let pack = home.path().join("packs/00000001.pack");
    let copy = std::fs::read(&pack).unwrap();
    sweep(&store, &dead);
    store.compact().unwrap();
    assert!(!pack.exists());
    drop(store);
    std::fs::write(&pack, copy).unwrap();
    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.compact().unwrap().packs, 1);
    assert!(!pack.exists());
    assert!(live.iter().all(|id| store.verify(*id).is_ok()));
}

#[test]
fn a_damaged_record_is_not_carried_over() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let ids = put_many(&store, 0..10, 5000);
    let pack = home.path().join("packs/00000001.pack");
    let mut bytes = std::fs::read(&pack).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    sweep(&store, &ids[..9]);
    assert_eq!(store.compact().unwrap().packs, 0);
    assert!(pack.exists(), "somebody may yet want to look at it");
    assert!(matches!(store.verify(ids[9]), Err(Error::Corrupt { .. })));
}

#[test]
fn nothing_stored_since_the_mark_goes_nor_what_is_confirmed_alive() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let old = put_many(&store, 0..10, 100);
    let mark = store.mark();
    let new = put_many(&store, 10..20, 100);
    let saved = old[3];
    let all = [old.clone(), new.clone()].concat();
    let keep = |_: &avfs_store::ledger::Rows<'_>, mut dead: Vec<ObjectId>| {
        dead.retain(|id| *id != saved);
        Ok::<_, Error>(dead)
    };
    assert_eq!(store.sweep(mark, all, keep).unwrap().objects, 9);
    assert!(
        new.iter()
            .chain([&saved])
            .all(|id| store.verify(*id).is_ok())
    );
}

#[test]
fn what_a_lease_saw_stays_until_it_ends() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let old = put_many(&store, 0..10, 100);
    let lease = store.lease();
    let found = store.put(&noise(4, 100)).unwrap();
    let new = put_many(&store, 10..20, 100);
    let all = [old.clone(), new.clone()].concat();
    assert_eq!(sweep(&store, &all).objects, 9);
    store.verify(found).unwrap();
    assert!(new.iter().all(|id| store.verify(*id).is_ok()));
    drop(lease);
    assert_eq!(sweep(&store, &all).objects, 11);
}

/// Sweeps everything all the time; whoever holds a lease notices nothing.
#[test]
fn writers_with_leases_never_miss_what_they_stored() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3_u64)
            .map(|thread| {
                scope.spawn({
                    let store = store.clone();
                    move || {
                        for round in 0..60_u64 {
                            let _lease = store.lease();
                            // Few different ones, so that all are found as often as stored.
                            let seeds = (0..12).map(|n| (n * 7 + round + thread) % 30);
                            let ids: Vec<_> = seeds
                                .map(|seed| store.put(&noise(seed, 300)).unwrap())
                                .collect();
                            if round % 3 == 0 {
                                store.flush().unwrap();
                            }
                            std::thread::yield_now();
                            for id in ids {
                                store.verify(id).unwrap();
                            }
                        }
                    }
                })
            })
            .collect();
        let sweeper = scope.spawn(|| {
            let mut swept = 0;
            loop {
                // The last sweep finds no leases, so that some sweep has something to do.
                let last = done.load(Ordering::Relaxed);
                let all: HashSet<_> = store.list(None, usize::MAX).unwrap().into_iter().collect();
                let all: Vec<_> = all.into_iter().map(|stored| stored.id).collect();
                swept += sweep(&store, &all).objects;
                store.compact().unwrap();
                if last {
                    return swept;
                }
            }
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        assert!(sweeper.join().unwrap() > 0, "something was swept");
    });
    let left: Vec<_> = store.list(None, usize::MAX).unwrap();
    assert_eq!(store.stats().unwrap().objects, left.len() as u64);
    assert!(left.iter().all(|stored| store.verify(stored.id).is_ok()));
}
