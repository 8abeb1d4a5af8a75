//! One view of a vault: how it is opened, committed and given up.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avfs_sandbox::{Confinement, OverlayPlan, SandboxPlan};
use avfs_vault::{NewVersion, Trees, Vault, VaultId};
use avfs_view::{HashCache, Layer, Retired};
use rustix::fs::{Mode, OFlags};

use crate::live::beside::Beside;
use crate::live::disk_watch::DiskWatch;
use crate::live::engine::Engine;
use crate::live::layer_commit::make_ready;
use crate::live::network::LiveNetwork;
use crate::live::recover::Stranded;
use crate::live::shape::{Access, Driver, Shape, Tmp};
use crate::live::slot::Inside;
use crate::live::view_backend::ViewBackend;
use crate::live::view_base::{Beginning, ViewBase, differing_little};
use crate::live::view_writer::{Applied, ViewWriter};
use crate::owners::layer_owner;
use crate::retried::{Retried, note};
use crate::runtime::Runtime;
use crate::{Error, Result};

/// How often a view is opened when the keeper or the sandbox dies meanwhile.
const TRIES: usize = 4;
/// More than this is not done in a view that rests: another one is opened faster.
const MOST_TO_CATCH_UP: usize = 16;
const MOST_BYTES_TO_CATCH_UP: u64 = 1 << 20;

/// Fields go in this order: the sandbox ends before the lens stops showing what it stands on.
pub(crate) struct LiveView {
    /// The sandbox of commands in a mount.
    pub beside: Option<Beside>,
    pub backend: ViewBackend,
    /// None if its sandbox has the host's network, and for a mount.
    pub network: Option<Arc<LiveNetwork>>,
    pub base: Arc<ViewBase>,
    pub layer: Layer,
    pub cache: HashCache,
    pub entries: usize,
    /// How many commits have looked at more of them than is good.
    pub commits_grown: u32,
    /// Whether the layer may hold what no commit has taken in: commands run in it, or the last
    /// commit was refused.
    pub unsaved: bool,
    /// Whose commit was refused: the version it gets when it succeeds after all.
    pub refused: Option<NewVersion>,
    /// Why the last commit did not come about.
    pub uncommitted: Option<Stranded>,
    pub shape: Shape,
    pub engine: Arc<Engine>,
}

impl LiveView {
    /// What a command needs to know of it.
    pub fn inside(&self) -> Result<Inside> {
        let (network, shape) = match &self.beside {
            Some(beside) => (&beside.network, beside.shape),
            None => (&self.network, self.shape),
        };
        Ok(Inside {
            sandbox: self.sandbox()?,
            network: network.clone(),
            root: match shape.driver {
                Driver::Namespace => PathBuf::from("/"),
                Driver::Process => self.engine.keeper.view_of_unconfined(),
            },
        })
    }

    /// Watches how much is written in it.
    pub fn disk_watch(
        &self,
        runtime: &Runtime,
        vault: VaultId,
        growth: Option<u64>,
    ) -> Result<Option<DiskWatch>> {
        let layer = self.layer.upper().try_clone_to_owned();
        let opening = || Error::io("opening what a command writes to");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let scratch = scratch_of(runtime, vault, &self.layer, self.shape.tmp)?;
        let scratch = rustix::fs::open(scratch, flags, Mode::empty());
        let scratch = scratch.map_err(std::io::Error::from).map_err(opening())?;
        let places = [layer.map_err(opening())?, scratch];
        let quota = runtime.inner.vaults.by_id(vault)?.quota;
        DiskWatch::new(self.engine.clone(), places, growth, quota)
    }

    pub fn is_alive(&self) -> bool {
        self.backend.is_alive() && self.engine.keeper.is_alive()
    }

    /// Does what has become of the vault since this view rests. False if that does not give the head, to the last
    /// detail, or is too much; then this is to be given up.
    pub fn catch_up(&mut self, runtime: &Runtime, vault: &Vault) -> Result<bool> {
        let vaults = &runtime.inner.vaults;
        let (trees, from) = (vaults.trees(), self.layer.record().last_commit);
        if from == vault.head {
            return Ok(true);
        }
        let (roots, most) = ((from, vault.head), MOST_TO_CATCH_UP);
        let changes = differing_little(trees, roots, most, MOST_BYTES_TO_CATCH_UP)?;
        let Some(changes) = changes else {
            return Ok(false);
        };
        self.layer.redraft(vault.head)?;
        let top = self.backend.top()?;
        let writer = self.writer(trees, top.as_fd());
        if writer.apply(changes, vault.head, None)? != Applied::All {
            return Ok(false);
        }
        let (engine, cache) = (&self.engine, &mut self.cache);
        let entries = make_ready(runtime, engine, &self.layer, cache)?;
        self.entries = entries.unwrap_or_default();
        Ok(entries.is_some())
    }

    /// The way to change what it shows.
    pub fn writer<'a>(&'a self, trees: &'a Trees, top: BorrowedFd<'a>) -> ViewWriter<'a> {
        let owner = match self.backend {
            ViewBackend::Sandbox(_) => layer_owner(),
            ViewBackend::Mount(_) => None,
        };
        ViewWriter {
            trees,
            helper: &self.engine.writer,
            top,
            owner,
        }
    }
}

fn scratch_of(runtime: &Runtime, vault: VaultId, layer: &Layer, tmp: Tmp) -> Result<PathBuf> {
    Ok(match tmp {
        Tmp::OfVault => runtime.inner.layers.scratch(vault)?,
        Tmp::Own => layer.own_scratch()?,
    })
}

/// Opens a view of the vault as it is now, on one of the grounds `near` if that will do. Helpers that die meanwhile are
/// replaced.
pub(crate) fn open(
    runtime: &Runtime,
    vault: VaultId,
    shape: Shape,
    access: Access,
    near: &[Arc<ViewBase>],
) -> Result<LiveView> {
    runtime.make_room_for_descriptors();
    for _ in 1..TRIES {
        let engine = runtime.engine()?;
        match open_by(runtime, engine.clone(), vault, shape, access, near) {
            Err(error) if engine.is_why(&error) => note(Retried::Sandbox),
            opened => return opened,
        }
    }
    open_by(runtime, runtime.engine()?, vault, shape, access, near)
}

/// The sandbox of a view, without its `/`.
pub(crate) fn sandbox_plan(
    runtime: &Runtime,
    vault: &Vault,
    (shape, access): (Shape, Access),
    layer: &Layer,
    shown: &Path,
) -> Result<SandboxPlan> {
    let host = &runtime.inner.host;
    Ok(SandboxPlan {
        name: vault.name.to_string(),
        overlay: None,
        scratch: scratch_of(runtime, vault.id, layer, shape.tmp)?,
        lent: host.lent.clone(),
        etc: host.etc(&vault.name, shape.network, shown),
        readonly: access == Access::ReadOnly,
        network: shape.network,
        confinement: confinement(shape),
        staging: layer.token().unwrap_or_default().to_owned(),
    })
}

pub(crate) fn confinement(shape: Shape) -> Confinement {
    match shape.driver {
        Driver::Namespace => Confinement::Full,
        Driver::Process => Confinement::ViewOnly,
    }
}

fn open_by(
    runtime: &Runtime,
    engine: Arc<Engine>,
    vault: VaultId,
    shape: Shape,
    access: Access,
    near: &[Arc<ViewBase>],
) -> Result<LiveView> {
    let inner = &runtime.inner;
    let vault = inner.vaults.by_id(vault)?;
    // Where it must be the root and nothing else, it stands on that root itself, with nothing in its layer.
    let near = match shape.tmp {
        Tmp::OfVault => near,
        Tmp::Own => &[],
    };
    let Beginning {
        base,
        layer,
        cache,
        entries,
    } = Beginning::of(runtime, &engine, &vault, near)?;
    let shown = inner.networks.trust_beside(&layer)?;
    let lending = inner.host.lendings.prepare(shape.lent)?;
    let lowers = [
        Some(base.shown.clone()),
        lending.skeleton,
        Some(inner.host.skeleton()?),
    ];
    let overlay = OverlayPlan {
        lowers: lowers.into_iter().flatten().collect(),
        upper: layer.upper_path(),
        work: layer.work_path(),
    };
    let mut plan = SandboxPlan {
        overlay: Some(overlay),
        ..sandbox_plan(runtime, &vault, (shape, access), &layer, &shown)?
    };
    plan.lent.extend(lending.lent);
    let sandbox = engine.keeper.open_sandbox(&plan, vec![layer.hold()?]);
    let served = sandbox.map_err(Error::from).and_then(|sandbox| {
        let sandbox = Arc::new(sandbox);
        let network = inner.networks.serve(vault.id, &sandbox, shown)?;
        Ok((sandbox, network))
    });
    match served {
        Ok((sandbox, network)) => Ok(LiveView {
            beside: None,
            backend: ViewBackend::Sandbox(sandbox),
            network,
            base,
            layer,
            cache,
            entries,
            commits_grown: 0,
            unsaved: false,
            refused: None,
            uncommitted: None,
            shape,
            engine,
        }),
        Err(error) => {
            remove_in_background(layer.retire()?, engine);
            Err(error)
        }
    }
}

impl LiveView {
    /// Gives a clean view up. Its sandbox, in which nothing runs, takes the kernel a while to end.
    pub fn close(self) -> Result<Closing> {
        let retired = self.layer.retire()?;
        Ok(Closing {
            backend: self.backend,
            _base: self.base,
            retired,
            engine: self.engine,
        })
    }
}

/// A view on its way out.
pub(crate) struct Closing {
    backend: ViewBackend,
    _base: Arc<ViewBase>,
    retired: Retired,
    engine: Arc<Engine>,
}

impl Closing {
    /// A removal that does not finish is taken up by the next keeper, or at the next start.
    pub fn finish(self) {
        let Closing {
            backend,
            _base,
            retired,
            engine,
        } = self;
        backend.end();
        // It holds the view open, and files that somebody holds open are freed by the last to let
        // go of them: by this process then, which could not end meanwhile, instead of the sweeper.
        drop(backend);
        engine.remove(retired);
    }

    /// Ends the sandbox and leaves the layer where the next start finds and removes it.
    pub fn leave(self) {
        self.backend.end();
    }

    pub fn in_background(self) {
        std::thread::spawn(move || self.finish());
    }
}

pub(crate) fn remove_in_background(retired: Retired, engine: Arc<Engine>) {
    std::thread::spawn(move || engine.remove(retired));
}
