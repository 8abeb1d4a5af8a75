//! Large directories: search trees that depend on the names alone.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use avfs_store::{ObjectId, Store};
use avfs_vault::{ChangeKind, Content, Entry, Meta, RootId, Time, Trees, VaultPath};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn trees() -> (tempfile::TempDir, Trees) {
    let home = tempfile::tempdir().unwrap();
    let trees = Trees::new(Store::open(home.path()).unwrap());
    (home, trees)
}

fn name(n: u32) -> Vec<u8> {
    format!("entry-{n}").into_bytes()
}

fn path(n: u32) -> VaultPath {
    VaultPath::root().join(&name(n)).unwrap()
}

fn entry(value: u32) -> Entry {
    Entry::file(Content::EMPTY, 0, Meta::new(value, Time::EPOCH))
}

/// Puts and removes, in one edit.
fn edit(trees: &Trees, base: RootId, changes: &[(u32, Option<u32>)]) -> RootId {
    let mut edit = trees.edit(base).unwrap();
    for (n, value) in changes {
        match value {
            Some(value) => edit.put(&path(*n), entry(*value)).unwrap(),
            None => edit.remove(&path(*n)).unwrap(),
        }
    }
    edit.finish().unwrap()
}

fn built(trees: &Trees, model: &BTreeMap<u32, u32>) -> RootId {
    let all: Vec<_> = model.iter().map(|(n, value)| (*n, Some(*value))).collect();
    edit(trees, trees.empty_root().unwrap(), &all)
}

/// A scattering of numbers below `limit`.
fn scatter(seed: u32, limit: u32) -> impl Iterator<Item = u32> {
    (0..).map(move |k: u32| {
        let hash = blake3::hash(&[seed.to_le_bytes(), k.to_le_bytes()].concat());
        u32::from_le_bytes(*hash.as_bytes().first_chunk().unwrap()) % limit
    })
}

fn check_lists(trees: &Trees, root: RootId, model: &BTreeMap<u32, u32>) {
    let tree = trees.root(root).unwrap().tree();
    let mut expected: Vec<_> = model.iter().map(|(n, v)| (name(*n), entry(*v))).collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    let listed = trees.list(tree).unwrap();
    assert_eq!(listed, expected);
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = trees.list_after(tree, after.as_deref(), 100).unwrap();
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        paged.extend(page);
    }
    assert_eq!(paged, expected);
    for (name, entry) in expected.iter().step_by(17) {
        assert_eq!(trees.child(tree, name).unwrap().as_ref(), Some(entry));
        assert_eq!(
            trees.child(tree, &[&name[..], b"x"].concat()).unwrap(),
            None
        );
    }
    assert_eq!(trees.child(tree, b"zzz").unwrap(), None);
}

/// Any sequence of batches leads to the same root as building the result at once.
fn try_batches(cases: u32, start: std::ops::Range<u32>, limit: u32, longest: usize) {
    let (_home, trees) = trees();
    let batches = prop::collection::vec((0u32..1000, 1..longest), 1..8);
    let result = TestRunner::new(ProptestConfig::with_cases(cases)).run(
        &(start, batches),
        |(start, batches)| {
            the_way_does_not_matter(&trees, start, limit, batches);
            Ok(())
        },
    );
    result.unwrap();
}

#[test]
fn the_way_does_not_matter_around_the_limit() {
    try_batches(50, 240..275, 320, 20);
}

#[test]
fn the_way_does_not_matter_for_thousands() {
    try_batches(6, 2000..2001, 4000, 300);
}

fn the_way_does_not_matter(trees: &Trees, start: u32, limit: u32, batches: Vec<(u32, usize)>) {
    let mut model: BTreeMap<u32, u32> = (0..start).map(|n| (n, 0o644)).collect();
    let mut root = built(trees, &model);
    for (seed, length) in batches {
        let before = (root, model.clone());
        let mut changes = BTreeMap::new();
        for n in scatter(seed, limit).take(length) {
            let change = (!model.contains_key(&n) || n % 5 == 0).then_some(0o600 + seed % 64);
            changes.insert(n, change);
        }
        for (n, change) in &changes {
            match change {
                Some(value) => model.insert(*n, *value),
                None => model.remove(n),
            };
        }
        root = edit(trees, root, &changes.into_iter().collect::<Vec<_>>());
        assert_eq!(root, built(trees, &model));
        check_diff(trees, &before, (root, &model));
    }
    check_lists(trees, root, &model);
}

fn check_diff(
    trees: &Trees,
    before: &(RootId, BTreeMap<u32, u32>),
    after: (RootId, &BTreeMap<u32, u32>),
) {
    let found: BTreeMap<_, _> = trees
        .diff(before.0, after.0)
        .unwrap()
        .into_iter()
        .map(|change| (change.path, change.kind))
        .collect();
    let mut expected = BTreeMap::new();
    for n in before.1.keys().chain(after.1.keys()) {
        let kind = match (before.1.get(n), after.1.get(n)) {
            (None, _) => ChangeKind::Created,
            (_, None) => ChangeKind::Deleted,
            (old, new) if old != new => ChangeKind::Mode,
            _ => continue,
        };
        expected.insert(path(*n), kind);
    }
    assert_eq!(found, expected);
}

#[test]
fn adding_and_removing_one_by_one_over_the_limit_and_back() {
    let (_home, trees) = trees();
    let mut model: BTreeMap<u32, u32> = (0..250).map(|n| (n, 0)).collect();
    let mut root = built(&trees, &model);
    let mut roots = vec![root];
    for n in 250..265 {
        model.insert(n, 0);
        root = edit(&trees, root, &[(n, Some(0))]);
        assert_eq!(root, built(&trees, &model));
        roots.push(root);
    }
    for n in (250..265).rev() {
        assert_eq!(roots.pop(), Some(root));
        root = edit(&trees, root, &[(n, None)]);
    }
    assert_eq!(roots, [root]);
    let all: Vec<_> = (0..250).map(|n| (n, None)).collect();
    assert_eq!(edit(&trees, root, &all), trees.empty_root().unwrap());
}

#[test]
fn one_insert_writes_a_path_and_not_the_directory() {
    let (_home, trees) = trees();
    let put_all = |base: RootId, numbers: std::ops::Range<u32>| {
        let mut edit = trees.edit(base).unwrap();
        for n in numbers {
            // Contents that differ, so that compression does not hide what is written.
            let content = Content::Object(ObjectId::of(&n.to_le_bytes()));
            let entry = Entry::file(content, 1, Meta::new(0o644, Time::EPOCH));
            edit.put(&path(n), entry).unwrap();
        }
        edit.finish().unwrap()
    };
    let root = put_all(trees.empty_root().unwrap(), 0..20_000);
    trees.flush().unwrap();
    let before = trees.store().stats().unwrap();
    for n in 20_000..20_010 {
        put_all(root, n..n + 1);
    }
    trees.flush().unwrap();
    let after = trees.store().stats().unwrap();
    let objects = after.objects - before.objects;
    let bytes = after.bytes_stored - before.bytes_stored;
    assert!(before.objects > 200, "{}", before.objects);
    assert!(objects <= 10 * 6, "{objects} objects for ten inserts");
    assert!(
        bytes < before.bytes_stored / 4,
        "{bytes} of {}",
        before.bytes_stored
    );
}

/// Objects that ten inserts write, each into a directory of `size` entries.
fn objects_for_ten_inserts(size: u32) -> u64 {
    let (_home, trees) = trees();
    let all: Vec<_> = (0..size).map(|n| (n, Some(0o644))).collect();
    let root = edit(&trees, trees.empty_root().unwrap(), &all);
    trees.flush().unwrap();
    let before = trees.store().stats().unwrap().objects;
    for n in scatter(7, 1 << 30).take(10) {
        edit(&trees, root, &[(size + n, Some(0o644))]);
    }
    trees.flush().unwrap();
    trees.store().stats().unwrap().objects - before
}

#[test]
fn an_insert_into_a_hundred_thousand_writes_one_level_more_than_into_a_thousand() {
    let (small, large) = (
        objects_for_ten_inserts(1_000),
        objects_for_ten_inserts(100_000),
    );
    // A root, a leaf and a branch; now and then a cut moves and a leaf becomes two.
    assert!((30..=35).contains(&small), "{small}");
    assert!(large <= small + 10 + 5, "{large} after {small}");
}
