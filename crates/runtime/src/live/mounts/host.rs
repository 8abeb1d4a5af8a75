//! One vault shown at a directory of the host: how that is made and unmade.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use avfs_sandbox::onhost::{Audience, InUse, MountAccess};
use avfs_sandbox::{Confinement, OverlayPlan};
use avfs_vault::{Quota, RootId, Vault, VaultName};
use avfs_view::{
    Access, HashCache, Layer, LensRoot, MountPoints, Owners, Quiet, ReadWrite, ReadWritePlan, Room,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::registry::{self, Noted};
use super::{MountDriver, MountInfo};
use crate::live::engine::Engine;
use crate::live::served::{layer_on_host, onhost, open_top};
use crate::live::shape::Shape;
use crate::live::view::{LiveView, remove_in_background};
use crate::live::view_backend::ViewBackend;
use crate::live::view_base::ViewBase;
use crate::owners::this_user;
use crate::runtime::Runtime;
use crate::{Error, Result};

/// What is mounted, and whoever serves it.
pub(crate) struct HostMount {
    pub vault: VaultName,
    pub dir: PathBuf,
    pub autocommit: Option<Duration>,
    /// The kernel's number of the mount: something else may come to lie at the same place.
    id: u64,
    /// The number of its file system, which all its clones have, and nothing else.
    device: u64,
    served: Served,
    noted: Noted,
}

enum Served {
    /// By the kernel, over the lens.
    Overlay,
    Fuse(ReadWrite),
}

/// Where a vault is to be shown, and how.
pub(crate) struct Showing<'a> {
    pub dir: &'a Path,
    pub driver: MountDriver,
    pub autocommit: Option<Duration>,
    pub audience: Audience,
}

impl HostMount {
    /// Whether it is still there: anybody may unmount it without asking us.
    pub fn is_alive(&self) -> bool {
        let there = onhost::mounted_at(&self.dir);
        let there = matches!(there, Ok(Some(mounted)) if mounted.id == self.id);
        there
            && match &self.served {
                Served::Overlay => true,
                Served::Fuse(served) => served.is_alive(),
            }
    }

    /// Why something cannot be while this is mounted.
    pub fn in_the_way(&self) -> Error {
        Error::Mounted {
            vault: self.vault.to_string(),
            dir: self.dir.clone(),
        }
    }

    /// Its top, as a mere path. It must not be kept: a mount that is held cannot be unmounted.
    pub fn top(&self) -> Result<OwnedFd> {
        let opened = open_top(&self.dir);
        let opened =
            opened.map_err(|errno| Error::io(self.dir.display().to_string())(errno.into()))?;
        self.check_is_of_it(&opened)?;
        Ok(opened)
    }

    /// A clone of it for a sandbox, which then has the mount points that the sandbox needs.
    pub fn share(&self, runtime: &Runtime, confinement: Confinement) -> Result<OwnedFd> {
        let Served::Fuse(served) = &self.served else {
            return Err(Error::MountedBesideCommands {
                vault: self.vault.to_string(),
                dir: self.dir.clone(),
            });
        };
        served.show_mount_points();
        let binary = &runtime.inner.config.binary;
        let clone = onhost::clone_mount(binary, &self.dir, confinement)?;
        self.check_is_of_it(&clone)?;
        Ok(clone)
    }

    /// Whether this is the mount's: somebody may have unmounted it, and what lies below is not for commands.
    fn check_is_of_it(&self, top: &OwnedFd) -> Result<()> {
        match rustix::fs::fstat(top) {
            Ok(found) if found.st_dev == self.device => Ok(()),
            _ => Err(Error::NotMounted {
                what: self.dir.display().to_string(),
            }),
        }
    }

    /// Holds all writers for as long as the guard lives, where that is possible.
    pub fn quiesce(&self) -> Result<Option<Quiet<'_>>> {
        match &self.served {
            Served::Overlay => Ok(None),
            Served::Fuse(served) => Ok(Some(served.quiesce()?)),
        }
    }

    /// Tells whoever can heed it how much the vault may still grow.
    pub fn set_room(&self, room: Room) {
        if let Served::Fuse(served) = &self.served {
            served.set_room(room);
        }
    }

    pub fn unmount(&self, in_use: InUse) -> Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        unmount(&self.dir, in_use)
    }

    /// Unmounts it, whoever uses it.
    pub fn take_away(&self) {
        if matches!(onhost::mounted_at(&self.dir), Ok(Some(mounted)) if mounted.id == self.id) {
            registry::take_away(&self.dir);
        }
    }

    /// Unmounts it, if it still is mounted, and then ends whoever served it.
    pub fn end(self) {
        self.take_away();
        drop(self.served);
        self.noted.forget();
    }

    pub fn info(&self, vault: &Vault) -> MountInfo {
        MountInfo {
            id: vault.id,
            vault: vault.name.clone(),
            dir: self.dir.clone(),
            driver: match self.served {
                Served::Overlay => MountDriver::Overlay,
                Served::Fuse(_) => MountDriver::Fuse,
            },
            access: MountAccess::ReadWrite,
            version: vault.version,
            autocommit: self.autocommit,
        }
    }
}

pub(super) fn unmount(dir: &Path, in_use: InUse) -> Result<()> {
    match onhost::unmount(dir, InUse::Refuse) {
        Err(_) if in_use == InUse::Detach => Ok(onhost::unmount(dir, InUse::Detach)?),
        done => done.map_err(|error| busy_or(dir, error)),
    }
}

fn busy_or(dir: &Path, error: avfs_sandbox::Error) -> Error {
    let busy = Errno::BUSY.raw_os_error();
    match error {
        avfs_sandbox::Error::System(fault) if fault.errno == busy => Error::MountInUse {
            dir: dir.to_owned(),
        },
        error => error.into(),
    }
}

/// Shows the vault's head at a directory, with a fresh layer for what is written there. A keeper that dies meanwhile is
/// replaced.
pub(crate) fn open_on_host(
    runtime: &Runtime,
    vault: &Vault,
    showing: &Showing<'_>,
) -> Result<LiveView> {
    let engine = runtime.engine()?;
    match open_by(runtime, engine.clone(), vault, showing) {
        Err(error) if engine.is_why(&error) => open_by(runtime, runtime.engine()?, vault, showing),
        opened => opened,
    }
}

fn open_by(
    runtime: &Runtime,
    engine: Arc<Engine>,
    vault: &Vault,
    showing: &Showing<'_>,
) -> Result<LiveView> {
    let inner = &runtime.inner;
    let hold = inner.vaults.hold(vault.head);
    let layer = layer_on_host(runtime, &engine, vault)?;
    let noted = registry::note(&inner.config.home, showing.dir)?;
    match serve(runtime, &engine, vault, showing, &layer) {
        Ok(((id, device), served, lens, shown)) => {
            let base = ViewBase {
                root: vault.head,
                lens,
                shown,
                _hold: hold,
            };
            let mount = HostMount {
                device,
                vault: vault.name.clone(),
                dir: showing.dir.to_owned(),
                autocommit: showing.autocommit,
                id,
                served,
                noted,
            };
            Ok(LiveView {
                beside: None,
                backend: ViewBackend::Mount(mount),
                network: None,
                base: Arc::new(base),
                layer,
                cache: HashCache::default(),
                entries: 0,
                commits_grown: 0,
                unsaved: true,
                refused: None,
                uncommitted: None,
                shape: Shape::default(),
                engine,
            })
        }
        Err(error) => {
            registry::take_away(showing.dir);
            noted.forget();
            remove_in_background(layer.retire()?, engine);
            Err(error)
        }
    }
}

/// Numbers of the mount and its file system, who serves it, and what it stands on.
type Shown = ((u64, u64), Served, Option<LensRoot>, PathBuf);

fn serve(
    runtime: &Runtime,
    engine: &Engine,
    vault: &Vault,
    showing: &Showing<'_>,
    layer: &Layer,
) -> Result<Shown> {
    let trees = runtime.inner.vaults.trees();
    let dir = showing.dir;
    Ok(match showing.driver {
        MountDriver::Overlay => {
            let (lens, lower) = engine.show_on_host(trees, vault.head)?;
            let mount = engine.keeper.mount_overlay(&OverlayPlan {
                lowers: vec![lower.clone()],
                upper: layer.upper_path(),
                work: layer.work_path(),
            })?;
            onhost::attach(&mount, dir)?;
            (numbers(dir)?, Served::Overlay, lens, lower)
        }
        MountDriver::Fuse => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let upper = rustix::fs::open(layer.upper_path(), flags, Mode::empty())
                .map_err(|errno| Error::io("opening a layer")(errno.into()))?;
            let plan = ReadWritePlan {
                upper: Some(upper),
                unfinished_prefix: layer.token().unwrap_or_default().into(),
                room: room(runtime, vault)?,
                mount_points: runtime.inner.host.mount_points_of_views(),
                ..plan(runtime, engine, vault.head)
            };
            let device = onhost::mount_fuse(dir, MountAccess::ReadWrite, showing.audience)?;
            let served = ReadWrite::serve(device, plan)?;
            (numbers(dir)?, Served::Fuse(served), None, dir.to_owned())
        }
    })
}

/// The kernel's numbers of the mount at `dir` and of its file system.
fn numbers(dir: &Path) -> Result<(u64, u64)> {
    let failed = |errno: Errno| Error::io(dir.display().to_string())(errno.into());
    let found = rustix::fs::stat(dir).map_err(failed)?;
    Ok((mount_id(dir)?, found.st_dev))
}

pub(super) fn mount_id(dir: &Path) -> Result<u64> {
    let mounted = onhost::mounted_at(dir)?.ok_or_else(|| Error::NotMounted {
        what: dir.display().to_string(),
    })?;
    Ok(mounted.id)
}

/// A view of `base` as such, in which everything belongs to this user.
pub(super) fn plan(runtime: &Runtime, engine: &Engine, base: RootId) -> ReadWritePlan {
    ReadWritePlan {
        trees: runtime.inner.vaults.trees().clone(),
        base,
        upper: None,
        marks: engine.marks,
        unfinished_prefix: Vec::new(),
        owner: this_user(),
        owners: match rustix::process::geteuid().is_root() {
            true => Owners::Each,
            false => Owners::One,
        },
        access: Access::ReadWrite,
        room: Room::default(),
        mount_points: MountPoints::default(),
    }
}

/// What the vault's quota leaves.
pub(crate) fn room(runtime: &Runtime, vault: &Vault) -> Result<Room> {
    let Quota {
        bytes,
        files,
        file_bytes,
    } = vault.quota;
    let root = runtime.inner.vaults.trees().root(vault.head)?;
    let left = |limit: Option<u64>, used: u64| {
        limit.map(|limit| {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            limit.saturating_sub(i64::try_from(used).unwrap_or(i64::MAX))
        })
    };
    Ok(Room {
        bytes: left(bytes, root.bytes()),
        files: left(files, root.files()),
        file_bytes,
    })
}
