//! What any engine must do, tried on each. A new engine gets a bed and a line in `engines!`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod memory;

use std::path::Path;
use std::sync::Arc;

use avfs_store::ledger::Transaction;
use avfs_store::{Durability, Engine, Error, Files, ObjectId, RecordLocation, Store};
use memory::{Disk, Memory};

/// A place in which an engine lives; opening it again is what a new process does.
trait Bed {
    fn open(&self) -> Box<dyn Engine>;
    /// For the database of a store over the engine.
    fn home(&self) -> &Path;
}

struct FilesBed(tempfile::TempDir);

impl Bed for FilesBed {
    fn open(&self) -> Box<dyn Engine> {
        Box::new(Files::open(self.0.path()).unwrap())
    }

    fn home(&self) -> &Path {
        self.0.path()
    }
}

struct MemoryBed(tempfile::TempDir, Arc<Disk>);

impl Bed for MemoryBed {
    fn open(&self) -> Box<dyn Engine> {
        Box::new(Memory::open(self.1.clone()))
    }

    fn home(&self) -> &Path {
        self.0.path()
    }
}

macro_rules! engines {
    ($($engine:ident = $bed:expr,)*; $tests:tt) => {
        $(engines!(@engine $engine, $bed, $tests);)*
    };
    (@engine $engine:ident, $bed:expr, [$($test:ident),* $(,)?]) => {
        mod $engine {
            use super::*;
            $(#[test]
            fn $test() {
                super::$test(&$bed)
            })*
        }
    };
}

engines! {
    files = FilesBed(tempfile::tempdir().unwrap()),
    in_memory = MemoryBed(tempfile::tempdir().unwrap(), Arc::default()),
    ; [
        records_read_back_at_once_and_for_ever,
        later_records_lie_behind_earlier_ones,
        what_is_not_wholly_there_is_none,
        large_records_are_kept_by_themselves,
        discarding_gives_up_only_what_was_not_made_to_last,
        a_sealed_pack_stays_as_it_is_until_it_is_removed,
        many_threads_append_and_read,
        a_store_works_over_it,
    ]
}

/// Bytes that do not compress, different for each seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    let seeded = hasher.update(&seed.to_le_bytes());
    seeded.finalize_xof().fill(&mut bytes);
    bytes
}

/// Small ones have an id only so that there is something to ask with.
fn read(engine: &dyn Engine, place: RecordLocation, length: usize) -> Option<Vec<u8>> {
    let id = ObjectId::of(b"");
    engine.read(id, place, length as u64).unwrap()
}

fn records_read_back_at_once_and_for_ever(bed: &dyn Bed) {
    let records: Vec<Vec<u8>> = (0..50).map(|n| noise(n, 1 + 997 * n as usize)).collect();
    let engine = bed.open();
    let places: Vec<RecordLocation> = records
        .iter()
        .map(|it| engine.append(it).unwrap())
        .collect();
    let check = |engine: &dyn Engine| {
        for (place, record) in places.iter().zip(&records) {
            assert_eq!(read(engine, *place, record.len()).as_ref(), Some(record));
        }
    };
    check(&*engine);
    engine.sync().unwrap();
    engine.sync().unwrap();
    check(&*engine);
    drop(engine);
    check(&*bed.open());
}

fn later_records_lie_behind_earlier_ones(bed: &dyn Bed) {
    let mut last = RecordLocation::LOOSE;
    for _ in 0..3 {
        let engine = bed.open();
        for n in 0..20 {
            let end = engine.end();
            let place = engine.append(&noise(n, 30_000)).unwrap();
            assert!(
                end >= last && place >= end,
                "{place:?} after {end:?} after {last:?}"
            );
            assert!(!place.is_loose());
            assert!(engine.end() > place);
            last = place;
        }
        engine.sync().unwrap();
    }
}

fn what_is_not_wholly_there_is_none(bed: &dyn Bed) {
    let engine = bed.open();
    let place = engine.append(&noise(1, 1000)).unwrap();
    let beyond = RecordLocation {
        offset: place.offset + 5000,
        ..place
    };
    let elsewhere = RecordLocation {
        pack: place.pack + 7,
        offset: 0,
    };
    for _ in 0..2 {
        assert_eq!(read(&*engine, place, 1001), None);
        assert_eq!(read(&*engine, beyond, 10), None);
        assert_eq!(read(&*engine, elsewhere, 10), None);
        assert_eq!(
            engine
                .read(ObjectId::of(b"x"), RecordLocation::LOOSE, 10)
                .unwrap(),
            None
        );
        engine.sync().unwrap();
    }
}

fn large_records_are_kept_by_themselves(bed: &dyn Bed) {
    let engine = bed.open();
    let (one, two) = (ObjectId::of(b"one"), ObjectId::of(b"two"));
    engine.keep(one, &noise(1, 100_000)).unwrap();
    engine.keep(two, &noise(2, 50)).unwrap();
    engine.keep(two, &noise(3, 200_000)).unwrap();
    engine.sync().unwrap();
    drop(engine);
    let engine = bed.open();
    let mut kept = engine.kept().unwrap();
    kept.sort();
    let mut expected = [(one, 100_000), (two, 200_000)];
    expected.sort();
    assert_eq!(kept, expected);
    let read = engine.read(two, RecordLocation::LOOSE, 200_000).unwrap();
    assert_eq!(read, Some(noise(3, 200_000)));
    engine.remove_kept(two).unwrap();
    engine.remove_kept(two).unwrap();
    assert_eq!(
        engine.read(two, RecordLocation::LOOSE, 200_000).unwrap(),
        None
    );
    assert_eq!(engine.kept().unwrap(), [(one, 100_000)]);
}

fn discarding_gives_up_only_what_was_not_made_to_last(bed: &dyn Bed) {
    let engine = bed.open();
    let kept = engine.append(&noise(1, 500)).unwrap();
    engine.sync().unwrap();
    let lost = engine.append(&noise(2, 500)).unwrap();
    let began = engine.discard();
    assert!(began > kept && began <= lost, "{began:?}");
    assert_eq!(read(&*engine, kept, 500), Some(noise(1, 500)));
    let again = engine.append(&noise(3, 700)).unwrap();
    engine.sync().unwrap();
    assert_eq!(read(&*engine, again, 700), Some(noise(3, 700)));
    assert_eq!(read(&*engine, kept, 500), Some(noise(1, 500)));
}

fn a_sealed_pack_stays_as_it_is_until_it_is_removed(bed: &dyn Bed) {
    let engine = bed.open();
    let first = engine.append(&noise(1, 5000)).unwrap();
    engine.seal(first.pack).unwrap();
    engine.seal(first.pack).unwrap();
    let second = engine.append(&noise(2, 5000)).unwrap();
    assert!(second.pack > first.pack);
    engine.sync().unwrap();
    assert_eq!(
        engine.pack(first.pack).unwrap()[first.offset as usize..],
        noise(1, 5000)
    );
    let packs = engine.packs().unwrap();
    assert_eq!(packs, [(first.pack, 5000), (second.pack, 5000)]);
    engine.remove(first.pack).unwrap();
    assert_eq!(read(&*engine, first, 5000), None);
    drop(engine);
    let engine = bed.open();
    assert_eq!(engine.packs().unwrap(), [(second.pack, 5000)]);
    assert_eq!(read(&*engine, second, 5000), Some(noise(2, 5000)));
    assert_eq!(read(&*engine, first, 5000), None);
}

fn many_threads_append_and_read(bed: &dyn Bed) {
    let engine = bed.open();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let engine = &*engine;
            scope.spawn(move || {
                for n in 0..200 {
                    let record = noise(thread * 1000 + n, 300 + n as usize * 20);
                    let place = engine.append(&record).unwrap();
                    if n % 20 == 0 {
                        engine.sync().unwrap();
                    }
                    assert_eq!(read(engine, place, record.len()), Some(record));
                }
            });
        }
    });
}

fn a_store_works_over_it(bed: &dyn Bed) {
    let open = || Store::with_engine(bed.home(), bed.open()).unwrap();
    let store = open();
    let put = |seed: u64, length: usize| store.put(&noise(seed, length)).unwrap();
    let dead: Vec<ObjectId> = (0..40).map(|n| put(n, 5000)).collect();
    let live: Vec<ObjectId> = (100..110).map(|n| put(n, 5000)).collect();
    let large = put(200, 5 << 20);
    store.prepare_ledger().unwrap();
    let row = |transaction: &Transaction<'_>| transaction.set_home_setting("named", Some("1"));
    store.write(Durability::Full, row).unwrap();
    let lost = store.put(b"never acknowledged").unwrap();
    drop(store);

    let store = open();
    assert!(!store.contains(lost).unwrap());
    for id in dead.iter().chain(&live).chain([&large]) {
        store.verify(*id).unwrap();
    }
    let all = [&dead[..], &[large]].concat();
    let swept = store.sweep(store.mark(), all, |_, dead| Ok::<_, Error>(dead));
    assert_eq!(swept.unwrap().objects, 41);
    let before = store.disk_usage().unwrap();
    assert!(store.compact().unwrap().packs >= 1);
    let after = store.disk_usage().unwrap();
    assert!(
        after.pack_bytes < before.pack_bytes / 2,
        "{after:?} after {before:?}"
    );
    assert_eq!((before.loose, after.loose), (0, 0));
    drop(store);

    let store = open();
    assert!(live.iter().all(|id| store.verify(*id).is_ok()));
    let gone = |id: &ObjectId| matches!(store.get(*id), Err(Error::Missing { .. }));
    assert!(dead.iter().chain([&large]).all(gone));
    assert_eq!(store.reindex().unwrap(), 0, "the index knows all there is");
    assert_eq!(store.check_database().unwrap(), [] as [String; 0]);
}
