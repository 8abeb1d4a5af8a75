//! One path at a time: copies, links, walks, and what became of a path over versions.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Read;

use avfs_store::Store;
use avfs_vault::{
    Cause, Edit, Entry, Error, Kind, Meta, NewVersion, Principal, RootId, Step, Time, Trees, Vault,
    VaultPath, Vaults,
};

fn vaults() -> (tempfile::TempDir, Vaults) {
    let home = tempfile::tempdir().unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    (home, vaults)
}

fn path(text: &str) -> VaultPath {
    text.parse().unwrap()
}

fn file(trees: &Trees, text: &str) -> Entry {
    let (content, size) = trees.write_bytes(text.as_bytes()).unwrap();
    Entry::file(content, size, Meta::new(0o644, Time::EPOCH))
}

fn text(trees: &Trees, root: RootId, at: &str) -> String {
    let entry = trees.entry(root, &path(at)).unwrap().unwrap();
    let Kind::File { content, size, .. } = entry.kind else {
        panic!("{at} is no file")
    };
    let mut text = String::new();
    trees
        .reader(content, size)
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// `/d/a` and `/d/b` are one file, `/d/sub/c` another, `/out` a third name of the first.
fn linked(trees: &Trees) -> RootId {
    let mut edit = trees.edit(trees.empty_root().unwrap()).unwrap();
    for dir in ["/d", "/d/sub"] {
        edit.put(&path(dir), Entry::directory(0o755, Time::EPOCH))
            .unwrap();
    }
    edit.put(&path("/d/a"), file(trees, "one")).unwrap();
    edit.put(&path("/d/sub/c"), file(trees, "two")).unwrap();
    edit.link(&path("/d/a"), &path("/d/b")).unwrap();
    edit.link(&path("/d/b"), &path("/out")).unwrap();
    edit.finish().unwrap()
}

fn names(edit: &Edit, at: &str) -> Vec<String> {
    let names = edit.linked_names(&path(at)).unwrap();
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_copy_is_no_link_to_its_original() {
    let (_home, vaults) = vaults();
    let trees = vaults.trees();
    let root = linked(trees);
    let mut edit = trees.edit(root).unwrap();
    edit.copy(&path("/d"), &path("/copy")).unwrap();
    edit.copy(&path("/out"), &path("/single")).unwrap();
    let root = edit.finish().unwrap();
    let edit = trees.edit(root).unwrap();
    assert_eq!(names(&edit, "/copy/a"), ["/copy/a", "/copy/b"]);
    assert_eq!(names(&edit, "/d/b"), ["/d/a", "/d/b", "/out"]);
    assert_eq!(names(&edit, "/single"), ["/single"]);
    let single = trees.entry(root, &path("/single")).unwrap().unwrap();
    assert_eq!(single.link(), None);
    assert_eq!(text(trees, root, "/copy/sub/c"), "two");
}

#[test]
fn a_copy_gives_the_root_that_writing_it_would_give() {
    let (_home, vaults) = vaults();
    let trees = vaults.trees();
    let mut copied = trees.edit(linked(trees)).unwrap();
    copied.copy(&path("/d"), &path("/z")).unwrap();
    let mut written = trees.edit(linked(trees)).unwrap();
    written
        .put(&path("/z"), Entry::directory(0o755, Time::EPOCH))
        .unwrap();
    written
        .put(&path("/z/sub"), Entry::directory(0o755, Time::EPOCH))
        .unwrap();
    written.put(&path("/z/a"), file(trees, "one")).unwrap();
    written.link(&path("/z/a"), &path("/z/b")).unwrap();
    written.put(&path("/z/sub/c"), file(trees, "two")).unwrap();
    assert_eq!(copied.finish().unwrap(), written.finish().unwrap());
}

#[test]
fn only_files_have_several_names() {
    let (_home, vaults) = vaults();
    let trees = vaults.trees();
    let mut edit = trees.edit(linked(trees)).unwrap();
    edit.put(&path("/s"), Entry::symlink(b"d", Time::EPOCH))
        .unwrap();
    let refused = edit.link(&path("/d"), &path("/e"));
    assert!(matches!(refused, Err(Error::IsADirectory { .. })));
    let refused = edit.link(&path("/s"), &path("/e"));
    assert!(matches!(refused, Err(Error::NotAFile { .. })));
    let refused = edit.link(&path("/nothing"), &path("/e"));
    assert!(matches!(refused, Err(Error::PathNotFound { .. })));
}

#[test]
fn a_walk_is_in_order_and_goes_only_where_it_is_sent() {
    let (_home, vaults) = vaults();
    let trees = vaults.trees();
    let mut edit = trees.edit(linked(trees)).unwrap();
    let mut meta = Meta::new(0o644, Time::EPOCH);
    meta.xattrs.insert(b"user.x", b"1");
    edit.set_meta(&path("/d/sub/c"), meta).unwrap();
    let root = edit.finish().unwrap();
    let mut seen = Vec::new();
    trees
        .walk::<Error>(root, &VaultPath::root(), &mut |visit| {
            seen.push((visit.path.to_string(), visit.depth, visit.has_xattrs));
            Ok(Step::Into)
        })
        .unwrap();
    let expected = [
        ("/", 0, true),
        ("/d", 1, true),
        ("/d/a", 2, false),
        ("/d/b", 2, false),
        ("/d/sub", 2, true),
        ("/d/sub/c", 3, true),
        ("/out", 1, false),
    ];
    let expected = expected.map(|(path, depth, xattrs)| (path.to_owned(), depth, xattrs));
    assert_eq!(seen, expected);
    let mut seen = 0;
    trees
        .walk::<Error>(root, &path("/d"), &mut |_| {
            seen += 1;
            Ok(Step::Past)
        })
        .unwrap();
    assert_eq!(seen, 1);
    let lost = trees.walk::<Error>(root, &path("/d/a/x"), &mut |_| Ok(Step::Into));
    assert!(matches!(lost, Err(Error::PathNotFound { .. })));
}

fn publish(vaults: &Vaults, vault: &Vault, change: impl FnOnce(&Trees, &mut Edit)) -> u64 {
    let now = vaults.by_id(vault.id).unwrap();
    let mut edit = vaults.trees().edit(now.head).unwrap();
    change(vaults.trees(), &mut edit);
    let root = edit.finish().unwrap();
    let version = NewVersion {
        by: Principal::OWNER,
        exec: None,
        cause: Cause::Write,
        details: serde_json::Value::Null,
    };
    vaults
        .publish(now.id, now.head, root, version)
        .unwrap()
        .number
}

#[test]
fn the_history_of_a_path_is_its_own() {
    let (_home, vaults) = vaults();
    let vault = vaults
        .create(&"v".parse().unwrap(), &Principal::OWNER)
        .unwrap();
    let put = |at: &'static str, content: &'static str| {
        publish(&vaults, &vault, |trees, edit| {
            edit.put(&path(at), file(trees, content)).unwrap();
        })
    };
    let first = put("/a", "1");
    put("/b", "x");
    let second = put("/a", "2");
    // A new time is no new state.
    publish(&vaults, &vault, |_, edit| {
        let mut meta = edit.get(&path("/a")).unwrap().unwrap().meta;
        meta.mtime = Time::now();
        edit.set_meta(&path("/a"), meta).unwrap();
    });
    let gone = publish(&vaults, &vault, |_, edit| edit.remove(&path("/a")).unwrap());
    let history = vaults.path_history(vault.id, &path("/a"), 10).unwrap();
    let numbers: Vec<u64> = history.iter().map(|it| it.version.number).collect();
    assert_eq!(numbers, [gone, second, first]);
    assert_eq!(history[0].entry, None);
    assert_eq!(text(vaults.trees(), history[1].version.root, "/a"), "2");
    let newest = vaults.path_history(vault.id, &path("/a"), 2).unwrap();
    assert_eq!(newest, history[..2]);
    let all = vaults
        .path_history(vault.id, &VaultPath::root(), 10)
        .unwrap();
    assert_eq!(all.len(), 5, "the creation, three writes and the removal");
    assert_eq!(
        vaults.version(vault.id, second).unwrap(),
        history[1].version
    );
    let lost = vaults.version(vault.id, 99);
    assert!(matches!(
        lost,
        Err(Error::VersionNotFound { number: 99, .. })
    ));
}

#[test]
fn a_long_history_is_read_to_its_beginning() {
    let (_home, vaults) = vaults();
    let vault = vaults
        .create(&"v".parse().unwrap(), &Principal::OWNER)
        .unwrap();
    let first = publish(&vaults, &vault, |trees, edit| {
        edit.put(&path("/a"), file(trees, "1")).unwrap();
    });
    for i in 0..600 {
        publish(&vaults, &vault, |trees, edit| {
            edit.put(&path("/b"), file(trees, &i.to_string())).unwrap();
        });
    }
    let history = vaults.path_history(vault.id, &path("/a"), 5).unwrap();
    let numbers: Vec<u64> = history.iter().map(|it| it.version.number).collect();
    assert_eq!(numbers, [first]);
}

#[test]
fn a_large_file_is_read_in_pieces() {
    let (_home, vaults) = vaults();
    let trees = vaults.trees();
    let bytes: Vec<u8> = (0..5_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8)
        .collect();
    let (content, size) = trees.write_bytes(&bytes).unwrap();
    let mut read = Vec::new();
    trees.reader(content, size).read_to_end(&mut read).unwrap();
    assert!(read == bytes);
    let (content, size) = trees.write_bytes(b"").unwrap();
    assert_eq!(
        trees.reader(content, size).read_to_end(&mut read).unwrap(),
        0
    );
}
