//! What a store keeps in memory does not depend on what it has done.
//!
//! A program of its own, because SQLite counts the memory of a whole process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use avfs_store::{Error, ObjectId, Store};

/// The most objects of one sweep.
const OBJECTS: u64 = 120;
/// Tables and buffers grow in steps.
const STEPS: i64 = 32 << 10;

/// Stores as many objects and sweeps them.
fn store_and_sweep(store: &Store, objects: u64) {
    let put = |number| store.put(format!("{objects} {number}").as_bytes()).unwrap();
    let dead: Vec<ObjectId> = (0..objects).map(put).collect();
    store.flush().unwrap();
    let confirm = |_: &avfs_store::ledger::Rows<'_>, dead| Ok::<_, Error>(dead);
    let swept = store.sweep(store.mark(), dead, confirm).unwrap();
    assert_eq!(swept.objects, objects);
}

fn in_use() -> i64 {
    // SAFETY: it only counts.
    unsafe { rusqlite::ffi::sqlite3_memory_used() }
}

#[test]
fn sweeps_of_any_size_leave_the_same_in_memory() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    store_and_sweep(&store, OBJECTS);
    let before = in_use();
    (1..OBJECTS).for_each(|objects| store_and_sweep(&store, objects));
    let after = in_use();
    assert!(after < before + STEPS, "{before} bytes, then {after}");
    store.release_caches().unwrap();
    let at_rest = in_use();
    assert!(at_rest < before / 2, "{before} bytes, then {at_rest}");
}
