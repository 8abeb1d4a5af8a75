//! What can be reached from roots: every object that must be kept for them.

use std::collections::{BTreeMap, HashSet};

use avfs_store::ObjectId;

use super::codec;
use super::node::Node;
use super::parts::Part;
use crate::{Content, Error, Kind, Result, RootId, TreeId, Trees};

/// The objects reached so far. Roots can be added at any time; what is shared is read once.
pub struct Reach {
    trees: Trees,
    objects: HashSet<ObjectId>,
    /// Roots, nodes and chunk lists whose own references are in `objects` too. A file may consist
    /// of the same bytes as one of these, so being reached is not enough.
    opened: HashSet<ObjectId>,
    /// Those of them that cannot be read, and why: nobody knows what they refer to.
    unreadable: BTreeMap<ObjectId, String>,
}

impl Reach {
    pub fn new(trees: Trees) -> Reach {
        Reach {
            trees,
            objects: HashSet::new(),
            opened: HashSet::new(),
            unreadable: BTreeMap::new(),
        }
    }

    /// What could not be read on the way. As long as there is any, what was not reached may belong to it.
    pub fn unreadable(&self) -> &BTreeMap<ObjectId, String> {
        &self.unreadable
    }

    pub fn contains(&self, id: ObjectId) -> bool {
        self.objects.contains(&id)
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Adds all that `root` refers to, as far as it can be read.
    pub fn add(&mut self, root: RootId) -> Result<()> {
        if !self.open(root.object()) {
            return Ok(());
        }
        let read = self.read(root.object(), |bytes| {
            codec::decode_root(bytes).ok_or_else(|| format!("root {root}"))
        })?;
        let Some(record) = read else {
            return Ok(());
        };
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
        let read = self.read(tree.object(), |bytes| {
            codec::decode_node(bytes).ok_or_else(|| format!("tree {tree}"))
        })?;
        match read {
            None => {}
            Some(Node::Branch { children, .. }) => {
                ahead.extend(children.iter().map(|child| TreeId::new(child.id)));
            }
            Some(Node::Leaf(items)) => {
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

    /// None, and noted, when the object is damaged.
    fn read<T>(
        &mut self,
        id: ObjectId,
        decode: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<Option<T>> {
        let bytes = self.trees.store().get(id).map_err(Error::from);
        let read = bytes.and_then(|bytes| decode(&bytes).map_err(|what| Error::Corrupt { what }));
        self.or_note(id, read)
    }

    fn or_note<T>(&mut self, id: ObjectId, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_damage() => {
                self.unreadable.insert(id, error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
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
            let parts = self.trees.parts_of(list);
            for part in self.or_note(list, parts)?.unwrap_or_default() {
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
