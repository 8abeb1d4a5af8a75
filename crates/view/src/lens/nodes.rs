//! The nodes that the kernel knows: which number means which entry, and how many references there are.
//!
//! A number is a hash of what it means, so it is the same for every daemon. A file is keyed by its path and whole entry:
//! forks that share the entry share the page cache, and an entry with any difference is another node. Hard links of one
//! file share a node. Directories are keyed by their root, so that roots never share them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use avfs_vault::{Content, Entry, Kind, Meta, Root, RootId, TreeId};
use blake3::Hasher;

/// The lens's own top directory.
pub const TOP: u64 = 1;

/// The place of a directory: its root and the hash of its path.
#[derive(Clone)]
pub struct LensDirectory {
    pub id: RootId,
    pub root: Arc<Root>,
    pub path: [u8; 16],
}

/// What a node can be.
#[derive(Clone)]
pub enum Node {
    Directory {
        place: LensDirectory,
        tree: TreeId,
        meta: Arc<Meta>,
    },
    Leaf {
        entry: Arc<Entry>,
        links: u32,
    },
}

#[derive(Default)]
pub struct Nodes {
    table: Mutex<HashMap<u64, (Node, u64)>>,
}

impl Nodes {
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn get(&self, ino: u64) -> Option<Node> {
        self.lock().get(&ino).map(|(node, _)| node.clone())
    }

    /// Counts one more reference of the kernel to `ino`.
    pub fn hand_out(&self, ino: u64, node: Node) {
        self.lock().entry(ino).or_insert((node, 0)).1 += 1;
    }

    /// The kernel dropped `count` references.
    pub fn forget(&self, ino: u64, count: u64) {
        let mut table = self.lock();
        if let Some((_, held)) = table.get_mut(&ino) {
            *held = held.saturating_sub(count);
            if *held == 0 {
                table.remove(&ino);
            }
        }
    }

    /// A hash table does not shrink by itself.
    pub fn shrink(&self) {
        self.lock().shrink_to_fit();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (Node, u64)>> {
        self.table.lock().expect("no holder of this lock panics")
    }
}

/// The highest bit of a number. Overlayfs uses the three above it to tell the filesystems of its layers apart
/// (`xino=on`).
const MARK: u64 = 1 << 60;

/// The place of the top directory of a root.
pub fn top_place(id: RootId, root: Arc<Root>) -> LensDirectory {
    LensDirectory {
        id,
        root,
        path: [0; 16],
    }
}

/// The number and node of `entry`, found as `name` in the directory at `place`.
pub fn node_of(place: &LensDirectory, name: &[u8], entry: Entry) -> (u64, Node) {
    let path = child_path(&place.path, name);
    let Entry { kind, meta } = entry;
    if let Kind::Directory { tree, .. } = kind {
        let place = LensDirectory {
            id: place.id,
            root: place.root.clone(),
            path,
        };
        return (
            directory_ino(&place),
            Node::Directory {
                place,
                tree,
                meta: Arc::new(meta),
            },
        );
    }
    let links = match kind {
        Kind::File {
            link: Some(link), ..
        } => place.root.link_count(link).max(1),
        _ => 1,
    };
    let entry = Entry { kind, meta };
    (
        leaf_ino(&path, &entry, links),
        Node::Leaf {
            entry: Arc::new(entry),
            links,
        },
    )
}

/// The number of the directory at `place`.
pub fn directory_ino(place: &LensDirectory) -> u64 {
    let mut hasher = Hasher::new();
    hasher.update(b"directory");
    hasher.update(place.id.object().as_bytes());
    hasher.update(&place.path);
    number(&hasher)
}

fn leaf_ino(path: &[u8; 16], entry: &Entry, links: u32) -> u64 {
    let mut hasher = Hasher::new();
    match &entry.kind {
        Kind::File {
            content,
            size,
            link,
        } => {
            match link {
                Some(link) => hasher.update(b"link").update(link.as_bytes()),
                None => hasher.update(b"file").update(path),
            };
            let (shape, id) = match content {
                Content::Object(id) => (0u8, id),
                Content::Chunks(id) => (1u8, id),
            };
            hasher
                .update(&[shape])
                .update(id.as_bytes())
                .update(&size.to_le_bytes());
        }
        Kind::Symlink { target } => {
            hasher.update(b"symlink").update(path).update(target);
        }
        Kind::Fifo => {
            hasher.update(b"fifo").update(path);
        }
        Kind::Directory { .. } => unreachable!("directories are numbered by their place"),
    }
    hash_meta(&mut hasher, &entry.meta);
    hasher.update(&links.to_le_bytes());
    number(&hasher)
}

fn hash_meta(hasher: &mut Hasher, meta: &Meta) {
    hasher.update(&meta.mode.to_le_bytes());
    for time in [meta.mtime, meta.ctime] {
        hasher
            .update(&time.secs.to_le_bytes())
            .update(&time.nanos.to_le_bytes());
    }
    for (name, value) in &meta.xattrs {
        hasher
            .update(&(name.len() as u64).to_le_bytes())
            .update(name);
        hasher
            .update(&(value.len() as u64).to_le_bytes())
            .update(value);
    }
}

fn child_path(parent: &[u8; 16], name: &[u8]) -> [u8; 16] {
    let mut hasher = Hasher::new();
    hasher.update(parent).update(name);
    let mut path = [0; 16];
    path.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    path
}

/// Never 0 (no node) nor [`TOP`], because [`MARK`] is always set.
fn number(hasher: &Hasher) -> u64 {
    let hash = hasher.finalize();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(bytes) & (MARK - 1) | MARK
}
