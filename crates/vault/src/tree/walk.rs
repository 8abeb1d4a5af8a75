//! Walking a tree from a place downward, leaving unread what nobody asks for.

use super::node::{Flags, Item};
use crate::{Entry, Error, Kind, Result, RootId, Trees, VaultPath};

/// One name met on a walk.
#[derive(Debug)]
pub struct Visit<'a> {
    pub path: &'a VaultPath,
    pub entry: &'a Entry,
    /// 0 for where the walk began.
    pub depth: usize,
    /// Whether this entry, or anything beneath it, has extended attributes.
    pub has_xattrs: bool,
}

/// Whether a walk looks into a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Into,
    Past,
}

impl Trees {
    /// Shows `look` what is at `path` and everything beneath it: a directory before what is in
    /// it, names in order. Follows no symlink.
    pub fn walk<E: From<Error>>(
        &self,
        root: RootId,
        path: &VaultPath,
        look: &mut dyn FnMut(Visit<'_>) -> Result<Step, E>,
    ) -> Result<(), E> {
        let top = self.item_at(root, path)?;
        self.walk_item(path.clone(), &top, 0, look)
    }

    fn walk_item<E: From<Error>>(
        &self,
        path: VaultPath,
        item: &Item,
        depth: usize,
        look: &mut dyn FnMut(Visit<'_>) -> Result<Step, E>,
    ) -> Result<(), E> {
        let step = look(Visit {
            path: &path,
            entry: &item.entry,
            depth,
            has_xattrs: item.summary().flags.xattrs,
        })?;
        let (Step::Into, Kind::Directory { tree, .. }) = (step, &item.entry.kind) else {
            return Ok(());
        };
        let mut below = Vec::new();
        self.collect(&*self.node(*tree)?, &mut below)?;
        for item in &below {
            self.walk_item(path.child(&item.name), item, depth + 1, look)?;
        }
        Ok(())
    }

    fn item_at(&self, root: RootId, path: &VaultPath) -> Result<Item> {
        let root = self.root(root)?;
        let mut item = Item {
            name: Vec::new(),
            entry: root.top.clone(),
            beneath: Flags {
                xattrs: root.has_xattrs,
                links: !root.links.is_empty(),
            },
        };
        for name in path.components() {
            let below = match item.entry.kind {
                Kind::Directory { tree, .. } => self.child_item(tree, name)?,
                _ => None,
            };
            item = below.ok_or_else(|| Error::PathNotFound { path: path.clone() })?;
        }
        Ok(item)
    }
}
