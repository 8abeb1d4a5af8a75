//! The read-write view: a root and its layer served as one FUSE filesystem.
//!
//! Every write goes directly to the layer's upper directory, in the format of overlayfs, so that one commit code serves
//! both. Nothing that was acknowledged to a caller is only in memory.

mod attributes;
mod change;
mod copyup;
mod files;
mod filesystem;
mod gate;
pub(crate) mod host;
mod links;
mod listing;
mod nodes;
mod points;
mod rename;
mod room;
mod view;
mod whole;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use avfs_fuse::{Features, Session, Settings};
use avfs_vault::{RootId, Trees};

use crate::scan::MarkNames;
use crate::scanner::raise_descriptor_limit;
use crate::{Error, Owner, Result};
use filesystem::ViewFilesystem;
pub use gate::Quiet;
pub use points::MountPoints;
use view::View;

/// Without atomic O_TRUNC: the kernel would notice only afterwards that the file is a running program.
const SETTINGS: Settings = Settings {
    features: Features::ASYNC_READ
        .union(Features::ASYNC_DIO)
        .union(Features::BIG_WRITES)
        .union(Features::MAX_PAGES)
        .union(Features::PARALLEL_DIROPS)
        .union(Features::CACHE_SYMLINKS)
        .union(Features::EXPLICIT_INVAL_DATA)
        .union(Features::READDIRPLUS)
        .union(Features::READDIRPLUS_AUTO)
        .union(Features::HANDLE_KILLPRIV_V2),
    max_write: 1 << 20,
    max_background: 64,
    // While some threads copy a large file up, or wait for a commit, others answer. All use one descriptor: cloning the device
    // would need another open of /dev/fuse.
    threads: 8,
    name: "view",
};

/// Whether a read-write view may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadWrite,
    ReadOnly,
}

/// The owners of files in a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// All files belong to the plan's owner, new ones included.
    One,
    /// Stored files belong to the plan's owner, new ones to whoever makes them. `chown` works until the commit, which stores
    /// no owners. Only root can serve this.
    Each,
}

/// What is left of the vault's quota. `None` means no limit.
///
/// The view updates it as files change; below zero only shrinking is allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// Sum of file sizes, every hard link counted.
    pub bytes: Option<i64>,
    /// Names that are not directories.
    pub files: Option<i64>,
    /// The largest size that a file may grow to.
    pub file_bytes: Option<u64>,
}

/// The parts of a view.
pub struct ReadWritePlan {
    pub trees: Trees,
    /// The root below the layer.
    pub base: RootId,
    /// The layer's upper directory; without one, `base` alone is shown, read-only.
    pub upper: Option<OwnedFd>,
    /// The names of overlayfs's attributes that the scanner of this layer reads.
    pub marks: MarkNames,
    /// Names with this prefix are unfinished work: never shown, never committed.
    pub unfinished_prefix: Vec<u8>,
    /// In the host's ids.
    pub owner: Owner,
    pub owners: Owners,
    pub access: Access,
    pub room: Room,
    /// Shown when [`ReadWrite::show_mount_points`] is called.
    pub mount_points: MountPoints,
}

/// A root and its layer, served on a FUSE descriptor.
///
/// Unmount first, then drop: dropping alone answers all further requests with ENOTCONN, but the threads end only with the
/// mount, which belongs to its maker.
pub struct ReadWrite {
    view: Arc<View>,
    session: Session,
}

impl ReadWrite {
    /// Mount options besides `fd`, `rootmode`, `user_id` and `group_id`: the kernel checks all permissions. Views of several
    /// users need `allow_other` too. A view that cannot be written is faster if it is mounted read-only.
    pub const MOUNT_OPTIONS: &str = "default_permissions";

    /// Answers requests on `fuse`, a new /dev/fuse descriptor that is already mounted.
    pub fn serve(fuse: OwnedFd, plan: ReadWritePlan) -> Result<ReadWrite> {
        raise_descriptor_limit();
        let view = Arc::new(View::new(plan)?);
        view.check_upper().map_err(Error::View)?;
        let served = ViewFilesystem::new(view.clone());
        let session = Session::serve(fuse, served, settings(&view)).map_err(Error::View)?;
        // The only time that it is set.
        let _ = view.notifier.set(session.notifier());
        Ok(ReadWrite { view, session })
    }

    /// Blocks all writers until the returned guard is dropped, so that a commit reads one state.
    ///
    /// Meanwhile the caller must read the upper directory, not the mount: waiting writers may occupy all threads. What was
    /// written through mappings before is flushed to the files, and every write changes their times, so that hashes by
    /// timestamp can be trusted.
    pub fn quiesce(&self) -> Result<Quiet<'_>> {
        self.view.flush_mappings();
        Ok(self.view.gate.close())
    }

    /// False once it was unmounted.
    pub fn is_alive(&self) -> bool {
        self.session.is_alive()
    }

    /// Has the directories on which a sandbox mounts, from now on. No listing has them.
    pub fn show_mount_points(&self) {
        self.view.show_points();
    }

    /// How many nodes the kernel holds now.
    pub fn nodes(&self) -> usize {
        self.view.nodes()
    }

    /// What is left of the quota.
    pub fn room(&self) -> Room {
        self.view.room()
    }

    /// Sets what is left of the quota, for example after a commit has counted exactly.
    pub fn set_room(&self, room: Room) {
        self.view.set_room(room);
    }
}

/// An immutable view opens its files without requests.
fn settings(view: &View) -> Settings {
    let mut settings = SETTINGS;
    if view.is_fixed() {
        settings.features |= Features::NO_OPEN | Features::NO_OPENDIR;
    }
    if view.owners == Owners::Each {
        // A sandbox of root's has another user.
        settings.features |= Features::ALLOW_IDMAP;
    }
    settings
}

impl Drop for ReadWrite {
    fn drop(&mut self) {
        self.view.stop();
    }
}

#[cfg(test)]
mod tests;
