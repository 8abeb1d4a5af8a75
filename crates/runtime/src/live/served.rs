//! All of a view that needs FUSE, an overlay or a process of ours: the keeper, its scanners, the lenses, mounts on the host.
//!
//! Unit tests have `plain.rs` in its place.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use avfs_sandbox::{Keeper, KeeperConfig};
use avfs_vault::{RootId, Trees, Vault};
use avfs_view::{Layer, LayerUse, Lens, LensRoot, MarkNames, Owner, Scanner, Xattrs};
use rustix::fs::{Mode, OFlags};

pub(crate) use avfs_sandbox::onhost;

use crate::Result;
use crate::live::engine::Engine;
use crate::live::view_base::{Beginning, ViewBase};
use crate::owners::this_user;
use crate::retried::{Retried, note};
use crate::runtime::{Config, Runtime, lock};

pub(crate) fn start_keeper(config: &Config) -> Result<Keeper> {
    Ok(Keeper::start(KeeperConfig {
        binary: config.binary.clone(),
        runtime_dir: config.runtime_dir.clone(),
    })?)
}

/// A scanner, and another one whenever that one has died.
pub(crate) fn start_scanner(
    keeper: &Keeper,
    marks: MarkNames,
    retried: Retried,
) -> Result<Scanner> {
    let (keeper, is_first) = (keeper.clone(), AtomicBool::new(true));
    let start = move || {
        if !is_first.swap(false, Ordering::Relaxed) {
            note(retried);
        }
        let spawned = keeper.spawn_helper("__scanner");
        if matches!(spawned, Err(avfs_sandbox::Error::KeeperGone)) {
            // It may still be dying; whoever is told that it is gone looks at it.
            keeper.kill();
        }
        spawned.ok()
    };
    Ok(Scanner::start(Box::new(start), marks)?)
}

/// The lenses of one keeper.
pub(crate) struct Lenses {
    plain: Served,
    with_xattrs: Served,
    /// For mounts on the host; made when first needed.
    on_host: Mutex<Option<Served>>,
}

struct Served {
    lens: Arc<Lens>,
    path: PathBuf,
}

impl Served {
    fn by(
        keeper: &Keeper,
        trees: &Trees,
        name: &str,
        owner: Owner,
        xattrs: Xattrs,
    ) -> Result<Served> {
        let mount = keeper.mount_fuse(name)?;
        let lens = Lens::serve(mount.fd, trees.clone(), owner, xattrs)?;
        Ok(Served {
            lens: Arc::new(lens),
            path: mount.path,
        })
    }

    fn show(&self, root: RootId) -> (Option<LensRoot>, PathBuf) {
        let guard = self.lens.open(root);
        let path = self.path.join(guard.name());
        (Some(guard), path)
    }
}

impl Lenses {
    pub fn serve(keeper: &Keeper, trees: &Trees) -> Result<Lenses> {
        let owner = keeper.privilege().file_owner();
        let owner = Owner {
            uid: owner,
            gid: owner,
        };
        let serve = |name: &str, xattrs| Served::by(keeper, trees, name, owner, xattrs);
        Ok(Lenses {
            plain: serve("lens", Xattrs::Absent)?,
            with_xattrs: serve("lens-xattrs", Xattrs::Served)?,
            on_host: Mutex::default(),
        })
    }

    /// Gives back the memory that only speed needs.
    pub fn release_caches(&self) {
        self.plain.lens.release_caches();
        self.with_xattrs.lens.release_caches();
    }

    /// Shows `root` for as long as the guard lives, and where.
    pub fn show(&self, trees: &Trees, root: RootId) -> Result<(Option<LensRoot>, PathBuf)> {
        let served = match trees.root(root)?.has_xattrs {
            true => &self.with_xattrs,
            false => &self.plain,
        };
        Ok(served.show(root))
    }

    /// Whether commands can be shown what `root` shows.
    pub fn shows(&self, root: &LensRoot) -> bool {
        root.is_of(&self.plain.lens) || root.is_of(&self.with_xattrs.lens)
    }

    /// Shows `root` for a mount on the host, where everything belongs to this user.
    pub fn show_on_host(
        &self,
        keeper: &Keeper,
        trees: &Trees,
        root: RootId,
    ) -> Result<(Option<LensRoot>, PathBuf)> {
        let mut on_host = lock(&self.on_host);
        let served = match on_host.as_ref() {
            Some(served) => served,
            None => on_host.insert(Served::by(
                keeper,
                trees,
                "lens-host",
                this_user(),
                Xattrs::Served,
            )?),
        };
        Ok(served.show(root))
    }
}

/// A view on the vault's head itself, with nothing in its layer.
pub(crate) fn begin_at_head(
    runtime: &Runtime,
    engine: &Arc<Engine>,
    vault: &Vault,
) -> Result<Beginning> {
    let base = Arc::new(ViewBase::at(runtime, engine, vault.head)?);
    Beginning::on(runtime, vault, base)
}

/// An empty layer on the vault's head, for a mount on the host.
pub(crate) fn layer_on_host(runtime: &Runtime, _: &Arc<Engine>, vault: &Vault) -> Result<Layer> {
    let inner = &runtime.inner;
    let top = inner.vaults.trees().root(vault.head)?.top.meta.clone();
    Ok(inner
        .layers
        .create(vault.id, vault.head, &top, LayerUse::Host)?)
}

/// The top of a mount on the host, as a mere path.
pub(crate) fn open_top(dir: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(dir, flags, Mode::empty())
}
