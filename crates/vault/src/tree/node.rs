//! The nodes a directory is stored as: one leaf while it is small, a search tree above that.

use avfs_store::ObjectId;

use crate::{Entry, Kind};

/// What an entry or a subtree has somewhere in it, so that whole subtrees can be left unread.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub xattrs: bool,
    pub links: bool,
}

impl Flags {
    pub fn or(self, other: Flags) -> Flags {
        Flags {
            xattrs: self.xattrs || other.xattrs,
            links: self.links || other.links,
        }
    }

    pub fn bits(self) -> u8 {
        u8::from(self.xattrs) | u8::from(self.links) << 1
    }

    pub fn from_bits(bits: u8) -> Option<Flags> {
        (bits < 4).then_some(Flags {
            xattrs: bits & 1 != 0,
            links: bits & 2 != 0,
        })
    }
}

/// One name in a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub name: Vec<u8>,
    pub entry: Entry,
    /// Of what lies beneath a directory; nothing for everything else.
    pub beneath: Flags,
}

/// One node beneath a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// The last name in it.
    pub last: Vec<u8>,
    pub id: ObjectId,
    pub summary: Summary,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Leaf(Vec<Item>),
    /// `level` is 1 above leaves, 2 above those, and so on.
    Branch {
        level: u8,
        children: Vec<Child>,
    },
}

/// What a node adds up to.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Names in this directory alone.
    pub entries: u64,
    /// As in `Kind::Directory`: of the whole subtree.
    pub files: u64,
    pub bytes: u64,
    pub flags: Flags,
}

impl Summary {
    pub fn add(self, other: Summary) -> Summary {
        Summary {
            entries: self.entries + other.entries,
            // Saturating: a damaged or hostile tree must not bring the process down.
            files: self.files.saturating_add(other.files),
            bytes: self.bytes.saturating_add(other.bytes),
            flags: self.flags.or(other.flags),
        }
    }
}

impl Item {
    pub fn summary(&self) -> Summary {
        let own = Flags {
            xattrs: !self.entry.meta.xattrs.is_empty(),
            links: self.entry.link().is_some(),
        };
        let (files, bytes) = match self.entry.kind {
            Kind::Directory { files, bytes, .. } => (files, bytes),
            Kind::File { size, .. } => (1, size),
            Kind::Symlink { .. } | Kind::Fifo => (1, 0),
        };
        Summary {
            entries: 1,
            files,
            bytes,
            flags: own.or(self.beneath),
        }
    }

    /// Roughly what it takes in memory, for the cache; what it shares with the one before counts there.
    fn weight(&self, before: Option<&Item>) -> usize {
        let xattrs = &self.entry.meta.xattrs;
        let is_shared = before.is_some_and(|it| it.entry.meta.xattrs.is_shared_with(xattrs));
        let xattrs = if is_shared { 0 } else { xattrs.weight() };
        let target = match &self.entry.kind {
            Kind::Symlink { target } => target.len(),
            _ => 0,
        };
        size_of::<Item>() + self.name.len() + 16 + xattrs + target
    }
}

impl Node {
    pub fn level(&self) -> u8 {
        match self {
            Node::Leaf(_) => 0,
            Node::Branch { level, .. } => *level,
        }
    }

    pub fn summary(&self) -> Summary {
        match self {
            Node::Leaf(items) => sum(items.iter().map(Item::summary)),
            Node::Branch { children, .. } => sum(children.iter().map(|child| child.summary)),
        }
    }

    pub fn last_name(&self) -> Option<&[u8]> {
        match self {
            Node::Leaf(items) => items.last().map(|item| &item.name[..]),
            Node::Branch { children, .. } => children.last().map(|child| &child.last[..]),
        }
    }

    pub fn weight(&self) -> usize {
        match self {
            Node::Leaf(items) => {
                let before = std::iter::once(None).chain(items.iter().map(Some));
                let items = items.iter().zip(before);
                items
                    .map(|(item, before)| item.weight(before))
                    .sum::<usize>()
                    + 64
            }
            Node::Branch { children, .. } => {
                let names: usize = children.iter().map(|child| child.last.len()).sum();
                children.len() * (size_of::<Child>() + 16) + names + 64
            }
        }
    }
}

fn sum(parts: impl Iterator<Item = Summary>) -> Summary {
    parts.fold(Summary::default(), Summary::add)
}
