//! The nodes that the kernel knows, and what each stands for.
//!
//! A number derives from the place in the base, or from the host's inode. It stays when a stored file is copied up, and the
//! node is removed when the kernel has forgotten it.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, OnceLock, Weak};

use avfs_fuse::FileAttr;
use avfs_vault::{Entry, LinkId, Meta, TreeId, VaultPath};
use rustix::fs::FileType;

/// The view's top directory.
pub const TOP: u64 = 1;
/// Numbers that derive from the base have this bit; inodes of the host do not.
const STORED_BIT: u64 = 1 << 63;

/// A directory of the base that shows through.
pub struct Origin {
    /// Its path in the base, wherever it is shown.
    pub path: VaultPath,
    pub tree: TreeId,
    pub meta: Meta,
}

#[derive(Clone)]
pub enum Body {
    /// At least one of the two is set.
    Directory {
        in_upper: bool,
        origin: Option<Arc<Origin>>,
    },
    /// In the base, unchanged. `links` of its names are left.
    Stored { entry: Arc<Entry>, links: u32 },
    /// In the upper, and not a directory.
    Upper { kind: FileType },
}

/// The key by which a node is found again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    Top,
    /// A place in the base, or a hard-linked file there.
    Stored([u8; 16]),
    /// The host's inode.
    Upper(u64),
}

impl Key {
    pub fn of_path(path: &VaultPath) -> Key {
        if path.is_root() {
            return Key::Top;
        }
        let hash = blake3::hash(path.as_bytes());
        let (head, _) = hash
            .as_bytes()
            .split_first_chunk()
            .expect("a hash has 32 bytes");
        Key::Stored(*head)
    }

    pub fn of_link(link: LinkId) -> Key {
        let mut bytes = *link.as_bytes();
        // A link's id is a hash of a path too.
        bytes[0] = !bytes[0];
        Key::Stored(bytes)
    }

    /// Its number, unless another node has that.
    fn number(self) -> u64 {
        match self {
            Key::Top => TOP,
            Key::Stored(hash) => {
                let (head, _) = hash.split_first_chunk().expect("there are 16 bytes");
                u64::from_le_bytes(*head) | STORED_BIT
            }
            // 0 and 1 are reserved, and no filesystem uses them for files.
            Key::Upper(inode) => (inode & !STORED_BIT).max(2),
        }
    }
}

/// One name of a node: its directory and its name there.
#[derive(Clone, PartialEq, Eq)]
pub struct Name {
    pub parent: u64,
    pub name: Vec<u8>,
}

impl From<avfs_fuse::Name<'_>> for Name {
    fn from(name: avfs_fuse::Name<'_>) -> Name {
        Name {
            parent: name.parent,
            name: name.name.to_vec(),
        }
    }
}

/// What all open descriptors of a node share.
#[derive(Default)]
pub struct Opened {
    /// A descriptor of the file in the upper, once it is there.
    pub file: OnceLock<Arc<File>>,
}

pub struct Node {
    pub body: Body,
    pub key: Key,
    /// Known names; a file in the upper may have more.
    pub names: Vec<Name>,
    pub opened: Weak<Opened>,
    /// Its attributes when its last name was removed.
    pub gone: Option<FileAttr>,
    lookups: u64,
}

/// Something found in a directory, without a node yet.
pub struct Found {
    pub key: Key,
    pub body: Body,
    /// If it is in the upper.
    pub stat: Option<rustix::fs::Statx>,
}

pub struct Table {
    nodes: HashMap<u64, Node>,
    keys: HashMap<Key, u64>,
}

impl Table {
    pub fn new(top: Body) -> Table {
        let node = Node {
            body: top,
            key: Key::Top,
            names: Vec::new(),
            opened: Weak::new(),
            gone: None,
            lookups: 1,
        };
        Table {
            nodes: HashMap::from([(TOP, node)]),
            keys: HashMap::from([(Key::Top, TOP)]),
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn get(&self, number: u64) -> Option<&Node> {
        self.nodes.get(&number)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Node> {
        self.nodes.get_mut(&number)
    }

    pub fn by_key(&self, key: Key) -> Option<u64> {
        self.keys.get(&key).copied()
    }

    /// The number that it has, or would get.
    pub fn number(&self, key: Key) -> u64 {
        self.by_key(key).unwrap_or_else(|| key.number())
    }

    /// Counts one more reference of the kernel to what was found as `name`.
    pub fn hand_out(&mut self, found: &Found, name: Name) -> u64 {
        let (number, node) = self.handed_out(found);
        match &node.body {
            // A directory has one name; another one is newer.
            Body::Directory { .. } => node.names = vec![name],
            _ if !node.names.contains(&name) => node.names.push(name),
            _ => {}
        }
        number
    }

    /// Counts the first reference of the kernel to an unnamed file.
    pub fn hand_out_nameless(&mut self, found: &Found) -> u64 {
        self.handed_out(found).0
    }

    fn handed_out(&mut self, found: &Found) -> (u64, &mut Node) {
        let number = match self.by_key(found.key) {
            Some(number) => number,
            None => self.insert(found),
        };
        let node = self.nodes.get_mut(&number).expect("every key has its node");
        node.lookups += 1;
        node.body = found.body.clone();
        (number, node)
    }

    fn insert(&mut self, found: &Found) -> u64 {
        let mut number = found.key.number();
        // The host may reuse an inode number while the kernel still holds the node of a removed file.
        while self.nodes.contains_key(&number) {
            number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(2);
        }
        let node = Node {
            body: found.body.clone(),
            key: found.key,
            names: Vec::new(),
            opened: Weak::new(),
            gone: None,
            lookups: 0,
        };
        self.nodes.insert(number, node);
        self.keys.insert(found.key, number);
        number
    }

    /// The kernel dropped `count` references. True if the node is removed.
    pub fn forget(&mut self, number: u64, count: u64) -> bool {
        let Some(node) = self.nodes.get_mut(&number) else {
            return false;
        };
        node.lookups = node.lookups.saturating_sub(count);
        if node.lookups > 0 || number == TOP {
            return false;
        }
        let key = node.key;
        self.nodes.remove(&number);
        if self.by_key(key) == Some(number) {
            self.keys.remove(&key);
        }
        true
    }

    /// Changes the key of the node.
    pub fn rekey(&mut self, number: u64, key: Key) {
        let Some(node) = self.nodes.get_mut(&number) else {
            return;
        };
        let old = std::mem::replace(&mut node.key, key);
        if self.by_key(old) == Some(number) {
            self.keys.remove(&old);
        }
        self.keys.insert(key, number);
    }

    /// The last name was removed: the key will mean another node from now on.
    pub fn bury(&mut self, number: u64, last: FileAttr) {
        let Some(node) = self.nodes.get_mut(&number) else {
            return;
        };
        node.gone = Some(last);
        node.names.clear();
        let key = node.key;
        if self.by_key(key) == Some(number) {
            self.keys.remove(&key);
        }
    }
}
