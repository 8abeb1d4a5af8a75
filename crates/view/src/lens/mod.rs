//! The lens: immutable roots shown as read-only directories `/<root>/…`, which the kernel may cache forever.

mod filesystem;
mod nodes;

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use avfs_fuse::{Features, Notifier, Session, Settings};
use avfs_vault::{Entry, RootId, Trees};

use crate::{Error, Result};
use filesystem::LensFilesystem;
use nodes::{Nodes, TOP};

/// Files and directories are opened without a request, and there are no writes.
const SETTINGS: Settings = Settings {
    features: Features::ASYNC_READ
        .union(Features::READDIRPLUS)
        .union(Features::PARALLEL_DIROPS)
        .union(Features::CACHE_SYMLINKS)
        .union(Features::NO_OPEN)
        .union(Features::NO_OPENDIR)
        .union(Features::MAX_PAGES),
    // The buffer size also bounds how many nodes the kernel can forget in one message.
    max_write: 128 << 10,
    max_background: 16,
    // Two threads on one descriptor: cloning the device would need another open of /dev/fuse.
    threads: 2,
    name: "lens",
};

/// The uid and gid that every entry is shown with, in the lens's user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

/// Whether a lens answers extended attribute calls.
///
/// A lens that does not answers ENOSYS once, and the kernel never asks again: one round trip less per file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Xattrs {
    Served,
    Absent,
}

/// A served FUSE connection. Dropping it does not unmount: the mount belongs to the keeper.
pub struct Lens {
    shared: Arc<Shared>,
    notifier: Notifier,
    xattrs: Xattrs,
    _session: Session,
}

struct Shared {
    open_roots: Mutex<HashMap<RootId, usize>>,
    nodes: Nodes,
    /// Listings of large directories that were read last, by node.
    listings: Mutex<VecDeque<(u64, Listing)>>,
}

type Listing = Arc<Vec<(Vec<u8>, Entry)>>;

impl Lens {
    /// Answers requests on `fuse`, a new /dev/fuse descriptor that is already mounted.
    pub fn serve(fuse: OwnedFd, trees: Trees, owner: Owner, xattrs: Xattrs) -> Result<Lens> {
        let shared = Arc::new(Shared {
            open_roots: Mutex::default(),
            nodes: Nodes::default(),
            listings: Mutex::default(),
        });
        let filesystem = LensFilesystem::new(shared.clone(), trees, owner, xattrs);
        let session = Session::serve(fuse, filesystem, SETTINGS).map_err(Error::Lens)?;
        Ok(Lens {
            shared,
            notifier: session.notifier(),
            xattrs,
            _session: session,
        })
    }

    /// Whether this lens answers extended attribute calls.
    pub fn xattrs(&self) -> Xattrs {
        self.xattrs
    }

    /// Frees the caches.
    pub fn release_caches(&self) {
        self.shared.lock_listings().clear();
        self.shared.nodes.shrink();
    }

    /// How many nodes the kernel holds now.
    pub fn nodes(&self) -> usize {
        self.shared.nodes.len()
    }

    /// Shows `/<root>` until the returned guard is dropped.
    pub fn open(self: &Arc<Self>, root: RootId) -> LensRoot {
        *self.shared.lock_roots().entry(root).or_insert(0) += 1;
        LensRoot {
            lens: self.clone(),
            root,
        }
    }

    fn close(&self, root: RootId) {
        let mut roots = self.shared.lock_roots();
        let Some(count) = roots.get_mut(&root) else {
            return;
        };
        *count -= 1;
        if *count > 0 {
            return;
        }
        roots.remove(&root);
        drop(roots);
        // The kernel drops the whole subtree from its caches and forgets the nodes. If the keeper died before, the connection
        // is closed, and there is nothing to forget.
        self.notifier.forget_name(TOP, root.to_string().as_bytes());
    }
}

/// Keeps one root visible in the lens.
pub struct LensRoot {
    lens: Arc<Lens>,
    root: RootId,
}

impl LensRoot {
    /// Whether this lens shows it.
    pub fn is_of(&self, lens: &Arc<Lens>) -> bool {
        Arc::ptr_eq(&self.lens, lens)
    }

    /// The name of the root's directory in the lens.
    pub fn name(&self) -> String {
        self.root.to_string()
    }
}

impl Drop for LensRoot {
    fn drop(&mut self) {
        self.lens.close(self.root);
    }
}

impl Shared {
    fn lock_listings(&self) -> MutexGuard<'_, VecDeque<(u64, Listing)>> {
        self.listings.lock().expect("no holder of this lock panics")
    }

    fn is_open(&self, root: RootId) -> bool {
        self.lock_roots().contains_key(&root)
    }

    fn lock_roots(&self) -> MutexGuard<'_, HashMap<RootId, usize>> {
        let locked = self.open_roots.lock();
        locked.expect("no holder of this lock panics")
    }
}
