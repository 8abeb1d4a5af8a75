//! Making directories: the same names give the same nodes, whatever the order they came in.
//!
//! Up to `SMALL` entries a directory is one leaf. Above, the sorted entries are cut after each name
//! whose hash says so, the resulting nodes likewise one level up, until one node is left. Where
//! the cuts are depends on the names alone, so an edit moves only the cuts beside it.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::Arc;

use super::node::{Child, Item, Node, Summary};
use crate::{Result, TreeId, Trees};

pub const SMALL: usize = 256;
/// A name ends a node with probability 1/64 on each level.
const CUT_BITS: u32 = 6;

/// What becomes of names, in their order, each once. An item is made when its turn comes, so that few are there at a time.
pub struct Edits<C: Iterator, M> {
    changes: Peekable<C>,
    make: M,
}

impl<'a, P, C, M> Edits<C, M>
where
    C: Iterator<Item = (&'a Vec<u8>, P)>,
    M: FnMut(&'a [u8], P) -> Result<Option<Item>>,
{
    /// `make` says what is there under a name afterwards.
    pub fn new(changes: C, make: M) -> Edits<C, M> {
        Edits {
            changes: changes.peekable(),
            make,
        }
    }

    /// Whether none are left up to the name `last`; without one, none at all.
    fn is_empty(&mut self, last: Option<&[u8]>) -> bool {
        match (self.changes.peek(), last) {
            (None, _) => true,
            (Some((name, _)), Some(last)) => name.as_slice() > last,
            (Some(_), None) => false,
        }
    }

    fn next(&mut self, last: Option<&[u8]>) -> Option<(&'a [u8], P)> {
        if self.is_empty(last) {
            return None;
        }
        self.changes
            .next()
            .map(|(name, change)| (&name[..], change))
    }

    /// Walks `items` and the edits up to the name `last` in step, and hands on what is there afterwards.
    fn merge(
        &mut self,
        items: &[Item],
        last: Option<&[u8]>,
        mut keep: impl FnMut(Item) -> Result<()>,
    ) -> Result<()> {
        let mut items = items.iter().peekable();
        while let Some((name, change)) = self.next(last) {
            while let Some(item) = items.next_if(|item| item.name.as_slice() < name) {
                keep(item.clone())?;
            }
            items.next_if(|item| item.name == name);
            if let Some(item) = (self.make)(name, change)? {
                keep(item)?;
            }
        }
        items.try_for_each(|item| keep(item.clone()))
    }
}

impl Trees {
    /// The directory `base` with `edits` applied.
    pub(crate) fn rebuild<'a, P, C, M>(
        &self,
        base: TreeId,
        mut edits: Edits<C, M>,
    ) -> Result<(TreeId, Summary)>
    where
        C: Iterator<Item = (&'a Vec<u8>, P)>,
        M: FnMut(&'a [u8], P) -> Result<Option<Item>>,
    {
        let node = self.node(base)?;
        if edits.is_empty(None) {
            return Ok((base, node.summary()));
        }
        let mut builder = Builder::new(self);
        match &*node {
            Node::Leaf(items) => {
                let mut few = Vec::new();
                edits.merge(items, None, |item| {
                    if !builder.is_new() {
                        return builder.push(item);
                    }
                    few.push(item);
                    match few.len() > SMALL {
                        true => few.drain(..).try_for_each(|item| builder.push(item)),
                        false => Ok(()),
                    }
                })?;
                if builder.is_new() {
                    return self.small(few);
                }
            }
            Node::Branch { .. } => builder.feed(&node, &mut edits, None)?,
        }
        let (tree, summary) = builder.finish()?;
        if summary.entries > SMALL as u64 {
            return Ok((tree, summary));
        }
        let mut items = Vec::new();
        self.collect(&*self.node(tree)?, &mut items)?;
        self.small(items)
    }

    fn small(&self, items: Vec<Item>) -> Result<(TreeId, Summary)> {
        if items.is_empty() {
            return Ok((TreeId::EMPTY, Summary::default()));
        }
        let child = self.put_node(Node::Leaf(items))?;
        Ok((TreeId::new(child.id), child.summary))
    }

    /// All items beneath a node of one directory.
    pub(crate) fn collect(&self, node: &Node, items: &mut Vec<Item>) -> Result<()> {
        match node {
            Node::Leaf(leaf) => items.extend_from_slice(leaf),
            Node::Branch { children, .. } => {
                for child in children {
                    let below = self.node_below(node, child)?;
                    self.collect(&below, items)?;
                }
            }
        }
        Ok(())
    }
}

/// Takes entries in order and cuts them into nodes.
struct Builder<'a> {
    trees: &'a Trees,
    /// Entries of the leaf that is being filled.
    leaf: Vec<Item>,
    /// `branches[n]` fills a branch of level n + 1 with nodes of level n.
    branches: Vec<Vec<Child>>,
}

impl Builder<'_> {
    fn new(trees: &Trees) -> Builder<'_> {
        Builder {
            trees,
            leaf: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// Whether it was given nothing yet.
    fn is_new(&self) -> bool {
        self.leaf.is_empty() && self.branches.is_empty()
    }

    /// Replays `node` with the edits up to the name `last`; nodes that neither an edit nor a moved cut touches are
    /// taken over unread.
    fn feed<'a, P, C, M>(
        &mut self,
        node: &Node,
        edits: &mut Edits<C, M>,
        last: Option<&[u8]>,
    ) -> Result<()>
    where
        C: Iterator<Item = (&'a Vec<u8>, P)>,
        M: FnMut(&'a [u8], P) -> Result<Option<Item>>,
    {
        let children = match node {
            Node::Leaf(items) => return edits.merge(items, last, |item| self.push(item)),
            Node::Branch { children, .. } => children,
        };
        let level = usize::from(node.level()) - 1;
        for (at, child) in children.iter().enumerate() {
            // What sorts behind everything belongs to the last child.
            let last = match at + 1 == children.len() {
                true => last,
                false => Some(&child.last[..]),
            };
            if edits.is_empty(last) && self.is_between_nodes(level) {
                self.push_child(level, child.clone())?;
            } else {
                let below: Arc<Node> = self.trees.node_below(node, child)?;
                self.feed(&below, edits, last)?;
            }
        }
        Ok(())
    }

    /// Whether a node of `level` may begin here.
    fn is_between_nodes(&self, level: usize) -> bool {
        self.leaf.is_empty() && self.branches.iter().take(level).all(Vec::is_empty)
    }

    fn push(&mut self, item: Item) -> Result<()> {
        let cut = is_cut(&item.name, 0);
        self.leaf.push(item);
        if cut { self.close_leaf() } else { Ok(()) }
    }

    fn push_child(&mut self, level: usize, child: Child) -> Result<()> {
        if self.branches.len() <= level {
            self.branches.resize_with(level + 1, Vec::new);
        }
        let cut = is_cut(&child.last, level as u32 + 1);
        self.branches[level].push(child);
        if cut {
            self.close_branch(level)
        } else {
            Ok(())
        }
    }

    fn close_leaf(&mut self) -> Result<()> {
        let mut items = std::mem::take(&mut self.leaf);
        // It may stay in the cache for long.
        items.shrink_to_fit();
        let child = self.trees.put_node(Node::Leaf(items))?;
        self.push_child(0, child)
    }

    fn close_branch(&mut self, level: usize) -> Result<()> {
        let children = std::mem::take(&mut self.branches[level]);
        let child = self.trees.put_node(Node::Branch {
            level: level as u8 + 1,
            children,
        })?;
        self.push_child(level + 1, child)
    }

    fn finish(mut self) -> Result<(TreeId, Summary)> {
        if !self.leaf.is_empty() {
            self.close_leaf()?;
        }
        let mut level = 0;
        while level < self.branches.len() {
            let above = self.branches[level + 1..]
                .iter()
                .any(|branch| !branch.is_empty());
            match (self.branches[level].len().cmp(&1), above) {
                (Ordering::Equal, false) => return self.top(level),
                (Ordering::Less, _) => {}
                _ => self.close_branch(level)?,
            }
            level += 1;
        }
        Ok((TreeId::EMPTY, Summary::default()))
    }

    /// The one node left; branches with a single child above the first real one are left out, so
    /// that a cut at the very end makes no other tree.
    fn top(&mut self, level: usize) -> Result<(TreeId, Summary)> {
        let mut top = self.branches[level].remove(0);
        loop {
            match &*self.trees.node(TreeId::new(top.id))? {
                Node::Branch { children, .. } if children.len() == 1 => top = children[0].clone(),
                _ => return Ok((TreeId::new(top.id), top.summary)),
            }
        }
    }
}

fn is_cut(name: &[u8], level: u32) -> bool {
    let hash = blake3::hash(name);
    let head = *hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
    u64::from_le_bytes(head).trailing_zeros() >= CUT_BITS * (level + 1)
}
