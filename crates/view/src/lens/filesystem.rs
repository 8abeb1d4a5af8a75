//! Kernel requests in, tree reads out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use avfs_vault::{Entry, Kind, Meta, RootId, Trees};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};

use super::nodes::{self, Node, Place, TOP};
use super::{Listing, Owner, Shared, Xattrs};
use crate::shown::{self, Seen};

/// What is shown never changes, so what the kernel caches never expires.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// Which roots are open does change.
const NOT_AT_ALL: Duration = Duration::ZERO;
const GENERATION: Generation = Generation(0);
/// Listings kept, so that reading a large directory in many requests decodes it once.
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

    fn node(&self, ino: INodeNo) -> Result<Node, Errno> {
        self.shared.nodes.get(ino.0).ok_or(Errno::ESTALE)
    }

    fn top_child(&self, name: &OsStr) -> Result<(u64, Node), Errno> {
        let id: RootId = name
            .to_str()
            .and_then(|name| name.parse().ok())
            .ok_or(Errno::ENOENT)?;
        if !self.shared.is_open(id) {
            return Err(Errno::ENOENT);
        }
        let root = self.trees.root(id).map_err(|_| Errno::EIO)?;
        let Kind::Directory { tree, .. } = root.top.kind else {
            return Err(Errno::EIO);
        };
        let meta = Arc::new(root.top.meta.clone());
        let place = nodes::top_place(id, root);
        Ok((
            nodes::directory_ino(&place),
            Node::Directory { place, tree, meta },
        ))
    }

    fn child(&self, parent: INodeNo, name: &OsStr) -> Result<Option<(u64, Node)>, Errno> {
        let Node::Directory { place, tree, .. } = self.node(parent)? else {
            return Err(Errno::ENOTDIR);
        };
        let entry = self
            .trees
            .child(tree, name.as_bytes())
            .map_err(|_| Errno::EIO)?;
        Ok(entry.map(|entry| nodes::node_of(&place, name.as_bytes(), entry)))
    }

    fn listing(&self, ino: INodeNo) -> Result<(Place, Listing), Errno> {
        let Node::Directory { place, tree, .. } = self.node(ino)? else {
            return Err(Errno::ENOTDIR);
        };
        let mut listings = self.shared.lock_listings();
        if let Some((_, listing)) = listings.iter().find(|(held, _)| *held == ino.0) {
            return Ok((place, listing.clone()));
        }
        let listing: Listing = Arc::new(self.trees.list(tree).map_err(|_| Errno::EIO)?);
        if listing.len() > 64 {
            if listings.len() == LISTINGS_MAX {
                listings.pop_front();
            }
            listings.push_back((ino.0, listing.clone()));
        }
        Ok((place, listing))
    }

    fn attr(&self, number: u64, node: &Node) -> FileAttr {
        let (meta, kind, size, links): (&Meta, FileType, u64, u32) = match node {
            Node::Directory { meta, .. } => (meta, FileType::Directory, 4096, 2),
            Node::Leaf { entry, links } => {
                let kind = shown::kind_of_stored(entry);
                (&entry.meta, kind, entry.size(), *links)
            }
        };
        let seen = Seen {
            number,
            kind,
            size,
            links,
            owner: self.owner,
        };
        shown::attr_of_stored(seen, meta)
    }

    fn top_attr(&self) -> FileAttr {
        FileAttr {
            ino: INodeNo(TOP),
            kind: FileType::Directory,
            perm: 0o555,
            nlink: 2,
            uid: self.owner.uid,
            gid: self.owner.gid,
            ..shown::nothing()
        }
    }

    /// Offers what is in a directory from position `offset` on, until `add` says that it is full.
    fn each_name(
        &self,
        ino: INodeNo,
        offset: u64,
        mut add: impl FnMut(Named<'_>) -> bool,
    ) -> Result<(), Errno> {
        if ino.0 == TOP {
            return Ok(());
        }
        let (place, listing) = self.listing(ino)?;
        for (index, name) in DOTS.into_iter().enumerate().skip(offset as usize) {
            let attr = FileAttr {
                ino,
                ..self.top_attr()
            };
            let named = Named {
                next: index as u64 + 1,
                name: OsStr::new(name),
                attr,
                node: None,
            };
            if add(named) {
                return Ok(());
            }
        }
        for (index, (name, entry)) in after_dots(&listing, offset) {
            let (number, node) = nodes::node_of(&place, name, entry.clone());
            let named = Named {
                next: index + 1,
                name: OsStr::from_bytes(name),
                attr: self.attr(number, &node),
                node: Some(node),
            };
            if add(named) {
                break;
            }
        }
        Ok(())
    }

    fn meta(&self, ino: INodeNo) -> Result<Meta, Errno> {
        match self.node(ino)? {
            Node::Directory { meta, .. } => Ok((*meta).clone()),
            Node::Leaf { entry, .. } => Ok(entry.meta.clone()),
        }
    }
}

impl Filesystem for LensFilesystem {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let wanted = [
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_NO_OPEN_SUPPORT,
            InitFlags::FUSE_NO_OPENDIR_SUPPORT,
            InitFlags::FUSE_MAX_PAGES,
        ];
        for flag in wanted {
            // Each only saves round trips; an older kernel works without.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_readahead(1 << 20);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = if parent.0 == TOP {
            self.top_child(name).map(Some)
        } else {
            self.child(parent, name)
        };
        match found {
            Ok(Some((ino, node))) => {
                let attr = self.attr(ino, &node);
                self.shared.nodes.hand_out(ino, node);
                reply.entry(&FOREVER, &attr, GENERATION);
            }
            Ok(None) => reply.entry(&FOREVER, &shown::nothing(), GENERATION),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.shared.nodes.forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        if ino.0 == TOP {
            return reply.attr(&NOT_AT_ALL, &self.top_attr());
        }
        match self.node(ino) {
            Ok(node) => reply.attr(&FOREVER, &self.attr(ino.0, &node)),
            Err(errno) => reply.error(errno),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.node(ino) {
            Ok(Node::Leaf { entry, .. }) => match &entry.kind {
                Kind::Symlink { target } => reply.data(target),
                _ => reply.error(Errno::EINVAL),
            },
            Ok(_) => reply.error(Errno::EINVAL),
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // "Not implemented" makes the kernel open and close files without telling us.
        reply.error(Errno::ENOSYS);
    }

    fn opendir(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let entry = match self.node(ino) {
            Ok(Node::Leaf { entry, .. }) => entry,
            Ok(Node::Directory { .. }) => return reply.error(Errno::EISDIR),
            Err(errno) => return reply.error(errno),
        };
        let Kind::File {
            content,
            size: total,
            ..
        } = &entry.kind
        else {
            return reply.error(Errno::EINVAL);
        };
        let len = total.saturating_sub(offset).min(u64::from(size)) as usize;
        if len == 0 {
            return reply.data(&[]);
        }
        match self.trees.read(*content, offset, len) {
            Ok(bytes) => reply.data(&bytes),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.each_name(ino, offset, |named| {
            let Named { next, attr, .. } = named;
            reply.add(attr.ino, next, attr.kind, named.name)
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdirplus(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let listed = self.each_name(ino, offset, |named| {
            let Named { next, attr, .. } = named;
            let full = reply.add(attr.ino, next, named.name, &FOREVER, &attr, GENERATION);
            // The kernel takes no reference to the two dots, so they are not handed out.
            if let Some(node) = named.node.filter(|_| !full) {
                self.shared.nodes.hand_out(attr.ino.0, node);
            }
            full
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        reply.statfs(0, 0, 0, 0, 0, 4096, 255, 4096);
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        // The kernel then asks no more, as overlayfs would have it do at every lookup.
        if self.xattrs == Xattrs::Absent {
            return reply.error(Errno::ENOSYS);
        }
        let value = self.meta(ino).and_then(|mut meta| {
            let value = meta.xattrs.remove(name.as_bytes());
            let value = value.filter(|_| is_shown(name.as_bytes()));
            value.ok_or(Errno::NO_XATTR)
        });
        shown::answer_xattr(value, size, reply);
    }

    /// Answered also where there are none: tools that copy attributes ask for a list, and few of
    /// them expect that a file which can have some says that it cannot.
    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.meta(ino).map(|meta| {
            let names = meta.xattrs.keys();
            shown::name_list(names.filter(|name| is_shown(name)))
        });
        shown::answer_xattr(names, size, reply);
    }
}

/// One name of a directory, as a listing gives it.
struct Named<'a> {
    /// The position after it.
    next: u64,
    name: &'a OsStr,
    attr: FileAttr,
    /// None for the two dots.
    node: Option<Node>,
}

const DOTS: [&str; 2] = [".", ".."];

/// The entries from position `offset` on, where the two dots have the first two positions.
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

/// Overlayfs would take attributes of these names for its own.
fn is_shown(name: &[u8]) -> bool {
    !name.starts_with(b"trusted.") && !name.starts_with(b"user.overlay.")
}
