//! What one root has and another has not: the objects and files that a change brings.

use std::collections::HashSet;

use avfs_store::ObjectId;

use super::node::{Item, Node};
use crate::{Content, Error, Kind, Result, RootId, TreeId, Trees, VaultPath};

/// A file that is new, or whose content is.
pub struct NewFile {
    pub path: VaultPath,
    pub content: Content,
    pub size: u64,
    /// Of the file that was there before.
    pub size_before: Option<u64>,
}

/// Walks from `before` to `after`, leaving out all that both have in the same place.
pub struct Delta<'a> {
    trees: &'a Trees,
    /// Nodes and such that only `after` has, content excepted.
    pub objects: Vec<ObjectId>,
    pub files: Vec<NewFile>,
    /// Directories yet to be compared. Not recursion: trees may be deeper than a stack.
    ahead: Vec<(VaultPath, TreeId, TreeId)>,
}

impl<'a> Delta<'a> {
    pub fn between(trees: &'a Trees, before: RootId, after: RootId) -> Result<Delta<'a>> {
        let mut delta = Delta {
            trees,
            objects: Vec::new(),
            files: Vec::new(),
            ahead: Vec::new(),
        };
        if before == after {
            return Ok(delta);
        }
        let (old, new) = (trees.loaded_root(before)?, trees.loaded_root(after)?);
        delta.objects.push(after.object());
        if new.links != old.links {
            delta.objects.extend(new.links);
        }
        delta.ahead = vec![(VaultPath::root(), old.root.tree(), new.root.tree())];
        while let Some((path, before, after)) = delta.ahead.pop() {
            delta.directory(path, before, after)?;
        }
        Ok(delta)
    }

    fn directory(&mut self, path: VaultPath, before: TreeId, after: TreeId) -> Result<()> {
        if before == after || after == TreeId::EMPTY {
            return Ok(());
        }
        let known = self.nodes(before)?;
        let mut ahead = vec![after.object()];
        while let Some(id) = ahead.pop() {
            if known.contains(&id) {
                continue;
            }
            self.objects.push(id);
            match &*self.trees.node(TreeId::new(id))? {
                Node::Branch { children, .. } => ahead.extend(children.iter().map(|it| it.id)),
                Node::Leaf(items) => {
                    for item in items {
                        self.item(&path, before, item)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn item(&mut self, path: &VaultPath, before: TreeId, item: &Item) -> Result<()> {
        if !matches!(item.entry.kind, Kind::Directory { .. } | Kind::File { .. }) {
            return Ok(());
        }
        let old = self
            .trees
            .child(before, &item.name)?
            .map(|entry| entry.kind);
        match (&item.entry.kind, old) {
            (Kind::Directory { tree, .. }, old) => {
                let before = match old {
                    Some(Kind::Directory { tree, .. }) => tree,
                    _ => TreeId::EMPTY,
                };
                self.ahead.push((path.child(&item.name), before, *tree));
            }
            (Kind::File { content, .. }, Some(Kind::File { content: same, .. }))
                if *content == same => {}
            (Kind::File { content, size, .. }, old) => {
                let size_before = match old {
                    Some(Kind::File { size, .. }) => Some(size),
                    _ => None,
                };
                self.files.push(NewFile {
                    path: path.child(&item.name),
                    content: *content,
                    size: *size,
                    size_before,
                });
            }
            (Kind::Symlink { .. } | Kind::Fifo, _) => {}
        }
        Ok(())
    }

    /// Every node of one directory; its leaves are named without being read.
    fn nodes(&self, tree: TreeId) -> Result<HashSet<ObjectId>> {
        let mut nodes = HashSet::from([tree.object()]);
        let mut ahead = vec![tree];
        while let Some(tree) = ahead.pop() {
            let node = self.trees.node(tree)?;
            if let Node::Branch { level, children } = &*node {
                nodes.extend(children.iter().map(|child| child.id));
                if *level > 1 {
                    ahead.extend(children.iter().map(|child| TreeId::new(child.id)));
                }
            }
        }
        Ok(nodes)
    }
}

impl Trees {
    /// Makes sure that a sweep has taken nothing of what `after` brings; what it shares with
    /// `before`, which is somebody's head, cannot have gone.
    pub(crate) fn check_unswept(&self, before: RootId, after: RootId) -> Result<()> {
        let check = || {
            let delta = Delta::between(self, before, after)?;
            for id in &delta.objects {
                self.check_there(*id)?;
            }
            for file in &delta.files {
                match file.content {
                    Content::EMPTY => {}
                    Content::Object(id) => self.check_there(id)?,
                    Content::Chunks(list) => {
                        self.check_there(list)?;
                        self.objects_beneath(list, &mut |id| self.check_there(id))?;
                    }
                }
            }
            Ok(())
        };
        match check() {
            Err(Error::Store(avfs_store::Error::Missing { id })) => Err(Error::Swept { id }),
            checked => checked,
        }
    }

    fn check_there(&self, id: ObjectId) -> Result<()> {
        match self.store().contains(id)? {
            true => Ok(()),
            false => Err(avfs_store::Error::Missing { id }.into()),
        }
    }
}
