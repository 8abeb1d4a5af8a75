//! Random edits against a plain map: the same entries, links, totals and differences come out,
//! and the same content has the same root whatever the way to it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use avfs_store::Store;
use avfs_vault::{
    Change, ChangeKind, Edit, Entry, Error, Kind, LinkId, Meta, RootId, Time, TreeId, Trees,
    VaultPath,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

#[derive(Clone, Debug)]
enum Step {
    PutFile(VaultPath, u8, u8),
    Mkdir(VaultPath),
    Symlink(VaultPath, u8),
    Fifo(VaultPath),
    Link(VaultPath, VaultPath),
    Rename(VaultPath, VaultPath),
    Remove(VaultPath),
    Mode(VaultPath, u32),
    Xattr(VaultPath, u8),
    /// Look at a directory in the middle of the edit.
    Get(VaultPath),
    Finish,
}

fn path() -> impl Strategy<Value = VaultPath> {
    prop::collection::vec(prop::sample::select(&["a", "b", "c", "d-e"][..]), 1..4)
        .prop_map(|names| format!("/{}", names.join("/")).parse().unwrap())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (path(), 0u8..5, 0u8..3).prop_map(|(p, n, t)| Step::PutFile(p, n, t)),
        6 => path().prop_map(Step::Mkdir),
        1 => (path(), 0u8..3).prop_map(|(p, n)| Step::Symlink(p, n)),
        1 => path().prop_map(Step::Fifo),
        4 => (path(), path()).prop_map(|(a, b)| Step::Link(a, b)),
        4 => (path(), path()).prop_map(|(a, b)| Step::Rename(a, b)),
        3 => path().prop_map(Step::Remove),
        2 => (path(), 0u32..4).prop_map(|(p, m)| Step::Mode(p, 0o640 + m)),
        1 => (path(), 0u8..3).prop_map(|(p, n)| Step::Xattr(p, n)),
        1 => path().prop_map(Step::Get),
        2 => Just(Step::Finish),
    ]
}

fn time(n: u8) -> Time {
    Time {
        secs: 1_000 + i64::from(n),
        nanos: 7,
    }
}

fn file(trees: &Trees, n: u8, t: u8) -> Entry {
    let (content, size) = trees.write_bytes(&vec![n; usize::from(n) * 10]).unwrap();
    Entry::file(content, size, Meta::new(0o644, time(t)))
}

/// Entries as they should be, directories without their trees, links as numbers.
#[derive(Clone, Default)]
struct Model {
    entries: BTreeMap<VaultPath, (Entry, Option<u32>)>,
    next_link: u32,
}

impl Model {
    fn is_dir(&self, path: &VaultPath) -> bool {
        path.is_root()
            || self
                .entries
                .get(path)
                .is_some_and(|(entry, _)| entry.is_dir())
    }

    fn may_put(&self, path: &VaultPath) -> bool {
        self.is_dir(&path.parent().unwrap())
    }

    fn remove(&mut self, path: &VaultPath) {
        self.entries.retain(|other, _| !other.starts_with(path));
    }

    fn put(&mut self, path: &VaultPath, entry: Entry, link: Option<u32>) {
        self.remove(path);
        self.entries.insert(path.clone(), (entry, link));
    }

    fn groups(&self) -> BTreeMap<u32, BTreeSet<VaultPath>> {
        let mut groups: BTreeMap<u32, BTreeSet<VaultPath>> = BTreeMap::new();
        for (path, (_, link)) in &self.entries {
            if let Some(link) = link {
                groups.entry(*link).or_default().insert(path.clone());
            }
        }
        groups.retain(|_, paths| paths.len() > 1);
        groups
    }

    /// What a walk of the real tree should find.
    fn expected(&self) -> BTreeMap<VaultPath, Entry> {
        let groups = self.groups();
        let entry = |(path, (entry, number)): (&VaultPath, &(Entry, Option<u32>))| {
            let mut entry = entry.clone();
            if let Kind::File { link, .. } = &mut entry.kind {
                let group = number.and_then(|number| groups.get(&number));
                *link = group.map(|paths| LinkId::of(paths.first().unwrap()));
            }
            (path.clone(), entry)
        };
        self.entries.iter().map(entry).collect()
    }
}

fn with_link(mut entry: Entry, to: Option<LinkId>) -> Entry {
    if let Kind::File { link, .. } = &mut entry.kind {
        *link = to;
    }
    entry
}

/// Puts a second name on the file at `from`, as a commit would.
fn link(edit: &mut Edit, from: &VaultPath, to: &VaultPath) {
    let entry = edit.get(from).unwrap().unwrap();
    let id = entry.link().unwrap_or_else(|| edit.fresh_link(from));
    edit.put(from, with_link(entry.clone(), Some(id))).unwrap();
    edit.put(to, with_link(entry, Some(id))).unwrap();
}

fn apply(trees: &Trees, edit: &mut Edit, model: &mut Model, step: Step) {
    let put = |edit: &mut Edit, model: &mut Model, path: &VaultPath, entry: Entry| {
        let done = edit.put(path, entry.clone());
        if model.may_put(path) {
            done.unwrap();
            model.put(path, entry, None);
        } else {
            assert!(matches!(
                done,
                Err(Error::PathNotFound { .. } | Error::NotADirectory { .. })
            ));
        }
    };
    match step {
        Step::PutFile(path, n, t) => put(edit, model, &path, file(trees, n, t)),
        Step::Mkdir(path) => put(edit, model, &path, Entry::directory(0o755, time(0))),
        Step::Symlink(path, n) => put(edit, model, &path, Entry::symlink(&[b'x', n], time(0))),
        Step::Fifo(path) => {
            put(
                edit,
                model,
                &path,
                Entry {
                    kind: Kind::Fifo,
                    meta: Meta::new(0o600, time(0)),
                },
            );
        }
        Step::Link(from, to) => {
            let is_file = model
                .entries
                .get(&from)
                .is_some_and(|(entry, _)| entry.is_file());
            if is_file && from != to && model.may_put(&to) && !from.starts_with(&to) {
                link(edit, &from, &to);
                let (entry, number) = model.entries[&from].clone();
                let number = number.unwrap_or(model.next_link);
                model.next_link += 1;
                model.put(&from, entry.clone(), Some(number));
                model.put(&to, entry, Some(number));
            }
        }
        Step::Rename(from, to) => rename(edit, model, &from, &to),
        Step::Remove(path) => {
            let done = edit.remove(&path);
            assert_eq!(done.is_ok(), model.entries.contains_key(&path));
            model.remove(&path);
        }
        Step::Mode(path, mode) => set_meta(edit, model, &path, |meta| meta.mode = mode),
        Step::Xattr(path, n) => set_meta(edit, model, &path, |meta| {
            meta.xattrs = (0..n).map(|k| (vec![b'u', k], vec![k; 3])).collect();
        }),
        Step::Get(path) => {
            let found = edit.get(&path).unwrap().map(bare);
            let expected = model.entries.get(&path).map(|(entry, _)| entry.clone());
            assert_eq!(found.map(|e| with_link(e, None)), expected);
        }
        Step::Finish => {}
    }
}

fn rename(edit: &mut Edit, model: &mut Model, from: &VaultPath, to: &VaultPath) {
    let apart = !from.starts_with(to) && !to.starts_with(from);
    if !model.entries.contains_key(from) || !apart || !model.may_put(to) {
        return;
    }
    edit.put(to, edit.get(from).unwrap().unwrap()).unwrap();
    edit.remove(from).unwrap();
    let moved =
        |(path, entry): (&VaultPath, &_)| Some((path.rebase(from, to)?, Clone::clone(entry)));
    let moved: Vec<_> = model.entries.iter().filter_map(moved).collect();
    model.remove(to);
    model.remove(from);
    model.entries.extend(moved);
}

fn set_meta(edit: &mut Edit, model: &mut Model, path: &VaultPath, change: impl Fn(&mut Meta)) {
    let Some((entry, number)) = model.entries.get(path).cloned() else {
        let refused = edit.set_meta(path, Meta::new(0, time(0)));
        assert!(matches!(refused, Err(Error::PathNotFound { .. })));
        return;
    };
    let mut meta = entry.meta;
    change(&mut meta);
    edit.set_meta(path, meta.clone()).unwrap();
    for (other, (entry, link)) in &mut model.entries {
        if other == path || (number.is_some() && *link == number) {
            entry.meta = meta.clone();
        }
    }
}

/// A directory without what follows from its content.
fn bare(mut entry: Entry) -> Entry {
    if entry.is_dir() {
        entry.kind = Kind::Directory {
            tree: TreeId::EMPTY,
            files: 0,
            bytes: 0,
        };
    }
    entry
}

fn walk(trees: &Trees, tree: TreeId, at: &VaultPath, found: &mut BTreeMap<VaultPath, Entry>) {
    for (name, entry) in trees.list(tree).unwrap() {
        let path = at.join(&name).unwrap();
        assert_eq!(trees.child(tree, &name).unwrap(), Some(entry.clone()));
        let (before, kind) = (found.len(), entry.kind.clone());
        found.insert(path.clone(), bare(entry));
        if let Kind::Directory { tree, files, bytes } = kind {
            walk(trees, tree, &path, found);
            let inside: Vec<_> = found.iter().filter(|(p, _)| p.starts_with(&path)).collect();
            assert_eq!(inside.len(), found.len() - before);
            assert_eq!(
                (files, bytes),
                totals(inside.into_iter().map(|(_, entry)| entry))
            );
        }
    }
}

fn totals<'a>(entries: impl Iterator<Item = &'a Entry>) -> (u64, u64) {
    entries
        .filter(|entry| !entry.is_dir())
        .fold((0, 0), |(files, bytes), entry| {
            let size = if entry.is_file() { entry.size() } else { 0 };
            (files + 1, bytes + size)
        })
}

fn check(trees: &Trees, id: RootId, model: &Model) {
    let root = trees.root(id).unwrap();
    let mut found = BTreeMap::new();
    walk(trees, root.tree(), &VaultPath::root(), &mut found);
    let expected = model.expected();
    assert_eq!(found, expected);
    assert_eq!((root.files(), root.bytes()), totals(expected.values()));
    let has_xattrs = expected.values().any(|entry| !entry.meta.xattrs.is_empty());
    assert_eq!(root.has_xattrs, has_xattrs);
    let groups = model.groups().into_values();
    let links: BTreeMap<_, _> = groups
        .map(|paths| (LinkId::of(paths.first().unwrap()), paths))
        .collect();
    assert_eq!(root.links, links);
    for (path, entry) in &expected {
        assert_eq!(
            trees.entry(id, path).unwrap().map(bare).as_ref(),
            Some(entry)
        );
    }
    assert_eq!(rebuilt(trees, &expected, &root.top), id, "built afresh");
}

/// A root with these entries, put together in one go.
fn rebuilt(trees: &Trees, entries: &BTreeMap<VaultPath, Entry>, top: &Entry) -> RootId {
    let mut edit = trees.edit(trees.empty_root().unwrap()).unwrap();
    edit.set_meta(&VaultPath::root(), top.meta.clone()).unwrap();
    for (path, entry) in entries {
        edit.put(path, entry.clone()).unwrap();
    }
    edit.finish().unwrap()
}

fn expected_diff(
    before: &BTreeMap<VaultPath, Entry>,
    after: &BTreeMap<VaultPath, Entry>,
) -> Vec<(VaultPath, ChangeKind)> {
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let kind = |path: &VaultPath| {
        let (old, new) = match (before.get(path), after.get(path)) {
            (None, _) => return Some(ChangeKind::Created),
            (_, None) => return Some(ChangeKind::Deleted),
            (Some(old), Some(new)) => (old, new),
        };
        if with_link(old.clone(), None).kind != with_link(new.clone(), None).kind {
            Some(ChangeKind::Modified)
        } else if old.meta.mode != new.meta.mode {
            Some(ChangeKind::Mode)
        } else if old.meta.xattrs != new.meta.xattrs {
            Some(ChangeKind::Xattrs)
        } else {
            (old != new).then_some(ChangeKind::Times)
        }
    };
    paths
        .into_iter()
        .filter_map(|path| Some((path.clone(), kind(path)?)))
        .collect()
}

fn check_diff(trees: &Trees, before: &(RootId, Model), after: &(RootId, Model)) {
    let (old, new) = (before.1.expected(), after.1.expected());
    let changes: Vec<Change> = trees.diff(before.0, after.0).unwrap();
    for change in &changes {
        assert_eq!(
            change.before.clone().map(bare).as_ref(),
            old.get(&change.path)
        );
        assert_eq!(
            change.after.clone().map(bare).as_ref(),
            new.get(&change.path)
        );
    }
    let found: Vec<_> = changes
        .into_iter()
        .map(|change| (change.path, change.kind))
        .collect();
    assert_eq!(found, expected_diff(&old, &new));
}

fn run(trees: &Trees, steps: Vec<Step>) {
    let mut model = Model::default();
    let root = trees.empty_root().unwrap();
    let mut history = vec![(root, model.clone())];
    let mut edit = trees.edit(root).unwrap();
    for step in steps.into_iter().chain([Step::Finish]) {
        if let Step::Finish = step {
            let root = edit.finish().unwrap();
            check(trees, root, &model);
            history.push((root, model.clone()));
            edit = trees.edit(root).unwrap();
        } else {
            apply(trees, &mut edit, &mut model, step);
        }
    }
    let last = history.last().unwrap();
    for before in &history {
        check_diff(trees, before, last);
        check_diff(trees, last, before);
    }
}

#[test]
fn edits_are_what_a_map_would_do() {
    // One store for all cases: making one costs more than a case.
    let home = tempfile::tempdir().unwrap();
    let trees = Trees::new(Store::open(home.path()).unwrap());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(400));
    let steps = prop::collection::vec(step(), 1..60);
    let result = runner.run(&steps, |steps| {
        run(&trees, steps);
        Ok(())
    });
    result.unwrap();
}
