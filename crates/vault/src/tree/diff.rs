//! What differs between two roots: compared downward by hash, so equal parts are never read.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::iter::Peekable;

use avfs_store::ObjectId;

use super::node::{Child, Item, Node, Summary};
use crate::{Entry, Kind, Result, RootId, TreeId, Trees, VaultPath};

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: VaultPath,
    pub kind: ChangeKind,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Created,
    Deleted,
    /// Content, target or kind differs.
    Modified,
    /// Mode bits or owner differ, content does not.
    Mode,
    /// Extended attributes differ, mode and content do not.
    Xattrs,
    /// Only times or the link id differ.
    Times,
    /// Made by [`crate::pair_renames`] alone.
    Renamed {
        from: VaultPath,
    },
}

impl Trees {
    /// Every path that differs between two entries, the first of which is at `path`.
    pub fn diff_entries(
        &self,
        path: &VaultPath,
        before: Option<Entry>,
        after: Option<Entry>,
    ) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        self.diff_entry(path.clone(), before, after, &mut |change| {
            changes.push(change);
            true
        })?;
        Ok(changes)
    }

    /// Every path at or beneath `path` that differs between two roots.
    pub fn diff_at(&self, before: RootId, after: RootId, path: &VaultPath) -> Result<Vec<Change>> {
        let (before, after) = (self.entry(before, path)?, self.entry(after, path)?);
        self.diff_entries(path, before, after)
    }

    /// Whether anything at or beneath `path` differs between two entries, times left out.
    pub(crate) fn changed(
        &self,
        path: &VaultPath,
        before: &Option<Entry>,
        after: &Option<Entry>,
    ) -> Result<bool> {
        if before == after {
            return Ok(false);
        }
        let changes = self.diff_entries(path, before.clone(), after.clone())?;
        Ok(changes
            .iter()
            .any(|change| change.kind != ChangeKind::Times))
    }

    /// Every path that differs, sorted. A directory that came or went is listed, and so is
    /// everything in it; one that merely holds changes is not.
    pub fn diff(&self, before: RootId, after: RootId) -> Result<Vec<Change>> {
        Ok(self
            .diff_up_to(before, after, usize::MAX)?
            .unwrap_or_default())
    }

    /// Every path that differs, if these are no more than `most`. With more, it does not look for the rest.
    pub fn diff_up_to(
        &self,
        before: RootId,
        after: RootId,
        most: usize,
    ) -> Result<Option<Vec<Change>>> {
        let mut changes = Vec::new();
        self.diff_each(before, after, &mut |change| {
            changes.push(change);
            changes.len() <= most
        })?;
        Ok((changes.len() <= most).then_some(changes))
    }

    /// Hands every path that differs to `each`, in order, until it says that it wants no more. However many there are,
    /// one node of each directory above is in memory.
    pub fn diff_each(
        &self,
        before: RootId,
        after: RootId,
        each: &mut dyn FnMut(Change) -> bool,
    ) -> Result<()> {
        if before != after {
            let (before, after) = (self.root(before)?, self.root(after)?);
            let tops = (Some(before.top.clone()), Some(after.top.clone()));
            self.diff_entry(VaultPath::root(), tops.0, tops.1, each)?;
        }
        Ok(())
    }

    /// As [`Trees::diff_each`], of two entries, the first of which is at `path`. Says whether more was wanted at the end.
    pub fn diff_entry(
        &self,
        path: VaultPath,
        before: Option<Entry>,
        after: Option<Entry>,
        each: &mut dyn FnMut(Change) -> bool,
    ) -> Result<bool> {
        let trees = (tree_of(&before), tree_of(&after));
        if let Some(kind) = classify(&before, &after) {
            let wanted = each(Change {
                path: path.clone(),
                kind,
                before,
                after,
            });
            if !wanted {
                return Ok(false);
            }
        }
        let mut differences = self.diff_trees(trees.0, trees.1)?;
        while let Some((name, before, after)) = differences.next()? {
            if !self.diff_entry(path.child(&name), before, after, each)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The names in which two directories differ, with both entries.
    fn diff_trees(&self, before: TreeId, after: TreeId) -> Result<Differences<'_>> {
        let mut before = Frontier::new(self, before)?;
        let mut after = Frontier::new(self, after)?;
        loop {
            let (old, new) = (before.level, after.level);
            if old == new {
                before.drop_shared(&mut after);
            }
            if old == 0 && new == 0 {
                return Ok(Differences {
                    before: before.items(self),
                    after: after.items(self),
                });
            }
            if old >= new {
                before.descend(self)?;
            }
            if new >= old {
                after.descend(self)?;
            }
        }
    }
}

type Difference = (Vec<u8>, Option<Entry>, Option<Entry>);

/// The nodes of one directory on one level, without those known to be the same on the other side.
struct Frontier {
    level: u8,
    nodes: Vec<Child>,
}

impl Frontier {
    fn new(trees: &Trees, tree: TreeId) -> Result<Frontier> {
        let node = trees.node(tree)?;
        let top = Child {
            last: Vec::new(),
            id: tree.object(),
            summary: Summary::default(),
        };
        Ok(Frontier {
            level: node.level(),
            nodes: vec![top],
        })
    }

    /// Equal nodes hold equal entries, and a name is only once in a directory.
    fn drop_shared(&mut self, other: &mut Frontier) {
        let ids = |nodes: &[Child]| {
            nodes
                .iter()
                .map(|node| node.id)
                .collect::<HashSet<ObjectId>>()
        };
        let (mine, theirs) = (ids(&self.nodes), ids(&other.nodes));
        self.nodes.retain(|node| !theirs.contains(&node.id));
        other.nodes.retain(|node| !mine.contains(&node.id));
    }

    fn descend(&mut self, trees: &Trees) -> Result<()> {
        let mut below = Vec::new();
        for node in &self.nodes {
            if let Node::Branch { children, .. } = &*trees.node(TreeId::new(node.id))? {
                below.extend_from_slice(children);
            }
        }
        (self.level, self.nodes) = (self.level - 1, below);
        Ok(())
    }

    fn items(self, trees: &Trees) -> Items<'_> {
        Items {
            trees,
            nodes: self.nodes.into_iter(),
            loaded: Vec::new().into_iter().peekable(),
        }
    }
}

/// The entries of some nodes of a directory, one node in memory at a time.
struct Items<'a> {
    trees: &'a Trees,
    nodes: std::vec::IntoIter<Child>,
    loaded: Peekable<std::vec::IntoIter<Item>>,
}

impl Items<'_> {
    fn peek(&mut self) -> Result<Option<&Item>> {
        while self.loaded.peek().is_none() {
            let Some(node) = self.nodes.next() else {
                return Ok(None);
            };
            let mut items = Vec::new();
            let node = self.trees.node(TreeId::new(node.id))?;
            self.trees.collect(&node, &mut items)?;
            self.loaded = items.into_iter().peekable();
        }
        Ok(self.loaded.peek())
    }

    /// What `peek` has shown.
    fn take(&mut self) -> Option<Item> {
        self.loaded.next()
    }
}

/// Walks the entries of two directories in step.
struct Differences<'a> {
    before: Items<'a>,
    after: Items<'a>,
}

impl Differences<'_> {
    fn next(&mut self) -> Result<Option<Difference>> {
        loop {
            let order = match (self.before.peek()?, self.after.peek()?) {
                (None, None) => return Ok(None),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.name.cmp(&new.name),
            };
            let old = order.is_le().then(|| self.before.take()).flatten();
            let new = order.is_ge().then(|| self.after.take()).flatten();
            let name = match (&old, &new) {
                (Some(old), Some(new)) if old.entry == new.entry => continue,
                (Some(item), _) | (None, Some(item)) => item.name.clone(),
                (None, None) => return Ok(None),
            };
            let entry = |item: Item| item.entry;
            return Ok(Some((name, old.map(entry), new.map(entry))));
        }
    }
}

fn tree_of(entry: &Option<Entry>) -> TreeId {
    match entry {
        Some(Entry {
            kind: Kind::Directory { tree, .. },
            ..
        }) => *tree,
        _ => TreeId::EMPTY,
    }
}

/// What the difference is called; none when only something inside a directory differs.
fn classify(before: &Option<Entry>, after: &Option<Entry>) -> Option<ChangeKind> {
    let (old, new) = match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => return Some(ChangeKind::Created),
        (Some(_), None) => return Some(ChangeKind::Deleted),
        (Some(old), Some(new)) => (old, new),
    };
    let same_content = match (&old.kind, &new.kind) {
        (
            Kind::File {
                content: a,
                size: m,
                ..
            },
            Kind::File {
                content: b,
                size: n,
                ..
            },
        ) => a == b && m == n,
        (Kind::Symlink { target: a }, Kind::Symlink { target: b }) => a == b,
        (Kind::Directory { .. }, Kind::Directory { .. }) | (Kind::Fifo, Kind::Fifo) => true,
        _ => false,
    };
    let access = |entry: &Entry| (entry.meta.mode, entry.meta.uid, entry.meta.gid);
    let times = |entry: &Entry| (entry.meta.mtime, entry.meta.ctime, entry.link());
    if !same_content {
        Some(ChangeKind::Modified)
    } else if access(old) != access(new) {
        Some(ChangeKind::Mode)
    } else if old.meta.xattrs != new.meta.xattrs {
        Some(ChangeKind::Xattrs)
    } else if times(old) != times(new) {
        Some(ChangeKind::Times)
    } else {
        None
    }
}
