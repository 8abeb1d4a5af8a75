//! In unit tests, what is in `served.rs` else: no FUSE, no overlay, no process of ours.
//!
//! A view stands on the empty root, and its layer is filled with all that the vault has: so the layer is the directory that shows the
//! vault, plainly. Commands are plain processes that begin in it. A mount on the host is a symbolic link to it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avfs_sandbox::Keeper;
use avfs_vault::{RootId, Trees, Vault};
use avfs_view::{HashCache, Layer, LayerUse, LensRoot, MarkNames, Scanner};
use rustix::fs::{Mode, OFlags};

use crate::Result;
use crate::live::engine::Engine;
use crate::live::layer_commit::make_ready;
use crate::live::view_base::{Beginning, ViewBase};
use crate::retried::Retried;
use crate::runtime::{Config, Runtime};

pub(crate) fn start_keeper(config: &Config) -> Result<Keeper> {
    Ok(avfs_sandbox::plain::keeper(config.runtime_dir.clone())?)
}

pub(crate) fn start_scanner(_: &Keeper, marks: MarkNames, _: Retried) -> Result<Scanner> {
    Ok(avfs_view::in_a_thread(marks)?)
}

/// Nothing is shown but layers.
pub(crate) struct Lenses;

impl Lenses {
    pub fn serve(_: &Keeper, _: &Trees) -> Result<Lenses> {
        Ok(Lenses)
    }

    pub fn release_caches(&self) {}

    pub fn show(&self, _: &Trees, _: RootId) -> Result<(Option<LensRoot>, PathBuf)> {
        Ok((None, PathBuf::from("/nothing")))
    }

    pub fn shows(&self, _: &LensRoot) -> bool {
        false
    }

    pub fn show_on_host(
        &self,
        _: &Keeper,
        trees: &Trees,
        root: RootId,
    ) -> Result<(Option<LensRoot>, PathBuf)> {
        self.show(trees, root)
    }
}

pub(crate) fn begin_at_head(
    runtime: &Runtime,
    engine: &Arc<Engine>,
    vault: &Vault,
) -> Result<Beginning> {
    let trees = runtime.inner.vaults.trees();
    let nothing = trees.empty_root()?;
    let base = Arc::new(ViewBase::at(runtime, engine, nothing)?);
    let mut beginning = Beginning::on(runtime, vault, base)?;
    if vault.head != nothing {
        let all = trees.diff(nothing, vault.head)?;
        let is_head = beginning.lead(runtime, engine, &all)?;
        assert!(is_head, "a filled layer is not the head");
    }
    Ok(beginning)
}

pub(crate) fn layer_on_host(
    runtime: &Runtime,
    engine: &Arc<Engine>,
    vault: &Vault,
) -> Result<Layer> {
    let trees = runtime.inner.vaults.trees();
    let nothing = trees.empty_root()?;
    let top = trees.root(vault.head)?.top.meta.clone();
    let (layers, roots) = (&runtime.inner.layers, (nothing, vault.head));
    let layer = layers.draft(vault.id, roots, &top, LayerUse::Host)?;
    layer.fill(trees, &trees.diff(nothing, vault.head)?, None)?;
    let entries = make_ready(runtime, engine, &layer, &mut HashCache::default())?;
    assert!(entries.is_some(), "a filled layer is not the head");
    Ok(layer)
}

/// The top of a mount on the host, as a mere path.
pub(crate) fn open_top(dir: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(dir, flags, Mode::empty())
}

/// Mounts that are symbolic links.
pub(crate) mod onhost {
    use std::fs;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    use avfs_sandbox::{Confinement, Error, Fault, Result};

    pub use avfs_sandbox::onhost::{Audience, InUse, MountAccess};

    pub struct Mounted {
        pub id: u64,
    }

    impl Mounted {
        pub fn is_ours(&self) -> bool {
            true
        }
    }

    fn failed(what: &str, error: &std::io::Error) -> Error {
        Error::System(Fault {
            what: what.to_owned(),
            errno: error.raw_os_error().unwrap_or_default(),
        })
    }

    pub fn mount_fuse(dir: &Path, _: MountAccess, _: Audience) -> Result<OwnedFd> {
        let no = std::io::Error::from_raw_os_error(libc::ENOSYS);
        Err(failed(&format!("mount {}", dir.display()), &no))
    }

    pub fn clone_mount(_: &Path, dir: &Path, _: Confinement) -> Result<OwnedFd> {
        let no = std::io::Error::from_raw_os_error(libc::ENOSYS);
        Err(failed(&format!("clone {}", dir.display()), &no))
    }

    pub fn attach(mount: &OwnedFd, dir: &Path) -> Result<()> {
        let shown = fs::read_link(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        let attached = shown.and_then(|shown| {
            fs::remove_dir(dir)?;
            symlink(shown, dir)
        });
        attached.map_err(|error| failed("attach", &error))
    }

    pub fn unmount(dir: &Path, _: InUse) -> Result<()> {
        let gone = fs::remove_file(dir).and_then(|()| fs::create_dir(dir));
        gone.map_err(|error| failed("unmount", &error))
    }

    pub fn mounted_at(dir: &Path) -> Result<Option<Mounted>> {
        let found = fs::symlink_metadata(dir).ok();
        let link = found.filter(fs::Metadata::is_symlink);
        Ok(link.map(|link| Mounted { id: link.ino() }))
    }

    /// Whether the layer that it shows is gone.
    pub fn is_dead(dir: &Path) -> bool {
        fs::read_link(dir).is_ok_and(|shown| !shown.exists())
    }
}
