//! The read-write view: a root and its layer served as one FUSE filesystem.
//!
//! What is written goes at once into the layer's upper directory, in the format that overlayfs would
//! leave there, so that one commit serves both. Nothing that a caller was told is done is kept in memory.

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
mod rename;
mod room;
mod view;
mod whole;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use avfs_fuse::{Features, Session, Settings};
use avfs_vault::{RootId, Trees, VaultPath};

use crate::scan::MarkNames;
use crate::scanner::raise_descriptor_limit;
use crate::{Error, Owner, Result};
use filesystem::ViewFilesystem;
pub use gate::Quiet;
use view::View;

/// Not truncation while opening: the kernel would find out only afterwards that the file is a program
/// that runs.
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
    // While some copy a large file up, or wait for a commit, others go on answering. All on one descriptor:
    // a clone of the device for each would need /dev/fuse once more.
    threads: 8,
    name: "view",
};

/// Whether a read-write view may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadWrite,
    ReadOnly,
}

/// Whom the files of a view belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// Everything belongs to the plan's owner, new files too, whoever makes them.
    One,
    /// Stored files belong to the plan's owner, new ones to whoever makes them, and `chown` works until
    /// the commit, which keeps no owners. Only root can serve this.
    Each,
}

/// What may still be added before the vault's quota is reached. No number: no limit.
///
/// The view counts along as files come, grow and go; below zero only shrinking is allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// Sum of file sizes, every name counted.
    pub bytes: Option<i64>,
    /// Names that are no directories.
    pub files: Option<i64>,
    /// The largest size that a file may grow to.
    pub file_bytes: Option<u64>,
}

/// What a view is made of.
pub struct ReadWritePlan {
    pub trees: Trees,
    /// What is under the layer.
    pub base: RootId,
    /// The layer's upper directory; without one, `base` alone is shown, and not writable.
    pub upper: Option<OwnedFd>,
    /// The names of marks that the scanner of this layer reads.
    pub marks: MarkNames,
    /// Names that begin so are work that is not finished: never shown, never committed.
    pub unfinished_prefix: Vec<u8>,
    /// In the numbers of the host.
    pub owner: Owner,
    pub owners: Owners,
    pub access: Access,
    pub room: Room,
}

/// A root and its layer, served on a FUSE descriptor.
///
/// Unmount first, then drop: dropping alone answers every further request with ENOTCONN, but the threads
/// end only with the mount, which belongs to whoever made it.
pub struct ReadWrite {
    view: Arc<View>,
    session: Session,
}

impl ReadWrite {
    /// What the mount must be given besides `fd`, `rootmode`, `user_id` and `group_id`: the kernel checks
    /// all permissions. For views of several users `allow_other` is needed too; one that cannot be written
    /// to is faster when mounted read-only.
    pub const MOUNT_OPTIONS: &str = "default_permissions";

    /// Answers requests on `fuse`, a fresh /dev/fuse descriptor that is already mounted somewhere.
    pub fn serve(fuse: OwnedFd, plan: ReadWritePlan) -> Result<ReadWrite> {
        raise_descriptor_limit();
        let view = Arc::new(View::new(plan)?);
        view.check_upper().map_err(Error::View)?;
        let served = ViewFilesystem::new(view.clone());
        let session = Session::serve(fuse, served, settings(&view)).map_err(Error::View)?;
        // The first and only time that it is set.
        let _ = view.notifier.set(session.notifier());
        Ok(ReadWrite { view, session })
    }

    /// Holds all writers until the returned guard is dropped, so that a commit reads one state.
    ///
    /// Meanwhile the caller reads the upper directory, never the mount: writers that wait may keep all
    /// loops busy. What was written through mapped memory before is in the files, and every write moves
    /// their times, so that contents known by their stamps may be trusted.
    pub fn quiesce(&self) -> Result<Quiet<'_>> {
        self.view.flush_mappings();
        Ok(self.view.gate.close())
    }

    /// False once the kernel's side was unmounted.
    pub fn is_alive(&self) -> bool {
        self.session.is_alive()
    }

    /// How many nodes the kernel holds at present.
    pub fn nodes(&self) -> usize {
        self.view.nodes()
    }

    /// Something at or beneath `path` was changed in the upper directory by somebody else.
    pub fn changed(&self, path: &VaultPath) {
        self.view.changed(path);
    }

    /// What is left of the quota.
    pub fn room(&self) -> Room {
        self.view.room()
    }

    /// Replaces what is left of the quota, for example after a commit has counted exactly.
    pub fn set_room(&self, room: Room) {
        self.view.set_room(room);
    }
}

/// A view that nothing ever changes opens its files without asking.
fn settings(view: &View) -> Settings {
    let mut settings = SETTINGS;
    if view.is_fixed() {
        settings.features |= Features::NO_OPEN | Features::NO_OPENDIR;
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
