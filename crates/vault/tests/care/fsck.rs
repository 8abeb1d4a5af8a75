//! fsck finds what is damaged and says whom it concerns.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use avfs_store::{ObjectId, Store};
use avfs_testkit::{ask_database, change_database};
use avfs_vault::{
    ContentWriter, Entry, FsckReport, JournalCheck, Keep, Kind, Meta, Rebuilt, RecoveredVault,
    RootId, Time, Vaults,
};

use crate::common::{
    OWNER, add_file, checkpoint, collect, edit_file, head, name, noise, open, publish,
};

fn content_of(vaults: &Vaults, root: RootId, path: &str) -> ObjectId {
    let entry = vaults.trees().entry(root, &path.parse().unwrap()).unwrap();
    match entry.unwrap().kind {
        Kind::File { content, .. } => match content {
            avfs_vault::Content::Object(id) | avfs_vault::Content::Chunks(id) => id,
        },
        other => panic!("{path} is {other:?}"),
    }
}

fn pack(home: &Path) -> PathBuf {
    home.join("packs/00000001.pack")
}

/// Changes a byte of the record that holds `id`, wherever it lies.
fn damage(home: &Path, id: ObjectId) {
    let bytes = std::fs::read(pack(home)).unwrap();
    let at = bytes
        .windows(32)
        .position(|window| window == id.as_bytes())
        .unwrap();
    let file = std::fs::File::options()
        .write(true)
        .open(pack(home))
        .unwrap();
    // Behind the header, which ends eight bytes after the id.
    file.write_all_at(&[bytes[at + 40] ^ 1], at as u64 + 40)
        .unwrap();
}

fn reopen(home: &Path, vaults: Vaults) -> Vaults {
    drop(vaults);
    Vaults::open(Store::open(home).unwrap()).unwrap()
}

/// `vault path: states` of every sighting.
fn seen(report: &FsckReport) -> Vec<String> {
    let sightings = report.damaged.iter().flat_map(|damage| &damage.seen);
    let mut texts: Vec<_> = sightings
        .map(|it| format!("{} {}: {}", it.vault, it.path, it.states.join(", ")))
        .collect();
    texts.sort();
    texts
}

#[test]
fn a_whole_home_is_clean() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    add_file(&vaults, &vault, "/small", b"x");
    add_file(&vaults, &vault, "/large", &noise(1, 3 << 20));
    let report = vaults.fsck();
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(report.objects, vaults.stats().unwrap().objects);
    assert!(report.bytes > 3 << 20);
}

/// Deeper than any stack, as moving one deep directory into another can make it.
#[test]
fn a_very_deep_tree_is_checked_and_collected() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let mut root = edit_file(&vaults, head(&vaults, &vault), "/f", b"at the bottom");
    for _ in 0..12_000 {
        let top = vaults.trees().root(root).unwrap().top.clone();
        let mut edit = vaults.trees().edit(vault.head).unwrap();
        edit.put(&"/d".parse().unwrap(), top).unwrap();
        root = edit.finish().unwrap();
    }
    publish(&vaults, &vault, root).unwrap();
    vaults.gc(&collect(), OWNER).unwrap();
    let changed = edit_file(&vaults, root, "/other", b"x");
    publish(&vaults, &vault, changed).unwrap();
    let report = vaults.fsck();
    assert!(report.is_clean(), "{:?}", report.damaged.len());
}

#[test]
fn damaged_content_is_found_with_all_whom_it_concerns() {
    let (home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let root = add_file(&vaults, &vault, "/f", &noise(1, 5000));
    checkpoint(&vaults, &vault, "point");
    vaults.fork(&name("v"), &name("fork"), OWNER).unwrap();
    add_file(&vaults, &vault, "/f", &noise(2, 5000));
    let good = content_of(&vaults, head(&vaults, &vault), "/f");
    let bad = content_of(&vaults, root, "/f");
    let vaults = reopen(home.path(), vaults);
    damage(home.path(), bad);
    let report = vaults.fsck();
    assert!(!report.is_clean());
    assert_eq!(report.damaged.len(), 1);
    assert_eq!(report.damaged[0].object, bad);
    assert_ne!(bad, good);
    let expected = ["fork /f: head, beginning, v1", "v /f: v2, checkpoint point"];
    assert_eq!(seen(&report), expected);
}

/// More parts than one list holds, so that there are lists of lists.
#[test]
fn a_file_of_many_pieces_is_kept_and_checked_to_its_last_one() {
    let (home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let last = noise(9, 70_000);
    let mut writer = ContentWriter::new(vaults.trees());
    for _ in 0..5000 {
        writer.write(b"x").unwrap();
        writer.zeros((128 << 10) - 1).unwrap();
    }
    writer.write(&last).unwrap();
    let (content, size) = writer.finish().unwrap();
    let mut edit = vaults.trees().edit(head(&vaults, &vault)).unwrap();
    let meta = Meta::new(0o644, Time::EPOCH);
    let entry = Entry::file(content, size, meta);
    edit.put(&"/many".parse().unwrap(), entry).unwrap();
    publish(&vaults, &vault, edit.finish().unwrap()).unwrap();
    assert_eq!(vaults.gc(&collect(), OWNER).unwrap().swept.objects, 0);
    assert!(vaults.fsck().is_clean());
    let read = vaults.trees().read(content, size - 70_000, 70_000).unwrap();
    assert!(read == last);
    let objects = vaults.trees().content_objects(content).unwrap();
    let store = vaults.trees().store();
    let chunk = objects
        .iter()
        .find(|id| store.get(**id).unwrap()[..] == last[..]);
    let (chunk, lists) = (*chunk.unwrap(), objects[1]);
    let mut vaults = reopen(home.path(), vaults);
    for bad in [chunk, lists] {
        damage(home.path(), bad);
        vaults = reopen(home.path(), vaults);
        let report = vaults.fsck();
        assert!(
            report.damaged.iter().any(|it| it.object == bad),
            "{report:#?}"
        );
        assert!(
            seen(&report).contains(&"v /many: head, v2".to_owned()),
            "{:?}",
            seen(&report)
        );
    }
}

#[test]
fn a_damaged_chunk_directory_or_root_is_found() {
    let (home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let one = add_file(&vaults, &vault, "/large", &noise(1, 3 << 20));
    let stored = vaults.trees().store().list(None, 100).unwrap();
    let chunk = stored.into_iter().max_by_key(|stored| stored.size);
    let chunk = chunk.unwrap().id;
    let tree = vaults.trees().root(one).unwrap().tree();
    let two = add_file(&vaults, &vault, "/other", b"other");
    let vaults = reopen(home.path(), vaults);
    damage(home.path(), chunk);
    assert_eq!(seen(&vaults.fsck()), ["v /large: head, v2, v3"]);
    damage(home.path(), tree.object());
    damage(home.path(), two.object());
    let vaults = reopen(home.path(), vaults);
    let report = vaults.fsck();
    let objects: Vec<_> = report.damaged.iter().map(|damage| damage.object).collect();
    for id in [chunk, tree.object(), two.object()] {
        assert!(objects.contains(&id), "{id}");
    }
    assert!(
        seen(&report).contains(&"v /: v2".to_owned()),
        "{:?}",
        seen(&report)
    );
    assert!(
        seen(&report).contains(&"v /: head, v3".to_owned()),
        "{:?}",
        seen(&report)
    );
}

#[test]
fn missing_objects_and_wrong_totals_are_found() {
    let (home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let root = add_file(&vaults, &vault, "/f", &noise(1, 5000));
    let id = content_of(&vaults, root, "/f");
    change_database(
        home.path(),
        &format!("DELETE FROM object WHERE id = x'{id}'"),
    );
    let vaults = reopen(home.path(), vaults);
    let report = vaults.fsck();
    assert_eq!(report.damaged[0].problem, "it is missing");
    assert_eq!(seen(&report), ["v /f: head, v2"]);
    assert_eq!(report.database.len(), 1, "{:?}", report.database);
    // The record is still in the pack.
    assert_eq!(vaults.trees().store().reindex().unwrap(), 1);
    assert_eq!(vaults.fsck().damaged, []);
}

#[test]
fn what_nothing_refers_to_is_checked_as_well() {
    let (home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let root = edit_file(&vaults, head(&vaults, &vault), "/f", &noise(1, 5000));
    vaults.trees().flush().unwrap();
    let id = content_of(&vaults, root, "/f");
    let vaults = reopen(home.path(), vaults);
    damage(home.path(), id);
    let report = vaults.fsck();
    assert_eq!((report.damaged.len(), report.damaged[0].seen.len()), (1, 0));
}

#[test]
fn a_changed_journal_is_found() {
    let (home, vaults) = open();
    vaults.create(&name("v"), OWNER).unwrap();
    vaults.create(&name("w"), OWNER).unwrap();
    let edit = "UPDATE journal SET details = '{}' WHERE seq = 1";
    change_database(home.path(), edit);
    let report = vaults.fsck();
    assert!(!report.is_clean());
    assert!(matches!(
        report.journal,
        Some(JournalCheck::Broken { seq: 1, .. })
    ));
}

#[test]
fn a_damaged_page_of_the_database_is_told_and_brings_nothing_down() {
    let (home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    for n in 0..400 {
        add_file(&vaults, &vault, "/f", &noise(n, 100));
    }
    let page = "SELECT rootpage FROM sqlite_master WHERE name = 'journal'";
    let page = ask_database(home.path(), page);
    drop(vaults);
    let file = std::fs::File::options()
        .write(true)
        .open(home.path().join("store.db"))
        .unwrap();
    file.write_all_at(&[0xa5; 4096], (page as u64 - 1) * 4096)
        .unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    let report = vaults.fsck();
    assert!(!report.database.is_empty());
    assert!(report.objects > 400, "the rest is looked at all the same");
}

/// The database is gone; every state that packs tell of can be had back.
#[test]
fn roots_of_a_lost_database_become_versions() {
    let (home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let states: Vec<RootId> = (0..5)
        .map(|n| add_file(&vaults, &vault, &format!("/{n}"), &noise(n, 2000)))
        .collect();
    drop(vaults);
    for file in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(home.path().join(file));
    }
    assert!(Store::open(home.path()).is_err(), "it does not begin anew");
    let rebuilt = Vaults::rebuild(home.path(), OWNER).unwrap();
    assert!(rebuilt.objects >= 10, "{rebuilt:?}");
    assert_eq!(rebuilt.recovered.in_part, None);
    let recovered = rebuilt.recovered.whole.unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    let vault = vaults.get(&recovered.name).unwrap();
    let versions = vaults.versions(vault.id, 100).unwrap();
    for state in &states {
        assert!(versions.iter().any(|version| version.root == *state));
    }
    // All were made at one time here, so which one is the newest cannot be told; each is whole.
    assert!(vaults.fsck().is_clean());
    let again = vaults.take_in_packs(OWNER).unwrap();
    assert_eq!(again, Rebuilt::default(), "once");
}

/// A state of which something is missing is kept apart from those that are whole.
#[test]
fn a_lost_database_and_a_damaged_file() {
    let (home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let whole = add_file(&vaults, &vault, "/f", &noise(1, 2000));
    let broken = add_file(&vaults, &vault, "/g", &noise(2, 2000));
    let id = content_of(&vaults, broken, "/g");
    drop(vaults);
    damage(home.path(), id);
    for file in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(home.path().join(file));
    }
    let rebuilt = Vaults::rebuild(home.path(), OWNER).unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    let head = |recovered: &RecoveredVault| vaults.get(&recovered.name).unwrap().head;
    assert_eq!(rebuilt.recovered.whole.as_ref().map(head), Some(whole));
    assert_eq!(rebuilt.recovered.in_part.as_ref().map(head), Some(broken));
}

/// Vaults come and go while somebody counts them: one that has gone is simply not there.
#[test]
fn figures_of_a_home_in_which_vaults_come_and_go() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    add_file(&vaults, &vault, "/f", &noise(1, 100));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (vaults, done) = (&vaults, &done);
            scope.spawn(move || {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let fork = name(&format!("fork-{thread}"));
                    vaults.fork(&name("v"), &fork, OWNER).unwrap();
                    vaults.delete(&fork, OWNER).unwrap();
                    vaults.gc(&collect(), OWNER).unwrap();
                }
            });
        }
        for _ in 0..150 {
            let usage = vaults.usage(Vec::new()).map(|usage| {
                assert!(usage.vaults.iter().all(|it| it.damaged.is_none()));
                assert!(usage.vaults.iter().any(|it| it.vault.id == vault.id));
            });
            let pruned = vaults.prune(vault.id, Keep::Newest(1), OWNER);
            done.store(
                usage.is_err() || pruned.is_err(),
                std::sync::atomic::Ordering::Relaxed,
            );
            usage.unwrap();
            pruned.unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// Only what hides which other objects are needed holds a collection back.
#[test]
fn a_collection_is_held_back_by_what_refers_to_other_objects() {
    let (home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    add_file(&vaults, &vault, "/small", &noise(1, 3000));
    let root = add_file(&vaults, &vault, "/large", &noise(2, 1_300_000));
    let small = content_of(&vaults, root, "/small");
    let list = content_of(&vaults, root, "/large");
    let collect = |vaults: &Vaults| {
        let garbage = vaults.create(&name("garbage"), OWNER).unwrap();
        add_file(
            vaults,
            &garbage,
            "/f",
            &noise(garbage.created.nanos.into(), 2000),
        );
        vaults.delete(&name("garbage"), OWNER).unwrap();
        vaults.gc(&collect(), OWNER).unwrap()
    };
    damage(home.path(), small);
    let vaults = reopen(home.path(), vaults);
    let collected = collect(&vaults);
    assert_eq!(collected.held_back, []);
    assert!(collected.swept.objects > 0, "{collected:?}");

    damage(home.path(), list);
    let vaults = reopen(home.path(), vaults);
    let collected = collect(&vaults);
    assert_eq!(collected.swept.objects, 0, "{collected:?}");
    assert_eq!(collected.held_back.len(), 1, "{collected:?}");
    assert_eq!(collected.held_back[0].object, list);
    assert_eq!(collected.held_back[0].seen[0].path.to_string(), "/large");
    assert!(vaults.trees().store().any_damage());

    vaults.delete(&name("v"), OWNER).unwrap();
    let collected = collect(&vaults);
    assert_eq!(collected.held_back, []);
    assert!(collected.swept.objects > 5, "{collected:?}");
    assert!(
        !vaults.trees().store().any_damage(),
        "it went with its vault"
    );
    assert!(vaults.fsck().is_clean());
}
