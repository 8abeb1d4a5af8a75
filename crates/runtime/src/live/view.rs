//! One view of a vault: how it is opened, committed and given up.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use avfs_sandbox::{Confinement, Network, OverlayPlan, SandboxPlan};
use avfs_vault::{
    Cause, CheckpointName, CheckpointOrigin, ExecId, NewVersion, Principal, RootId, Trees, Vault,
    VaultId,
};
use avfs_view::{
    Allowance, CommitInput, HashCache, Layer, LayerUse, OwnWork, Retired, Skipped, Staging,
    StagingUse, Writers,
};
use rustix::fs::{Mode, OFlags};

use crate::admission::{Stop, allowance, refusal};
use crate::engine::{Engine, STORED_OWNER, layer_owner};
use crate::entered::Inside;
use crate::gauge::Gauge;
use crate::ground::{Beginning, Ground, differing_little};
use crate::options::{Access, Driver, ExecOptions};
use crate::recover::Stranded;
use crate::retried::{Retried, note};
use crate::room::weighed;
use crate::runtime::Runtime;
use crate::stage::Stage;
use crate::through::{Applied, Through};
use crate::{Error, Result};

/// How often a view is opened when the keeper or the sandbox dies meanwhile.
const TRIES: usize = 4;
/// More than this is not done in a view that rests: another one is opened faster.
const MOST_TO_CATCH_UP: usize = 16;
const MOST_BYTES_TO_CATCH_UP: u64 = 1 << 20;

/// Fields go in this order: the sandbox ends before the lens stops showing what it stands on.
pub(crate) struct LiveView {
    pub stage: Stage,
    pub ground: Arc<Ground>,
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
        Ok(Inside {
            sandbox: self.stage.sandbox()?,
            root: match self.shape.driver {
                Driver::Namespace => PathBuf::from("/"),
                Driver::Process => self.engine.keeper.view_of_unconfined(),
            },
        })
    }

    /// Watches how much is written in it.
    pub fn gauge(
        &self,
        runtime: &Runtime,
        vault: VaultId,
        growth: Option<u64>,
    ) -> Result<Option<Gauge>> {
        let layer = self.layer.upper().try_clone_to_owned();
        let opening = || Error::io("opening what a command writes to");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let scratch = scratch_of(runtime, vault, &self.layer, self.shape.tmp)?;
        let scratch = rustix::fs::open(scratch, flags, Mode::empty());
        let scratch = scratch.map_err(std::io::Error::from).map_err(opening())?;
        let places = [layer.map_err(opening())?, scratch];
        let quota = runtime.inner.vaults.by_id(vault)?.quota;
        Gauge::new(self.engine.clone(), places, growth, quota)
    }

    pub fn is_alive(&self) -> bool {
        self.stage.is_alive() && self.engine.keeper.is_alive()
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
        let top = self.stage.top()?;
        let through = self.through(trees, top.as_fd());
        if through.apply(changes, vault.head, None)? != Applied::All {
            return Ok(false);
        }
        let (engine, cache) = (&self.engine, &mut self.cache);
        let entries = make_ready(runtime, engine, &self.layer, cache)?;
        self.entries = entries.unwrap_or_default();
        Ok(entries.is_some())
    }

    /// The way to change what it shows.
    pub fn through<'a>(&'a self, trees: &'a Trees, top: BorrowedFd<'a>) -> Through<'a> {
        let owner = match self.stage {
            Stage::Sandbox(_) => layer_owner(),
            Stage::Mount(_) => None,
        };
        Through {
            trees,
            writer: &self.engine.writer,
            top,
            owner,
        }
    }
}

/// Of what kind a sandbox is. Commands share one if they want the same kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub network: Network,
    pub driver: Driver,
    pub tmp: Tmp,
}

/// Which `/tmp` a sandbox has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tmp {
    /// The vault's, which file verbs and other commands see, too.
    #[default]
    OfVault,
    /// One of its own, which is empty at first and goes away with it.
    Own,
}

impl Shape {
    pub fn of(options: &ExecOptions) -> Shape {
        Shape {
            network: options.network,
            driver: options.driver,
            tmp: Tmp::OfVault,
        }
    }

    /// For a command that must find nothing but the vault's root: all else that it could read and a command before it
    /// could have written is empty.
    pub fn alone(self) -> Shape {
        Shape {
            tmp: Tmp::Own,
            ..self
        }
    }
}

fn scratch_of(runtime: &Runtime, vault: VaultId, layer: &Layer, tmp: Tmp) -> Result<PathBuf> {
    Ok(match tmp {
        Tmp::OfVault => runtime.inner.layers.scratch(vault)?,
        Tmp::Own => layer.own_scratch()?,
    })
}

/// The outcome of a commit.
pub(crate) struct Committed {
    pub after: RootId,
    pub version: Option<u64>,
    pub skipped: Vec<Skipped>,
    /// The checkpoint that holds what the quota kept out of the head.
    pub aside: Option<CheckpointName>,
}

impl Committed {
    pub fn unchanged(head: RootId) -> Committed {
        Committed {
            after: head,
            version: None,
            skipped: Vec::new(),
            aside: None,
        }
    }
}

/// Which layer is committed, and how.
pub(crate) struct CommitPlan<'a> {
    pub vault: VaultId,
    pub layer: &'a mut Layer,
    pub cache: &'a mut HashCache,
    pub writers: Writers,
    pub staging: StagingUse,
    pub version: NewVersion,
    pub otherwise: Otherwise,
    pub stop: Stop<'a>,
}

/// What becomes of a commit that the vault's quota refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// It is an error, and the layer stays as it is.
    Refuse,
    /// The layer cannot stay: what it holds becomes a checkpoint, and the head stays.
    KeepAside,
}

/// What in a layer is work of our own.
pub(crate) fn own_work(layer: &Layer, used: StagingUse) -> OwnWork<'_> {
    let Some(token) = layer.token() else {
        return OwnWork::None;
    };
    match layer.record().used_by {
        LayerUse::Host => OwnWork::Names(token.as_bytes()),
        // As root, the overlay renames every directory by itself.
        LayerUse::Sandbox if layer_owner().is_some() => OwnWork::None,
        LayerUse::Sandbox => OwnWork::Staging(Staging {
            hidden: avfs_sandbox::STAGING_IN.as_bytes(),
            name: token.as_bytes(),
            exchange_ends: avfs_sandbox::EXCHANGE_ENDS.map(CStr::to_bytes),
            exchange_copies: avfs_sandbox::EXCHANGE_COPIES.map(CStr::to_bytes),
            used,
        }),
    }
}

/// Publishes base + layer as the head; gives how many names the layer holds, too.
pub(crate) fn commit_layer(
    runtime: &Runtime,
    engine: &Engine,
    plan: CommitPlan<'_>,
) -> Result<(Committed, usize)> {
    let vaults = &runtime.inner.vaults;
    let _lease = vaults.lease();
    let CommitPlan { layer, cache, .. } = plan;
    let vault = vaults.by_id(plan.vault)?;
    let beside = runtime.check_scratch(engine, &vault)?;
    let terms = Terms {
        allowance: allowance(runtime, &vault, beside, plan.otherwise)?,
        writers: plan.writers,
        staging: plan.staging,
        stop: plan.stop,
    };
    let committed = root_of(runtime, engine, layer, cache, &terms);
    let committed = committed.map_err(|error| weighed(engine, layer, refusal(error, &vault)))?;
    let expected = layer.record().last_commit;
    layer.begin_commit(committed.root)?;
    let published = vaults.publish(plan.vault, expected, committed.root, plan.version);
    let mut outcome = Committed {
        after: committed.root,
        version: None,
        skipped: committed.skipped,
        aside: None,
    };
    match published {
        Ok(published) => {
            layer.finish_commit()?;
            outcome.version = (committed.root != expected).then_some(published.number);
        }
        Err(error) => {
            // What it remembers is in no vault, and may go.
            *cache = HashCache::default();
            let quota = matches!(error, avfs_vault::Error::QuotaExceeded { .. });
            if !quota || plan.otherwise == Otherwise::Refuse {
                return Err(weighed(engine, layer, error.into()));
            }
            outcome.aside = Some(keep_aside(runtime, plan.vault, committed.root)?);
            outcome.after = expected;
        }
    }
    Ok((outcome, committed.entries))
}

/// The root that base and layer amount to; to be asked for while leased.
pub(crate) fn root_of(
    runtime: &Runtime,
    engine: &Engine,
    layer: &Layer,
    cache: &mut HashCache,
    terms: &Terms<'_>,
) -> Result<avfs_view::Committed, avfs_view::Error> {
    let input = CommitInput {
        trees: runtime.inner.vaults.trees(),
        base: layer.record().base,
        last_commit: layer.record().last_commit,
        skeleton: runtime.inner.host.skeleton_paths(layer.record().used_by),
        own_work: own_work(layer, terms.staging),
        owner: STORED_OWNER,
        writers: terms.writers,
        allowance: terms.allowance,
        spool: &runtime.inner.config.home,
        stopped: terms.stop,
    };
    avfs_view::commit(&input, &engine.scanner, layer.upper(), cache)
}

/// On what terms a layer is read.
pub(crate) struct Terms<'a> {
    pub allowance: Allowance,
    pub writers: Writers,
    pub staging: StagingUse,
    pub stop: Stop<'a>,
}

/// Has the draft of a layer count, if it amounts to the root that it shall amount to, to the last detail; gives how many
/// names it holds.
pub(crate) fn make_ready(
    runtime: &Runtime,
    engine: &Engine,
    layer: &Layer,
    cache: &mut HashCache,
) -> Result<Option<usize>> {
    let _lease = runtime.inner.vaults.lease();
    let terms = Terms {
        allowance: Allowance::default(),
        writers: Writers::None,
        staging: StagingUse::InUse,
        stop: &|| false,
    };
    let reached = root_of(runtime, engine, layer, cache, &terms)?;
    if reached.root != layer.record().last_commit {
        return Ok(None);
    }
    layer.make_ready()?;
    Ok(Some(reached.entries))
}

fn keep_aside(runtime: &Runtime, vault: VaultId, root: RootId) -> Result<CheckpointName> {
    let name: CheckpointName = format!("uncommitted-{}", ExecId::new()).parse()?;
    let origin = CheckpointOrigin::Automatic;
    let by = &Principal::SYSTEM;
    runtime
        .inner
        .vaults
        .save_checkpoint(vault, Some(&name), root, origin, by)?;
    Ok(name)
}

/// Opens a view of the vault as it is now, on one of the grounds `near` if that will do. Helpers that die meanwhile are
/// replaced.
pub(crate) fn open(
    runtime: &Runtime,
    vault: VaultId,
    shape: Shape,
    access: Access,
    near: &[Arc<Ground>],
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

fn open_by(
    runtime: &Runtime,
    engine: Arc<Engine>,
    vault: VaultId,
    shape: Shape,
    access: Access,
    near: &[Arc<Ground>],
) -> Result<LiveView> {
    let inner = &runtime.inner;
    let vault = inner.vaults.by_id(vault)?;
    // Where it must be the root and nothing else, it stands on that root itself, with nothing in its layer.
    let near = match shape.tmp {
        Tmp::OfVault => near,
        Tmp::Own => &[],
    };
    let Beginning {
        ground,
        layer,
        cache,
        entries,
    } = Beginning::of(runtime, &engine, &vault, near)?;
    let plan = SandboxPlan {
        name: vault.name.to_string(),
        overlay: OverlayPlan {
            lowers: vec![ground.shown.clone(), inner.host.skeleton()?],
            upper: layer.upper_path(),
            work: layer.work_path(),
        },
        scratch: scratch_of(runtime, vault.id, &layer, shape.tmp)?,
        lent: inner.host.lent.clone(),
        etc: inner.host.etc(&vault.name, shape.network),
        readonly: access == Access::ReadOnly,
        network: shape.network,
        confinement: match shape.driver {
            Driver::Namespace => Confinement::Full,
            Driver::Process => Confinement::ViewOnly,
        },
        staging: layer.token().unwrap_or_default().to_owned(),
    };
    match engine.keeper.open_sandbox(&plan, vec![layer.hold()?]) {
        Ok(sandbox) => Ok(LiveView {
            stage: Stage::Sandbox(Arc::new(sandbox)),
            ground,
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
            Err(error.into())
        }
    }
}

impl LiveView {
    /// Gives a clean view up. Its sandbox, in which nothing runs, takes the kernel a while to end.
    pub fn close(self) -> Result<Closing> {
        let retired = self.layer.retire()?;
        Ok(Closing {
            stage: self.stage,
            _ground: self.ground,
            retired,
            engine: self.engine,
        })
    }
}

/// A view on its way out.
pub(crate) struct Closing {
    stage: Stage,
    _ground: Arc<Ground>,
    retired: Retired,
    engine: Arc<Engine>,
}

impl Closing {
    /// A removal that does not finish is taken up by the next keeper, or at the next start.
    pub fn finish(self) {
        let Closing {
            stage,
            _ground,
            retired,
            engine,
        } = self;
        stage.end();
        // It holds the view open, and files that somebody holds open are freed by the last to let
        // go of them: by this process then, which could not end meanwhile, instead of the sweeper.
        drop(stage);
        engine.remove(retired);
    }

    /// Ends the sandbox and leaves the layer where the next start finds and removes it.
    pub fn leave(self) {
        self.stage.end();
    }

    pub fn in_background(self) {
        std::thread::spawn(move || self.finish());
    }
}

pub(crate) fn remove_in_background(retired: Retired, engine: Arc<Engine>) {
    std::thread::spawn(move || engine.remove(retired));
}

pub(crate) fn interrupted_version(details: serde_json::Value) -> NewVersion {
    NewVersion {
        by: Principal::SYSTEM,
        exec: None,
        cause: Cause::Interrupted,
        details,
    }
}
