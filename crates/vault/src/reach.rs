//! What can be reached from roots: every object that must be kept for them.

use std::collections::HashSet;

use avfs_store::ObjectId;

use crate::codec;
use crate::node::Node;
use crate::parts::Part;
use crate::{Content, Error, Kind, Result, RootId, TreeId, Trees};

/// The objects reached so far. Roots can be added at any time; what is shared is read once.
pub struct Reach {
    trees: Trees,
    objects: HashSet<ObjectId>,
    /// Roots, nodes and chunk lists whose own references are in `objects` too. A file may consist
    /// of the same bytes as one of these, so being reached is not enough.
    opened: HashSet<ObjectId>,
}

impl Reach {
    pub fn new(trees: Trees) -> Reach {
        Reach {
            trees,
            objects: HashSet::new(),
            opened: HashSet::new(),
        }
    }

    pub fn contains(&self, id: ObjectId) -> bool {
        self.objects.contains(&id)
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Adds all that `root` refers to. Fails where something that must be read is not there.
    pub fn add(&mut self, root: RootId) -> Result<()> {
        if !self.open(root.object()) {
            return Ok(());
        }
        let bytes = self.trees.store().get(root.object())?;
        let record = codec::decode_root(&bytes).ok_or_else(|| Error::Corrupt {
            what: format!("root {root}"),
        })?;
        self.objects.extend(record.links);
        let mut ahead = Vec::new();
        if let Kind::Directory { tree, .. } = record.top.kind {
            ahead.push(tree);
        }
        while let Some(tree) = ahead.pop() {
            self.add_node(tree, &mut ahead)?;
        }
        Ok(())
    }

    fn add_node(&mut self, tree: TreeId, ahead: &mut Vec<TreeId>) -> Result<()> {
        if tree == TreeId::EMPTY || !self.open(tree.object()) {
            return Ok(());
        }
        let bytes = self.trees.store().get(tree.object())?;
        let node = codec::decode_node(&bytes).ok_or_else(|| Error::Corrupt {
            what: format!("tree {tree}"),
        })?;
        match node {
            Node::Branch { children, .. } => {
                ahead.extend(children.iter().map(|child| TreeId::new(child.id)));
            }
            Node::Leaf(items) => {
                for item in items {
                    match item.entry.kind {
                        Kind::Directory { tree, .. } => ahead.push(tree),
                        Kind::File { content, .. } => self.add_content(content)?,
                        Kind::Symlink { .. } | Kind::Fifo => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn add_content(&mut self, content: Content) -> Result<()> {
        let list = match content {
            Content::EMPTY => return Ok(()),
            Content::Object(id) => {
                self.objects.insert(id);
                return Ok(());
            }
            Content::Chunks(list) => list,
        };
        let mut ahead = vec![list];
        while let Some(list) = ahead.pop() {
            if !self.open(list) {
                continue;
            }
            for part in self.trees.parts_of(list)? {
                match part {
                    Part::Hole { .. } => {}
                    Part::Chunk { id, .. } => {
                        self.objects.insert(id);
                    }
                    Part::List { id, .. } => ahead.push(id),
                }
            }
        }
        Ok(())
    }

    /// Whether this is the first time that what `id` refers to is wanted.
    fn open(&mut self, id: ObjectId) -> bool {
        self.objects.insert(id);
        self.opened.insert(id)
    }
}
