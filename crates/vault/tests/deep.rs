//! Trees far deeper than any stack: whoever made them, everything that walks them comes back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use avfs_store::Store;
use avfs_vault::{
    Cause, Change, ChangeKind, Edit, Entry, GcMode, GcOptions, Kind, Meta, NewVersion, Principal,
    QuotaLimit, RootId, Step, Time, TreeId, Trees, Vault, VaultPath, Vaults, WordIndex,
};
use serde_json::json;

const OWNER: &Principal = &Principal::OWNER;
/// One call on the stack for each of these would need many times of what there is.
const DEPTH: usize = 5_000;
/// As deep as a path can say.
const PATH_DEPTH: usize = 2000;
const STACK: usize = 256 << 10;

/// Runs a test on a thread with little stack. One that needs more ends the process.
fn on_a_small_stack(test: fn(Vaults)) {
    let home = tempfile::tempdir().unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(move || test(vaults)).unwrap().join().unwrap();
}

fn path(text: &str) -> VaultPath {
    text.parse().unwrap()
}

fn file(trees: &Trees, text: &str) -> Entry {
    let (content, size) = trees.write_bytes(text.as_bytes()).unwrap();
    Entry::file(content, size, Meta::new(0o644, Time::EPOCH))
}

fn directory(tree: TreeId) -> Entry {
    let mut directory = Entry::directory(0o755, Time::EPOCH);
    directory.kind = Kind::Directory {
        tree,
        files: 0,
        bytes: 0,
    };
    directory
}

fn root_with(trees: &Trees, entries: &[(&str, Entry)]) -> RootId {
    let mut edit = trees.edit(trees.empty_root().unwrap()).unwrap();
    for (name, entry) in entries {
        edit.put(&path(name), entry.clone()).unwrap();
    }
    edit.finish().unwrap()
}

/// A root with `/d/d/d…`, and at the end of it what `bottom` has.
fn deep(trees: &Trees, bottom: RootId) -> RootId {
    let mut root = bottom;
    for _ in 0..DEPTH {
        let tree = trees.root(root).unwrap().tree();
        root = root_with(trees, &[("/d", directory(tree))]);
    }
    root
}

/// An edit with a change at every level of `/d/d/d…`, that path, and a file `f` in it.
fn with_long_path(trees: &Trees) -> (Edit, VaultPath) {
    let mut edit = trees.edit(trees.empty_root().unwrap()).unwrap();
    let mut at = VaultPath::root();
    for _ in 0..PATH_DEPTH {
        at = at.join(b"d").unwrap();
        edit.put(&at, Entry::directory(0o755, Time::EPOCH)).unwrap();
    }
    let bottom = at.join(b"f").unwrap();
    edit.put(&bottom, file(trees, "one")).unwrap();
    (edit, at)
}

fn publish(vaults: &Vaults, vault: &Vault, root: RootId) {
    let head = vaults.by_id(vault.id).unwrap().head;
    let version = NewVersion {
        by: Principal::OWNER,
        exec: None,
        cause: Cause::Write,
        details: json!({}),
    };
    vaults.publish(vault.id, head, root, version).unwrap();
}

fn count_differences(trees: &Trees, before: RootId, after: RootId) -> (usize, Option<Change>) {
    let (mut count, mut last) = (0, None);
    let each = &mut |change: Change| {
        count += 1;
        last = Some(change);
        true
    };
    trees.diff_each(before, after, each).unwrap();
    (count, last)
}

#[test]
fn what_walks_a_tree_needs_no_more_stack_for_a_deeper_one() {
    on_a_small_stack(|vaults| {
        let trees = vaults.trees();
        let empty = trees.empty_root().unwrap();
        let one = deep(trees, root_with(trees, &[("/f", file(trees, "one"))]));
        let two = deep(trees, root_with(trees, &[("/f", file(trees, "two words"))]));
        let (mut seen, mut deepest) = (0, 0);
        trees
            .walk::<avfs_vault::Error>(one, &VaultPath::root(), &mut |visit| {
                seen += 1;
                deepest = deepest.max(visit.depth);
                assert_eq!(visit.path.as_bytes().len(), (visit.depth * 2).max(1));
                Ok(Step::Into)
            })
            .unwrap();
        assert_eq!((seen, deepest), (DEPTH + 2, DEPTH + 1));
        let (made, last) = count_differences(trees, empty, one);
        assert_eq!(made, DEPTH + 1);
        assert_eq!(last.unwrap().path.components().count(), DEPTH + 1);
        let (changed, last) = count_differences(trees, one, two);
        let last = last.unwrap();
        assert_eq!((changed, &last.kind), (1, &ChangeKind::Modified));
        assert_eq!(last.path.file_name(), Some(&b"f"[..]));
        let mut index = WordIndex::in_memory().unwrap();
        index.update(trees, one).unwrap();
        index.update(trees, two).unwrap();
        assert_eq!(index.search(trees, "words", 9).unwrap().len(), 1);
    });
}

#[test]
fn a_deep_tree_is_copied_moved_linked_and_removed() {
    on_a_small_stack(|vaults| {
        let trees = vaults.trees();
        let (mut edit, at) = with_long_path(trees);
        let names = [b"f", b"g"].map(|name| at.join(name).unwrap());
        edit.link(&names[0], &names[1]).unwrap();
        let linked = edit.finish().unwrap();
        let tree = trees.root(linked).unwrap().tree();
        let mut edit = trees.edit(linked).unwrap();
        edit.put(&path("/other"), directory(tree)).unwrap();
        edit.copy(&path("/d"), &path("/copy")).unwrap();
        edit.remove(&path("/d")).unwrap();
        let root = edit.finish().unwrap();
        // Two names in each of the two: one group each, for a copy is a file of its own.
        assert_eq!(trees.root(root).unwrap().links.len(), 2);
        assert_eq!(trees.root(root).unwrap().files(), 4);
    });
}

#[test]
fn changes_at_every_level_of_a_path_are_stored_and_dropped() {
    on_a_small_stack(|vaults| {
        let trees = vaults.trees();
        let fill = || with_long_path(trees).0;
        // What is given up is dropped as deep as what is stored.
        drop(fill());
        let root = fill().finish().unwrap();
        assert_eq!(trees.root(root).unwrap().files(), 1);
        let edit = fill();
        assert!(edit.get(&path("/d")).unwrap().is_some());
        assert_eq!(edit.finish().unwrap(), root);
    });
}

#[test]
fn a_vault_with_a_deep_tree_is_like_any_other() {
    on_a_small_stack(|vaults| {
        let trees = vaults.trees();
        let vault = vaults.create(&"v".parse().unwrap(), OWNER).unwrap();
        let lease = vaults.lease();
        let bottom = root_with(trees, &[("/f", file(trees, "one"))]);
        publish(&vaults, &vault, deep(trees, bottom));
        drop(lease);
        let collect = GcOptions {
            mode: GcMode::Collect,
            grace: Duration::ZERO,
            roots: Vec::new(),
        };
        vaults.gc(&collect, OWNER).unwrap();
        let limit = QuotaLimit::FileBytes;
        vaults.set_quota(vault.id, limit, Some(5), OWNER).unwrap();
        let _lease = vaults.lease();
        let bottom = root_with(trees, &[("/f", file(trees, "two"))]);
        // With a limit on files, and after a sweep, all that is new is walked.
        publish(&vaults, &vault, deep(trees, bottom));
        assert!(vaults.fsck().is_clean());
        let usage = vaults.usage(Vec::new()).unwrap();
        assert_eq!(usage.vaults[0].directories, DEPTH as u64);
        let history = vaults.path_history(vault.id, &path("/d"), 9).unwrap();
        assert_eq!(history.len(), 2);
    });
}
