//! Walking what roots refer to, in search of what is wrong, and naming where that matters.

use std::collections::{BTreeMap, HashMap, HashSet};

use avfs_store::ObjectId;

use super::codec;
use super::node::Node;
use super::parts::{DEPTH_MAX, Part};
use crate::{Content, Kind, RootId, TreeId, Trees, VaultPath};

pub type Problems = BTreeMap<ObjectId, String>;

/// How it is told whether the content of a file is whole.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Contents {
    /// It was read before; here it only has to be in the index.
    InIndex,
    /// It is whole unless somebody has found otherwise.
    NotKnownDamaged,
}

/// Walks trees, each node once, and knows of each whether something beneath it is wrong.
pub struct Check<'a> {
    trees: &'a Trees,
    contents: Contents,
    pub problems: Problems,
    /// Of roots, nodes and chunk lists that were walked: whether anything in them is wrong.
    bad: HashMap<ObjectId, bool>,
}

enum Visit {
    Enter(ObjectId),
    /// With what is known of the node itself, and the nodes below it.
    Leave(ObjectId, bool, Vec<ObjectId>),
}

impl<'a> Check<'a> {
    pub fn new(trees: &'a Trees, contents: Contents, problems: Problems) -> Check<'a> {
        Check {
            trees,
            contents,
            problems,
            bad: HashMap::new(),
        }
    }

    /// Whether anything is wrong with a root or with what it refers to.
    pub fn root(&mut self, root: RootId) -> bool {
        let id = root.object();
        if let Some(bad) = self.bad.get(&id) {
            return *bad;
        }
        let record = self.open(id, "it is no root", codec::decode_root);
        let bad = match record {
            None => true,
            Some(record) => {
                let links = record.links.is_some_and(|links| {
                    self.open(links, "it is no link index", codec::decode_links)
                        .is_none()
                });
                let tree = match record.top.kind {
                    Kind::Directory { tree, .. } => tree,
                    _ => TreeId::EMPTY,
                };
                self.node(tree) || links
            }
        };
        self.bad.insert(id, bad);
        bad
    }

    /// Without recursion: however deep a tree is, it must not bring the check down.
    fn node(&mut self, tree: TreeId) -> bool {
        let mut ahead = vec![Visit::Enter(tree.object())];
        while let Some(visit) = ahead.pop() {
            match visit {
                Visit::Enter(id) if self.bad.contains_key(&id) => {}
                Visit::Enter(id) => {
                    let (own, below) = self.look_into(id);
                    ahead.push(Visit::Leave(id, own, below.clone()));
                    ahead.extend(below.into_iter().map(Visit::Enter));
                }
                Visit::Leave(id, own, below) => {
                    let bad = own || below.iter().any(|id| self.bad.get(id) == Some(&true));
                    self.bad.insert(id, bad);
                }
            }
        }
        self.bad.get(&tree.object()) == Some(&true)
    }

    /// Whether something is wrong with a node or with the files in it, and the nodes below it.
    fn look_into(&mut self, id: ObjectId) -> (bool, Vec<ObjectId>) {
        if id == TreeId::EMPTY.object() {
            return (false, Vec::new());
        }
        match self.open(id, "it is no directory", codec::decode_node) {
            None => (true, Vec::new()),
            Some(Node::Branch { children, .. }) => {
                (false, children.iter().map(|child| child.id).collect())
            }
            Some(Node::Leaf(items)) => {
                let (mut bad, mut below) = (false, Vec::new());
                for item in &items {
                    match item.entry.kind {
                        Kind::Directory { tree, .. } => below.push(tree.object()),
                        Kind::File { content, size, .. } => bad |= self.content(content, size),
                        Kind::Symlink { .. } | Kind::Fifo => {}
                    }
                }
                (bad, below)
            }
        }
    }

    fn content(&mut self, content: Content, size: u64) -> bool {
        let list = match content {
            Content::EMPTY => return false,
            Content::Object(id) => return !self.is_good(id),
            Content::Chunks(list) => list,
        };
        self.parts(list, size, 0)
    }

    /// Whether something is wrong with a list or what is in it. Lists of lists are few levels deep.
    fn parts(&mut self, list: ObjectId, size: u64, depth: usize) -> bool {
        if let Some(bad) = self.bad.get(&list) {
            return *bad;
        }
        let bad = match self.open(list, "it is no chunk list", codec::decode_parts) {
            None => true,
            Some(parts) => {
                if parts.iter().map(Part::length).sum::<u64>() != size {
                    let problem = "its chunks have another length than its file";
                    self.problems.insert(list, problem.to_owned());
                }
                if depth == DEPTH_MAX {
                    let problem = "its lists are too deep";
                    self.problems.insert(list, problem.to_owned());
                }
                let mut bad = self.problems.contains_key(&list);
                for part in &parts {
                    bad |= match *part {
                        Part::Hole { .. } => false,
                        Part::Chunk { id, .. } => !self.is_good(id),
                        Part::List { id, length, .. } => {
                            depth < DEPTH_MAX && self.parts(id, length, depth + 1)
                        }
                    };
                }
                bad
            }
        };
        self.bad.insert(list, bad);
        bad
    }

    /// Reads an object that must be of one kind, and notes what is wrong with it.
    fn open<T>(
        &mut self,
        id: ObjectId,
        otherwise: &str,
        decode: fn(&[u8]) -> Option<T>,
    ) -> Option<T> {
        let is_known = match self.contents {
            Contents::InIndex => !self.is_good(id),
            Contents::NotKnownDamaged => self.problems.contains_key(&id),
        };
        if is_known {
            return None;
        }
        let problem = match self.trees.store().get(id) {
            Ok(bytes) => match decode(&bytes) {
                Some(decoded) => return Some(decoded),
                None => otherwise.to_owned(),
            },
            Err(error) => error.to_string(),
        };
        self.problems.insert(id, problem);
        None
    }

    /// Whether the object is there and has not been found to be damaged.
    fn is_good(&mut self, id: ObjectId) -> bool {
        if self.problems.contains_key(&id) {
            return false;
        }
        let store = self.trees.store();
        let problem = match self.contents {
            Contents::NotKnownDamaged if store.is_damaged(id) => "it is damaged".to_owned(),
            Contents::NotKnownDamaged => return true,
            Contents::InIndex => match store.contains(id) {
                Ok(true) => return true,
                Ok(false) => "it is missing".to_owned(),
                Err(error) => error.to_string(),
            },
        };
        self.problems.insert(id, problem);
        false
    }

    /// The objects with problems beneath a root that has been walked, and the paths they are at.
    pub fn paths(&self, root: RootId) -> Vec<(ObjectId, VaultPath)> {
        let mut found = Vec::new();
        let top = VaultPath::root();
        if self.problems.contains_key(&root.object()) {
            return vec![(root.object(), top)];
        }
        let bytes = self.trees.store().get(root.object());
        let Some(record) = bytes.ok().and_then(|bytes| codec::decode_root(&bytes)) else {
            return found;
        };
        let links = record.links.filter(|id| self.problems.contains_key(id));
        found.extend(links.map(|id| (id, top.clone())));
        if let Kind::Directory { tree, .. } = record.top.kind {
            self.paths_in(tree.object(), &mut found);
        }
        found
    }

    fn paths_in(&self, top: ObjectId, found: &mut Vec<(ObjectId, VaultPath)>) {
        let mut ahead = vec![(top, VaultPath::root())];
        while let Some((id, path)) = ahead.pop() {
            if self.problems.contains_key(&id) {
                found.push((id, path));
                continue;
            }
            if self.bad.get(&id) != Some(&true) {
                continue;
            }
            let bytes = self.trees.store().get(id);
            match bytes.ok().and_then(|bytes| codec::decode_node(&bytes)) {
                None => {}
                Some(Node::Branch { children, .. }) => {
                    ahead.extend(children.iter().map(|child| (child.id, path.clone())));
                }
                Some(Node::Leaf(items)) => {
                    for item in items {
                        let path = path.child(&item.name);
                        match item.entry.kind {
                            Kind::Directory { tree, .. } => ahead.push((tree.object(), path)),
                            Kind::File { content, .. } => self.paths_of(content, &path, found),
                            Kind::Symlink { .. } | Kind::Fifo => {}
                        }
                    }
                }
            }
        }
    }

    fn paths_of(&self, content: Content, path: &VaultPath, found: &mut Vec<(ObjectId, VaultPath)>) {
        let (Content::Object(id) | Content::Chunks(id)) = content;
        if self.problems.contains_key(&id) {
            found.push((id, path.clone()));
        }
        if let Content::Chunks(list) = content {
            let (mut ahead, mut seen) = (vec![list], HashSet::new());
            while let Some(list) = ahead.pop() {
                if !seen.insert(list) {
                    continue;
                }
                // A list that cannot be read has been named where it stands.
                for part in self.trees.parts_of(list).unwrap_or_default() {
                    let id = match part {
                        Part::Hole { .. } => continue,
                        Part::Chunk { id, .. } => id,
                        Part::List { id, .. } => {
                            ahead.push(id);
                            id
                        }
                    };
                    if self.problems.contains_key(&id) {
                        found.push((id, path.clone()));
                    }
                }
            }
        }
    }
}
