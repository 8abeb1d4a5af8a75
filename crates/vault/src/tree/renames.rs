//! Pairs what went with what came: a guess, made only where content leaves little doubt.

use std::collections::{BTreeMap, HashMap};

use crate::{Change, ChangeKind, Content, Kind, TreeId, VaultPath};

/// Joins a `Deleted` and a `Created` into one `Renamed` at the new path: non-empty files of equal
/// content (when there is one of each, or they have the same name), and directories all of whose
/// entries have moved. Everything else, and the order, stays as it was.
pub fn pair_renames(changes: Vec<Change>) -> Vec<Change> {
    let mut pairing = Pairing::new(&changes);
    pairing.pair_equal_trees();
    pairing.pair_equal_files();
    pairing.pair_emptied_directories();
    let old_of = pairing.old_of;

    let mut changes: Vec<Option<Change>> = changes.into_iter().map(Some).collect();
    for (new, old) in old_of {
        let Some(old) = changes[old].take() else {
            continue;
        };
        if let Some(change) = &mut changes[new] {
            change.kind = ChangeKind::Renamed { from: old.path };
            change.before = old.before;
        }
    }
    changes.into_iter().flatten().collect()
}

/// Changes are meant by their place in the list.
struct Pairing<'a> {
    changes: &'a [Change],
    deleted: Vec<usize>,
    created: Vec<usize>,
    created_at: HashMap<&'a VaultPath, usize>,
    old_of: BTreeMap<usize, usize>,
    new_of: BTreeMap<usize, usize>,
}

impl<'a> Pairing<'a> {
    fn new(changes: &'a [Change]) -> Pairing<'a> {
        let places = |kind: ChangeKind| -> Vec<usize> {
            (0..changes.len())
                .filter(|&at| changes[at].kind == kind)
                .collect()
        };
        let (deleted, created) = (places(ChangeKind::Deleted), places(ChangeKind::Created));
        let created_at = created.iter().map(|&at| (&changes[at].path, at)).collect();
        let (old_of, new_of) = (BTreeMap::new(), BTreeMap::new());
        Pairing {
            changes,
            deleted,
            created,
            created_at,
            old_of,
            new_of,
        }
    }

    fn pair(&mut self, old: usize, new: usize) {
        if !self.new_of.contains_key(&old) && !self.old_of.contains_key(&new) {
            self.new_of.insert(old, new);
            self.old_of.insert(new, old);
        }
    }

    /// A directory with the same tree moved with everything in it.
    fn pair_equal_trees(&mut self) {
        let mut pairs = self.matches(tree_key);
        // Parents first: what moved with them needs no pairing of its own.
        pairs.sort_unstable();
        for (old, new) in pairs {
            if self.new_of.contains_key(&old) || self.old_of.contains_key(&new) {
                continue;
            }
            let changes = self.changes;
            let (from, to) = (&changes[old].path, &changes[new].path);
            let first = self.deleted.partition_point(|&at| changes[at].path < *from);
            let moved: Vec<(usize, VaultPath)> = self.deleted[first..]
                .iter()
                .map_while(|&at| Some((at, changes[at].path.rebase(from, to)?)))
                .collect();
            for (at, path) in moved {
                if let Some(&place) = self.created_at.get(&path) {
                    self.pair(at, place);
                }
            }
        }
    }

    fn pair_equal_files(&mut self) {
        for (old, new) in self.matches(file_key) {
            self.pair(old, new);
        }
    }

    /// Deepest first, so that a directory of directories follows from those.
    fn pair_emptied_directories(&mut self) {
        let mut inside: HashMap<VaultPath, Vec<usize>> = HashMap::new();
        for &at in &self.deleted {
            if let Some(parent) = self.changes[at].path.parent() {
                inside.entry(parent).or_default().push(at);
            }
        }
        for old in self.deleted.clone().into_iter().rev() {
            let entries = inside
                .get(&self.changes[old].path)
                .map_or(&[][..], |list| list);
            let target = entries.first().and_then(|&at| self.moved_to(at)?.parent());
            let Some(new) = target.and_then(|path| self.created_at.get(&path).copied()) else {
                continue;
            };
            let (from, to) = (&self.changes[old].path, &self.changes[new].path);
            let followed = |at: &usize| {
                let expected = self.changes[*at].path.rebase(from, to);
                expected.is_some() && expected.as_ref() == self.moved_to(*at)
            };
            if is_directory(&self.changes[new]) && entries.iter().all(followed) {
                self.pair(old, new);
            }
        }
    }

    fn moved_to(&self, old: usize) -> Option<&'a VaultPath> {
        self.new_of.get(&old).map(|&new| &self.changes[new].path)
    }

    /// Pairs with equal keys: the only ones on both sides, or the only ones with their file name.
    fn matches<K: Ord>(&self, key: impl Fn(&Change) -> Option<K>) -> Vec<(usize, usize)> {
        let mut sides: BTreeMap<K, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for &at in self
            .deleted
            .iter()
            .filter(|at| !self.new_of.contains_key(at))
        {
            if let Some(key) = key(&self.changes[at]) {
                sides.entry(key).or_default().0.push(at);
            }
        }
        for &at in self
            .created
            .iter()
            .filter(|at| !self.old_of.contains_key(at))
        {
            if let Some(key) = key(&self.changes[at]) {
                sides.entry(key).or_default().1.push(at);
            }
        }
        sides
            .into_values()
            .flat_map(|(old, new)| self.match_names(old, new))
            .collect()
    }

    fn match_names(&self, old: Vec<usize>, new: Vec<usize>) -> Vec<(usize, usize)> {
        if let ([old], [new]) = (&old[..], &new[..]) {
            return vec![(*old, *new)];
        }
        let unique = |list: &[usize]| {
            let mut places: HashMap<_, Option<usize>> = HashMap::new();
            for &at in list {
                let name = self.changes[at].path.file_name();
                places
                    .entry(name)
                    .and_modify(|place| *place = None)
                    .or_insert(Some(at));
            }
            places
        };
        let (old, new) = (unique(&old), unique(&new));
        let pair = |(name, at): (_, Option<usize>)| Some((at?, (*new.get(&name)?)?));
        old.into_iter().filter_map(pair).collect()
    }
}

fn is_directory(change: &Change) -> bool {
    change
        .after
        .as_ref()
        .or(change.before.as_ref())
        .is_some_and(|entry| entry.is_dir())
}

fn tree_key(change: &Change) -> Option<TreeId> {
    match change.after.as_ref().or(change.before.as_ref())?.kind {
        Kind::Directory { tree, .. } if tree != TreeId::EMPTY => Some(tree),
        _ => None,
    }
}

fn file_key(change: &Change) -> Option<(Content, u64)> {
    match change.after.as_ref().or(change.before.as_ref())?.kind {
        Kind::File { content, size, .. } if size > 0 => Some((content, size)),
        _ => None,
    }
}
