//! Homes of earlier formats open, and everything in them reads back exactly.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use avfs_store::Store;
use avfs_vault::{
    Cause, CheckpointOrigin, Entry, JournalCheck, JournalFilter, Kind, Meta, NewVersion, Principal,
    RootId, Time, VaultName, VaultPath, Vaults,
};
use serde_json::json;

const OWNER: &Principal = &Principal::OWNER;

/// A home as it lies in the fixtures, which belong to the store.
struct Fixture {
    database: &'static [u8],
    pack: &'static [u8],
    expected: &'static str,
}

macro_rules! fixture {
    ($name:literal) => {
        Fixture {
            database: include_bytes!(concat!("../../store/tests/fixtures/", $name, "/store.db")),
            pack: include_bytes!(concat!(
                "../../store/tests/fixtures/",
                $name,
                "/00000001.pack"
            )),
            expected: include_str!(concat!(
                "../../store/tests/fixtures/",
                $name,
                "/expected.txt"
            )),
        }
    };
}

/// The second is the first with files that have holes.
const FORMATS: &[Fixture] = &[fixture!("home-1"), fixture!("home-2")];

#[test]
fn every_earlier_format_reads_back_exactly() {
    for fixture in FORMATS {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("packs")).unwrap();
        std::fs::write(home.path().join("store.db"), fixture.database).unwrap();
        std::fs::write(home.path().join("packs/00000001.pack"), fixture.pack).unwrap();
        for opening in ["first, which migrates", "second"] {
            let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
            assert_eq!(describe(&vaults), fixture.expected, "{opening} opening");
        }
        // And it is a home like any other from then on.
        let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
        let vault = vaults.get(&"work".parse().unwrap()).unwrap();
        let root = write(&vaults, vault.head, "/new", b"new");
        let version = vaults.publish(vault.id, vault.head, root, version());
        assert_eq!(version.unwrap().number, vault.version + 1);
    }
}

/// `AVFS_FIXTURE=DIR cargo test -p avfs-vault --test formats -- --ignored` makes a home of the
/// present format in DIR, for the day when there is a newer one.
#[test]
#[ignore = "makes a fixture instead of testing anything"]
fn make_a_fixture() {
    let place = std::env::var_os("AVFS_FIXTURE").expect("AVFS_FIXTURE names a directory");
    let place = Path::new(&place);
    let home = tempfile::tempdir().unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    fill(&vaults);
    std::fs::write(place.join("expected.txt"), describe(&vaults)).unwrap();
    drop(vaults);
    // The last connection to close moves the log into the database.
    assert!(!home.path().join("store.db-wal").exists());
    for (from, to) in [
        ("store.db", "store.db"),
        ("packs/00000001.pack", "00000001.pack"),
    ] {
        std::fs::copy(home.path().join(from), place.join(to)).unwrap();
    }
}

/// Something of everything a home can hold.
fn fill(vaults: &Vaults) {
    let work = vaults.create(&name("work"), OWNER).unwrap();
    let mut edit = vaults.trees().edit(work.head).unwrap();
    let mut put = |path: &str, entry: Entry| edit.put(&path.parse().unwrap(), entry).unwrap();
    let file = |bytes: &[u8], mode: u32| {
        let (content, size) = vaults.trees().write_bytes(bytes).unwrap();
        Entry::file(content, size, Meta::new(mode, time(size as i64)))
    };
    put("/src", Entry::directory(0o750, time(-5)));
    put("/src/main.rs", file(b"fn main() {}\n", 0o644));
    put("/src/run", file(b"#!/bin/sh\n", 0o4755));
    put("/empty", file(b"", 0o600));
    put("/link", Entry::symlink(b"src/\xff", time(7)));
    let mut fifo = Entry::directory(0o622, time(8));
    fifo.kind = Kind::Fifo;
    put("/fifo", fifo);
    let mut labelled = file(b"labelled", 0o640);
    labelled.meta.xattrs.insert(b"user.colour", b"blue\0");
    put("/labelled", labelled);
    // Large enough for chunks, small when compressed.
    let large: Vec<u8> = (0..400_000_u32)
        .flat_map(|n| (n / 9000).to_le_bytes())
        .collect();
    put("/large", file(&large, 0o644));
    // A hole, data, a hole up to the end.
    let mut sparse = vec![0; 3_000_000];
    sparse[1_500_000..1_600_000].fill(7);
    put("/sparse", file(&sparse, 0o644));
    put("/many", Entry::directory(0o755, time(9)));
    for n in 0..700 {
        put(
            &format!("/many/{n:04}"),
            file(format!("{}", n % 3).as_bytes(), 0o644),
        );
    }
    let linked = edit.fresh_link(&"/one".parse().unwrap());
    for path in ["/one", "/src/two"] {
        let mut entry = file(b"linked", 0o644);
        if let Kind::File { link, .. } = &mut entry.kind {
            *link = Some(linked);
        }
        edit.put(&path.parse().unwrap(), entry).unwrap();
    }
    let root = edit.finish().unwrap();
    vaults.publish(work.id, work.head, root, version()).unwrap();
    let save = |label: &str, root: RootId| {
        let label = Some(label.parse().unwrap());
        let origin = CheckpointOrigin::Asked;
        vaults
            .save_checkpoint(work.id, label.as_ref(), root, origin, OWNER)
            .unwrap();
    };
    save("whole", root);
    vaults.fork(&name("work"), &name("fork"), OWNER).unwrap();
    let next = write(vaults, root, "/src/main.rs", b"fn main() { loop {} }\n");
    vaults.publish(work.id, root, next, version()).unwrap();
    vaults
        .restore(work.id, next, &"whole".parse().unwrap(), OWNER)
        .unwrap();
    vaults.create(&name("gone"), OWNER).unwrap();
    vaults.delete(&name("gone"), OWNER).unwrap();
}

fn write(vaults: &Vaults, base: RootId, path: &str, bytes: &[u8]) -> RootId {
    let (content, size) = vaults.trees().write_bytes(bytes).unwrap();
    let mut edit = vaults.trees().edit(base).unwrap();
    let entry = Entry::file(content, size, Meta::new(0o644, time(1)));
    edit.put(&path.parse().unwrap(), entry).unwrap();
    edit.finish().unwrap()
}

fn time(secs: i64) -> Time {
    Time { secs, nanos: 9 }
}

fn version() -> NewVersion {
    NewVersion {
        by: Principal::OWNER,
        exec: None,
        cause: Cause::Write,
        details: json!({ "paths": ["/somewhere"] }),
    }
}

fn name(text: &str) -> VaultName {
    text.parse().unwrap()
}

/// All that can be read of a home, as text.
fn describe(vaults: &Vaults) -> String {
    let mut text = String::new();
    for vault in vaults.list().unwrap() {
        let parent = vault
            .parent
            .as_ref()
            .map(|it| (it.vault, it.name.clone(), it.root));
        writeln!(
            text,
            "vault {} {} {:?} {parent:?}",
            vault.name, vault.id, vault.created
        )
        .unwrap();
        for version in vaults.versions(vault.id, usize::MAX).unwrap() {
            let (number, root, cause) = (version.number, version.root, version.cause);
            writeln!(text, "version {number} {root} {cause} {:?}", version.time).unwrap();
            let top = vaults.trees().root(root).unwrap();
            writeln!(text, "{:?} {:?}", top.has_xattrs, top.links).unwrap();
            describe_entry(vaults, &VaultPath::root(), &top.top, &mut text);
        }
        for it in vaults.checkpoints(vault.id).unwrap() {
            let (root, origin) = (it.root, it.origin);
            writeln!(text, "checkpoint {} {root} {origin} {:?}", it.name, it.time).unwrap();
        }
    }
    let current = vaults.current(OWNER).unwrap().map(|vault| vault.name);
    writeln!(text, "current {current:?}").unwrap();
    let first = JournalFilter {
        limit: Some(7),
        ..JournalFilter::default()
    };
    for entry in vaults.journal(&first).unwrap() {
        let (seq, operation, details) = (entry.seq, entry.operation, entry.details);
        writeln!(text, "journal {seq} {operation} {details} {:?}", entry.hash).unwrap();
    }
    assert!(matches!(
        vaults.verify_journal().unwrap(),
        JournalCheck::Intact { .. }
    ));
    text
}

fn describe_entry(vaults: &Vaults, path: &VaultPath, entry: &Entry, text: &mut String) {
    // Byte strings as numbers are long; what they hash to says as much.
    let mut shown = entry.clone();
    shown.meta.xattrs.clear();
    writeln!(text, "{path} {shown:?} {:?}", entry.meta.xattrs).unwrap();
    match entry.kind {
        Kind::Directory { tree, .. } => {
            for (name, child) in vaults.trees().list(tree).unwrap() {
                // A few of many are enough to look at; the tree's hash covers the others.
                if !path.as_bytes().starts_with(b"/many") || name.ends_with(b"00") {
                    describe_entry(vaults, &path.join(&name).unwrap(), &child, text);
                }
            }
        }
        Kind::File { content, size, .. } => {
            let bytes = vaults.trees().read(content, 0, size as usize + 1).unwrap();
            let hash = avfs_store::ObjectId::of(&bytes);
            writeln!(text, "{} bytes {hash}", bytes.len()).unwrap();
        }
        Kind::Symlink { .. } | Kind::Fifo => {}
    }
}
