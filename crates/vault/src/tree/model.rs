//! What a tree is made of: entries, their kinds and metadata, and the root above them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use avfs_store::ObjectId;

use crate::{TreeId, VaultPath, XattrMap};

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    pub meta: Meta,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Names with the same `link` are one file.
    File {
        content: Content,
        size: u64,
        link: Option<LinkId>,
    },
    /// The totals are of the whole subtree: every name that is no directory, and all file sizes.
    Directory {
        tree: TreeId,
        files: u64,
        bytes: u64,
    },
    Symlink {
        target: Vec<u8>,
    },
    Fifo,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The 0o7777 bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime: Time,
    pub ctime: Time,
    pub xattrs: XattrMap,
}

impl Entry {
    /// An empty directory.
    pub fn directory(mode: u32, time: Time) -> Entry {
        let kind = Kind::Directory {
            tree: TreeId::EMPTY,
            files: 0,
            bytes: 0,
        };
        Entry {
            kind,
            meta: Meta::new(mode, time),
        }
    }

    pub fn file(content: Content, size: u64, meta: Meta) -> Entry {
        Entry {
            kind: Kind::File {
                content,
                size,
                link: None,
            },
            meta,
        }
    }

    pub fn symlink(target: &[u8], time: Time) -> Entry {
        let kind = Kind::Symlink {
            target: target.to_vec(),
        };
        Entry {
            kind,
            meta: Meta::new(0o777, time),
        }
    }

    pub fn is_dir(&self) -> bool {
        matches!(self.kind, Kind::Directory { .. })
    }

    pub fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File { .. })
    }

    pub fn is_symlink(&self) -> bool {
        matches!(self.kind, Kind::Symlink { .. })
    }

    /// What `stat` would say: bytes of a file, length of a symlink's target, 0 otherwise.
    pub fn size(&self) -> u64 {
        match &self.kind {
            Kind::File { size, .. } => *size,
            Kind::Symlink { target } => target.len() as u64,
            Kind::Directory { .. } | Kind::Fifo => 0,
        }
    }

    pub fn link(&self) -> Option<LinkId> {
        match self.kind {
            Kind::File { link, .. } => link,
            _ => None,
        }
    }
}

impl Meta {
    /// Owned by root, both times the same, no xattrs.
    pub fn new(mode: u32, time: Time) -> Meta {
        Meta {
            mode,
            uid: 0,
            gid: 0,
            mtime: time,
            ctime: time,
            xattrs: XattrMap::new(),
        }
    }
}

/// Nanoseconds since the epoch, which may lie before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    pub secs: i64,
    pub nanos: u32,
}

impl Time {
    pub const EPOCH: Time = Time { secs: 0, nanos: 0 };

    pub fn now() -> Time {
        // A clock before 1970 is broken beyond what a timestamp could tell.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Time {
            secs: since.as_secs() as i64,
            nanos: since.subsec_nanos(),
        }
    }
}

/// Where a file's bytes are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    Object(ObjectId),
    /// An object that lists (object, length) in order.
    Chunks(ObjectId),
}

impl Content {
    /// Of a file of size 0: the hash of no bytes. It is never stored.
    pub const EMPTY: Content = Content::Object(ObjectId::from_bytes([
        0xaf, 0x13, 0x49, 0xb9, 0xf5, 0xf9, 0xa1, 0xa6, 0xa0, 0x40, 0x4d, 0xea, 0x36, 0xdc, 0xc9,
        0x49, 0x9b, 0xcb, 0x25, 0xc9, 0xad, 0xc1, 0x12, 0xb7, 0xcc, 0x9a, 0x93, 0xca, 0xe4, 0x1f,
        0x32, 0x62,
    ]));
}

/// Ties the names of one hard-linked file together.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId([u8; 16]);

impl LinkId {
    /// Derived from the path, so that equal content has equal roots.
    pub fn of(path: &VaultPath) -> LinkId {
        LinkId::hash(path.as_bytes())
    }

    pub(crate) fn hash(bytes: &[u8]) -> LinkId {
        let hash = blake3::hash(bytes);
        let (head, _) = hash
            .as_bytes()
            .split_first_chunk()
            .expect("a hash has 32 bytes");
        LinkId(*head)
    }

    pub const fn from_bytes(bytes: [u8; 16]) -> LinkId {
        LinkId(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The top of a vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Always a directory.
    pub top: Entry,
    /// Whether any entry, the top included, has extended attributes.
    pub has_xattrs: bool,
    /// Every hard-linked file with all its names, two or more.
    pub links: BTreeMap<LinkId, BTreeSet<VaultPath>>,
}

impl Root {
    pub fn tree(&self) -> TreeId {
        self.totals().0
    }

    /// Names that are no directories.
    pub fn files(&self) -> u64 {
        self.totals().1
    }

    /// The sum of all file sizes, each name counted.
    pub fn bytes(&self) -> u64 {
        self.totals().2
    }

    /// How many names the file has: what `st_nlink` should say.
    pub fn link_count(&self, link: LinkId) -> u32 {
        self.links.get(&link).map_or(1, |names| names.len() as u32)
    }

    fn totals(&self) -> (TreeId, u64, u64) {
        match self.top.kind {
            Kind::Directory { tree, files, bytes } => (tree, files, bytes),
            _ => (TreeId::EMPTY, 0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_content_is_the_hash_of_nothing() {
        assert_eq!(Content::EMPTY, Content::Object(ObjectId::of(b"")));
    }

    #[test]
    fn a_link_id_is_shown_as_digits() {
        assert_eq!(LinkId::of(&VaultPath::root()).to_string().len(), 32);
    }
}
