//! Property: copies, links, moves and removals = the same on a plain model of names and inodes,
//! and the root is the one that building the outcome from nothing gives.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use avfs_store::Store;
use avfs_vault::{Edit, Entry, Kind, Meta, RootId, Time, Trees, VaultPath};
use proptest::prelude::*;

/// Trees are named by content, so that all cases can share one.
static STORE: LazyLock<(tempfile::TempDir, Trees)> = LazyLock::new(|| {
    let home = tempfile::tempdir().unwrap();
    let trees = Trees::new(Store::open(home.path()).unwrap());
    (home, trees)
});

#[derive(Clone, Debug)]
enum Step {
    Write(usize, u8),
    Directory(usize),
    Link(usize, usize),
    Copy(usize, usize),
    Move(usize, usize),
    Remove(usize),
    /// Stores the tree, so that the next step begins with a fresh edit.
    Finish,
}

/// Every name there may be; `/d` and `/e` are where directories come to be.
const NAMES: [&str; 10] = [
    "/a", "/b", "/d", "/d/a", "/d/b", "/d/s", "/d/s/a", "/e", "/e/a", "/e/s",
];

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    prop_oneof![
        4 => (name(), any::<u8>()).prop_map(|(at, byte)| Step::Write(at, byte % 3)),
        3 => name().prop_map(Step::Directory),
        4 => (name(), name()).prop_map(|(from, to)| Step::Link(from, to)),
        4 => (name(), name()).prop_map(|(from, to)| Step::Copy(from, to)),
        2 => (name(), name()).prop_map(|(from, to)| Step::Move(from, to)),
        2 => name().prop_map(Step::Remove),
        2 => Just(Step::Finish),
    ]
}

/// Names, each a directory or one of the inodes; inodes have a byte of content.
#[derive(Default)]
struct Model {
    names: BTreeMap<String, Option<u32>>,
    inodes: BTreeMap<u32, u8>,
    next: u32,
}

impl Model {
    fn parent_is_directory(&self, name: &str) -> bool {
        let parent = &name[..name.rfind('/').unwrap()];
        parent.is_empty() || self.names.get(parent) == Some(&None)
    }

    fn subtree(&self, name: &str) -> Vec<(String, Option<u32>)> {
        let beneath = format!("{name}/");
        let all = self.names.iter();
        all.filter(|(other, _)| *other == name || other.starts_with(&beneath))
            .map(|(other, node)| (other.clone(), *node))
            .collect()
    }

    fn remove(&mut self, name: &str) {
        for (gone, _) in self.subtree(name) {
            self.names.remove(&gone);
        }
    }

    fn new_inode(&mut self, byte: u8) -> u32 {
        self.next += 1;
        self.inodes.insert(self.next, byte);
        self.next
    }

    /// Puts a subtree somewhere else; as a copy, its files are files of their own.
    fn place(&mut self, from: &str, to: &str, copy: bool) {
        let subtree = self.subtree(from);
        if !copy {
            self.remove(from);
        }
        self.remove(to);
        let mut fresh: BTreeMap<u32, u32> = BTreeMap::new();
        for (name, node) in subtree {
            let node = match node {
                Some(inode) if copy => Some(match fresh.get(&inode) {
                    Some(own) => *own,
                    None => {
                        let own = self.new_inode(self.inodes[&inode]);
                        fresh.insert(inode, own);
                        own
                    }
                }),
                node => node,
            };
            self.names
                .insert(format!("{to}{}", &name[from.len()..]), node);
        }
    }

    fn groups(&self) -> BTreeSet<BTreeSet<String>> {
        let mut groups: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for (name, node) in &self.names {
            if let Some(inode) = node {
                groups.entry(*inode).or_default().insert(name.clone());
            }
        }
        groups
            .into_values()
            .filter(|names| names.len() > 1)
            .collect()
    }
}

fn path(text: &str) -> VaultPath {
    text.parse().unwrap()
}

fn file(trees: &Trees, byte: u8) -> Entry {
    let (content, size) = trees.write_bytes(&[byte]).unwrap();
    Entry::file(content, size, Meta::new(0o644, Time::EPOCH))
}

/// Does the step on both sides, where it makes sense.
fn apply(trees: &Trees, edit: &mut Edit, model: &mut Model, step: &Step) {
    match step {
        Step::Finish => {}
        Step::Write(at, byte) => {
            let name = NAMES[*at];
            match model.names.get(name).copied() {
                Some(None) => {}
                Some(Some(inode)) => {
                    model.inodes.insert(inode, *byte);
                    let link = edit.get(&path(name)).unwrap().unwrap().link();
                    for name in edit.linked_names(&path(name)).unwrap() {
                        let mut entry = file(trees, *byte);
                        if let Kind::File { link: own, .. } = &mut entry.kind {
                            *own = link;
                        }
                        edit.put(&name, entry).unwrap();
                    }
                }
                None if model.parent_is_directory(name) => {
                    let inode = model.new_inode(*byte);
                    model.names.insert(name.into(), Some(inode));
                    edit.put(&path(name), file(trees, *byte)).unwrap();
                }
                None => {}
            }
        }
        Step::Directory(at) => {
            let name = NAMES[*at];
            if !model.names.contains_key(name) && model.parent_is_directory(name) {
                model.names.insert(name.into(), None);
                let directory = Entry::directory(0o755, Time::EPOCH);
                edit.put(&path(name), directory).unwrap();
            }
        }
        Step::Link(from, to) => {
            let (from, to) = (NAMES[*from], NAMES[*to]);
            let inode = model.names.get(from).copied().flatten();
            if let Some(inode) = inode.filter(|_| !model.names.contains_key(to))
                && model.parent_is_directory(to)
            {
                model.names.insert(to.into(), Some(inode));
                edit.link(&path(from), &path(to)).unwrap();
            }
        }
        Step::Copy(from, to) | Step::Move(from, to) => {
            let (from, to) = (NAMES[*from], NAMES[*to]);
            let nested = path(to).starts_with(&path(from)) || path(from).starts_with(&path(to));
            if nested || !model.names.contains_key(from) || !model.parent_is_directory(to) {
                return;
            }
            let copy = matches!(step, Step::Copy(..));
            model.place(from, to, copy);
            if copy {
                edit.copy(&path(from), &path(to)).unwrap();
            } else {
                let entry = edit.get(&path(from)).unwrap().unwrap();
                edit.remove(&path(from)).unwrap();
                edit.put(&path(to), entry).unwrap();
            }
        }
        Step::Remove(at) => {
            let name = NAMES[*at];
            if model.names.contains_key(name) {
                model.remove(name);
                edit.remove(&path(name)).unwrap();
            }
        }
    }
}

/// The tree that the model describes, from nothing.
fn build(trees: &Trees, model: &Model) -> RootId {
    let mut edit = trees.edit(trees.empty_root().unwrap()).unwrap();
    let mut first: BTreeMap<u32, &str> = BTreeMap::new();
    for (name, node) in &model.names {
        match node {
            None => {
                let directory = Entry::directory(0o755, Time::EPOCH);
                edit.put(&path(name), directory).unwrap();
            }
            Some(inode) => match first.get(inode) {
                Some(other) => edit.link(&path(other), &path(name)).unwrap(),
                None => {
                    first.insert(*inode, name);
                    let entry = file(trees, model.inodes[inode]);
                    edit.put(&path(name), entry).unwrap();
                }
            },
        }
    }
    edit.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn links_follow_the_model(steps in proptest::collection::vec(step(), 1..40)) {
        let (_, trees) = &*STORE;
        let mut model = Model::default();
        let mut edit = trees.edit(trees.empty_root().unwrap()).unwrap();
        for step in &steps {
            apply(trees, &mut edit, &mut model, step);
            if matches!(step, Step::Finish) {
                let root = edit.finish().unwrap();
                edit = trees.edit(root).unwrap();
            }
        }
        let root = edit.finish().unwrap();
        let links = trees.root(root).unwrap().links.clone();
        let groups: BTreeSet<BTreeSet<String>> = links
            .into_values()
            .map(|names| names.iter().map(ToString::to_string).collect())
            .collect();
        prop_assert_eq!(groups, model.groups());
        prop_assert_eq!(root, build(trees, &model));
    }
}
