//! Making directories: the same names give the same nodes, whatever the order they came in.
//!
//! Up to `SMALL` entries a directory is one leaf. Above, the sorted entries are cut after each name
//! whose hash says so, the resulting nodes likewise one level up, until one node is left. Where
//! the cuts are depends on the names alone, so an edit moves only the cuts beside it.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::node::{Child, Item, Node, Summary};
use crate::{Result, TreeId, Trees};

pub const SMALL: usize = 256;
/// A name ends a node with probability 1/64 on each level.
const CUT_BITS: u32 = 6;

/// What becomes of one name; sorted by name when several.
pub struct Edited {
    pub name: Vec<u8>,
    pub item: Option<Item>,
}

impl Trees {
    /// The directory `base` with `edits` (sorted, each name once) applied.
    pub(crate) fn rebuild(&self, base: TreeId, edits: Vec<Edited>) -> Result<(TreeId, Summary)> {
        let node = self.node(base)?;
        if edits.is_empty() {
            return Ok((base, node.summary()));
        }
        let mut builder = Builder::new(self);
        match &*node {
            Node::Leaf(items) => {
                let mut merged = Vec::with_capacity(items.len() + edits.len());
                merge(items, edits, |item| {
                    merged.push(item);
                    Ok(())
                })?;
                if merged.len() <= SMALL {
                    return self.small(merged);
                }
                merged.into_iter().try_for_each(|item| builder.push(item))?;
            }
            Node::Branch { .. } => builder.feed(&node, edits)?,
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

/// Walks `items` and `edits` in step and hands on what is there afterwards.
fn merge(
    items: &[Item],
    edits: Vec<Edited>,
    mut keep: impl FnMut(Item) -> Result<()>,
) -> Result<()> {
    let mut items = items.iter().peekable();
    for edit in edits {
        while let Some(item) = items.next_if(|item| item.name < edit.name) {
            keep(item.clone())?;
        }
        items.next_if(|item| item.name == edit.name);
        if let Some(item) = edit.item {
            keep(item)?;
        }
    }
    items.try_for_each(|item| keep(item.clone()))
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

    /// Replays `node` with `edits`; nodes that neither an edit nor a moved cut touches are taken
    /// over unread.
    fn feed(&mut self, node: &Node, mut edits: Vec<Edited>) -> Result<()> {
        let children = match node {
            Node::Leaf(items) => return merge(items, edits, |item| self.push(item)),
            Node::Branch { children, .. } => children,
        };
        let level = usize::from(node.level()) - 1;
        for (at, child) in children.iter().enumerate() {
            // What sorts behind everything belongs to the last child.
            let rest = if at + 1 == children.len() {
                Vec::new()
            } else {
                edits.split_off(edits.partition_point(|edit| edit.name <= child.last))
            };
            let mine = std::mem::replace(&mut edits, rest);
            if mine.is_empty() && self.is_between_nodes(level) {
                self.push_child(level, child.clone())?;
            } else {
                let below: Arc<Node> = self.trees.node_below(node, child)?;
                self.feed(&below, mine)?;
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
        let items = std::mem::take(&mut self.leaf);
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
