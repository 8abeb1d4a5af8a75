//! Who works in a view: commands in a sandbox, or the host's programs through a mount.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use avfs_sandbox::Sandbox;
use avfs_vault::VaultId;
use avfs_view::Quiet;

use crate::live::mounts::{HostMount, room};
use crate::runtime::Runtime;
use crate::{Error, Result};

pub(crate) enum ViewBackend {
    Sandbox(Arc<Sandbox>),
    Mount(HostMount),
}

impl ViewBackend {
    pub fn is(&self, other: &Arc<Sandbox>) -> bool {
        matches!(self, ViewBackend::Sandbox(sandbox) if Arc::ptr_eq(sandbox, other))
    }

    pub fn is_mount(&self) -> bool {
        matches!(self, ViewBackend::Mount(_))
    }

    pub fn is_alive(&self) -> bool {
        match self {
            ViewBackend::Sandbox(sandbox) => sandbox.is_alive(),
            ViewBackend::Mount(mount) => mount.is_alive(),
        }
    }

    /// The top of what is shown, as a mere path, to be let go of soon.
    pub fn top(&self) -> Result<OwnedFd> {
        match self {
            ViewBackend::Sandbox(sandbox) => {
                let copied = sandbox.top().try_clone_to_owned();
                copied.map_err(Error::io("the sandbox's top"))
            }
            ViewBackend::Mount(mount) => mount.top(),
        }
    }

    /// Holds writers still, where that can be done.
    pub fn quiesce(&self) -> Result<Option<Quiet<'_>>> {
        match self {
            ViewBackend::Sandbox(_) => Ok(None),
            ViewBackend::Mount(mount) => mount.quiesce(),
        }
    }

    /// Has a mount know what the quota leaves after a commit.
    pub fn set_room(&self, runtime: &Runtime, vault: VaultId) -> Result<()> {
        if let ViewBackend::Mount(mount) = self {
            mount.set_room(room(runtime, &runtime.inner.vaults.by_id(vault)?)?);
        }
        Ok(())
    }

    /// Ends whoever works in it.
    pub fn end(&self) {
        match self {
            ViewBackend::Sandbox(sandbox) => sandbox.kill(),
            ViewBackend::Mount(mount) => mount.take_away(),
        }
    }
}
