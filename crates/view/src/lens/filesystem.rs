//! The lens as a FUSE filesystem: requests of the kernel, answered from trees.

use std::sync::Arc;

use avfs_fuse::{
    FileAttr, FileHandle, Filesystem, Fill, Io, Listing as Names, ListingPlus, Name, Statistics,
};
use avfs_vault::{Entry, Kind, Meta, RootId, Trees};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::nodes::{self, LensDirectory, Node, TOP};
use super::{Listing, Owner, Shared, Xattrs};
use crate::shown::{self, Seen};

/// Cached listings, so that reading a large directory in many requests decodes it once.
const LISTINGS_MAX: usize = 8;

pub struct LensFilesystem {
    shared: Arc<Shared>,
    trees: Trees,
    owner: Owner,
    xattrs: Xattrs,
}

impl LensFilesystem {
    pub fn new(shared: Arc<Shared>, trees: Trees, owner: Owner, xattrs: Xattrs) -> Self {
        LensFilesystem {
            shared,
            trees,
            owner,
            xattrs,
        }
    }

    fn node(&self, number: u64) -> Io<Node> {
        self.shared.nodes.get(number).ok_or(Errno::STALE)
    }

    fn top_child(&self, name: &[u8]) -> Io<(u64, Node)> {
        let id: RootId = std::str::from_utf8(name)
            .ok()
            .and_then(|name| name.parse().ok())
            .ok_or(Errno::NOENT)?;
        if !self.shared.is_open(id) {
            return Err(Errno::NOENT);
        }
        let root = self.trees.root(id).map_err(|_| Errno::IO)?;
        let Kind::Directory { tree, .. } = root.top.kind else {
            return Err(Errno::IO);
        };
        let meta = Arc::new(root.top.meta.clone());
        let place = nodes::top_place(id, root);
        Ok((
            nodes::directory_ino(&place),
            Node::Directory { place, tree, meta },
        ))
    }

    fn child(&self, Name { parent, name }: Name<'_>) -> Io<Option<(u64, Node)>> {
        let Node::Directory { place, tree, .. } = self.node(parent)? else {
            return Err(Errno::NOTDIR);
        };
        let entry = self.trees.child(tree, name).map_err(|_| Errno::IO)?;
        Ok(entry.map(|entry| nodes::node_of(&place, name, entry)))
    }

    fn listing(&self, number: u64) -> Io<(LensDirectory, Listing)> {
        let Node::Directory { place, tree, .. } = self.node(number)? else {
            return Err(Errno::NOTDIR);
        };
        let mut listings = self.shared.lock_listings();
        if let Some((_, listing)) = listings.iter().find(|(held, _)| *held == number) {
            return Ok((place, listing.clone()));
        }
        let listing: Listing = Arc::new(self.trees.list(tree).map_err(|_| Errno::IO)?);
        if listing.len() > 64 {
            if listings.len() == LISTINGS_MAX {
                listings.pop_front();
            }
            listings.push_back((number, listing.clone()));
        }
        Ok((place, listing))
    }

    fn attr(&self, number: u64, node: &Node) -> FileAttr {
        type Told<'a> = (&'a Meta, FileType, u64, u64, u32);
        let (meta, kind, size, data, links): Told<'_> = match node {
            Node::Directory { meta, .. } => (meta, FileType::Directory, 4096, 4096, 2),
            Node::Leaf { entry, links } => {
                let kind = shown::kind_of_stored(entry);
                let data = shown::data_of_stored(&self.trees, entry);
                (&entry.meta, kind, entry.size(), data, *links)
            }
        };
        let seen = Seen {
            number,
            kind,
            size,
            data,
            links,
            owner: self.owner,
        };
        shown::attr_of_stored(seen, meta)
    }

    /// Passes the entries of a directory from position `offset` on to `add`, until that is full.
    fn each_name(
        &self,
        number: u64,
        offset: u64,
        mut add: impl FnMut(Named<'_>) -> Fill,
    ) -> Io<()> {
        if number == TOP {
            return Ok(());
        }
        let (place, listing) = self.listing(number)?;
        for (index, name) in DOTS.into_iter().enumerate().skip(offset as usize) {
            let named = Named {
                next: index as u64 + 1,
                name,
                attr: shown::bare_directory(number, self.owner),
                node: None,
            };
            if add(named) == Fill::Full {
                return Ok(());
            }
        }
        for (index, (name, entry)) in after_dots(&listing, offset) {
            let (number, node) = nodes::node_of(&place, name, entry.clone());
            let named = Named {
                next: index + 1,
                name,
                attr: self.attr(number, &node),
                node: Some(node),
            };
            if add(named) == Fill::Full {
                break;
            }
        }
        Ok(())
    }

    fn meta(&self, number: u64) -> Io<Meta> {
        match self.node(number)? {
            Node::Directory { meta, .. } => Ok((*meta).clone()),
            Node::Leaf { entry, .. } => Ok(entry.meta.clone()),
        }
    }
}

impl Filesystem for LensFilesystem {
    fn lookup(&self, name: Name<'_>) -> Io<Option<FileAttr>> {
        let found = if name.parent == TOP {
            Some(self.top_child(name.name)?)
        } else {
            self.child(name)?
        };
        Ok(found.map(|(number, node)| {
            let attr = self.attr(number, &node);
            self.shared.nodes.hand_out(number, node);
            attr
        }))
    }

    fn forget(&self, node: u64, times: u64) {
        self.shared.nodes.forget(node, times);
    }

    fn getattr(&self, node: u64) -> Io<FileAttr> {
        if node == TOP {
            return Ok(shown::bare_directory(TOP, self.owner));
        }
        Ok(self.attr(node, &self.node(node)?))
    }

    fn readlink(&self, node: u64) -> Io<Vec<u8>> {
        match self.node(node)? {
            Node::Leaf { entry, .. } => match &entry.kind {
                Kind::Symlink { target } => Ok(target.clone()),
                _ => Err(Errno::INVAL),
            },
            Node::Directory { .. } => Err(Errno::INVAL),
        }
    }

    fn read(&self, node: u64, _handle: FileHandle, offset: u64, size: u32) -> Io<Vec<u8>> {
        let Node::Leaf { entry, .. } = self.node(node)? else {
            return Err(Errno::ISDIR);
        };
        shown::read(&self.trees, &entry, offset, size)
    }

    /// Overlayfs uses SEEK_DATA to copy a file up.
    fn lseek(&self, node: u64, _handle: FileHandle, offset: u64, whence: u32) -> Io<u64> {
        match self.node(node)? {
            Node::Leaf { entry, .. } => shown::seek(&self.trees, &entry, offset, whence),
            Node::Directory { .. } => Err(Errno::ISDIR),
        }
    }

    fn readdir(&self, node: u64, _handle: FileHandle, after: u64, into: &mut Names) -> Io<()> {
        self.each_name(node, after, |named| {
            let Named { attr, name, .. } = named;
            into.add(named.next, name, attr.number, attr.kind)
        })
    }

    fn readdirplus(
        &self,
        node: u64,
        _handle: FileHandle,
        after: u64,
        into: &mut ListingPlus,
    ) -> Io<()> {
        self.each_name(node, after, |named| {
            let fill = into.add(named.next, named.name, &named.attr);
            // The kernel takes no reference to `.` and `..`, so they are not looked up.
            if let (Some(node), Fill::Added) = (named.node, fill) {
                self.shared.nodes.hand_out(named.attr.number, node);
            }
            fill
        })
    }

    fn statfs(&self) -> Io<Statistics> {
        Ok(Statistics {
            block: 4096,
            ..Statistics::default()
        })
    }

    fn getxattr(&self, node: u64, name: &[u8]) -> Io<Vec<u8>> {
        // After ENOSYS the kernel does not ask again; overlayfs would otherwise cause a request at every lookup.
        if self.xattrs == Xattrs::Absent {
            return Err(Errno::NOSYS);
        }
        let meta = self.meta(node)?;
        let value = meta.xattrs.get(name).filter(|_| is_shown(name));
        value.map(<[u8]>::to_vec).ok_or(Errno::NODATA)
    }

    /// Answered even if there are none: tools that copy attributes list them, and few of them expect EOPNOTSUPP from a
    /// file that can have attributes.
    fn listxattr(&self, node: u64) -> Io<Vec<u8>> {
        let meta = self.meta(node)?;
        let names = meta.xattrs.keys().filter(|name| is_shown(name));
        Ok(shown::name_list(names))
    }
}

/// One entry of a listing.
struct Named<'a> {
    /// The position after it.
    next: u64,
    name: &'a [u8],
    attr: FileAttr,
    /// `None` for `.` and `..`.
    node: Option<Node>,
}

const DOTS: [&[u8]; 2] = [b".", b".."];

/// The entries from position `offset` on; `.` and `..` have the first two positions.
fn after_dots(
    listing: &[(Vec<u8>, Entry)],
    offset: u64,
) -> impl Iterator<Item = (u64, &(Vec<u8>, Entry))> {
    let skipped = (offset as usize).saturating_sub(DOTS.len());
    listing
        .iter()
        .enumerate()
        .skip(skipped)
        .map(|(index, item)| ((index + DOTS.len()) as u64, item))
}

/// Overlayfs would interpret attributes of these names.
fn is_shown(name: &[u8]) -> bool {
    !name.starts_with(b"trusted.") && !name.starts_with(b"user.overlay.")
}
