//! The live view of a vault: its layer, its sandbox, and who runs in it.
//!
//! All that moves a vault's head goes through its slot, one at a time. After each exec the layer is
//! committed, so a view in which nothing runs is always clean, and closing it loses nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use avfs_sandbox::{OverlayPlan, Sandbox, SandboxPlan};
use avfs_vault::{Cause, ExecId, NewVersion, Principal, RootId, Vault, VaultId};
use avfs_view::{CommitInput, HashCache, Layer, LensRoot, Retired, Skipped, Writers};
use serde_json::json;

use crate::engine::{Engine, STORED_OWNER};
use crate::runtime::{Runtime, lock};
use crate::{Error, Result};

/// A layer with more names than this is exchanged for a fresh one once nothing runs in it.
const ROTATE_ENTRIES: usize = 300;

/// One vault's place for a live view.
pub(crate) struct Slot {
    vault: VaultId,
    state: Mutex<State>,
}

struct State {
    live: Option<LiveView>,
    /// The execs under way, each with the root that it started from.
    running: BTreeMap<ExecId, RootId>,
    used: Instant,
}

/// Fields go in this order: the sandbox ends before the lens stops showing its base.
struct LiveView {
    sandbox: Arc<Sandbox>,
    _lens: LensRoot,
    layer: Layer,
    cache: HashCache,
    entries: usize,
    engine: Arc<Engine>,
}

impl LiveView {
    fn is_alive(&self) -> bool {
        self.sandbox.is_alive() && self.engine.keeper.is_alive()
    }
}

/// An exec that has its sandbox; it must `leave`, or dropping it does.
pub(crate) struct Entered {
    pub sandbox: Arc<Sandbox>,
    /// The vault's state when the exec began.
    pub before: RootId,
    slot: Arc<Slot>,
    runtime: Runtime,
    exec: ExecId,
    left: bool,
}

/// What an exec left behind.
pub(crate) struct Left {
    pub before: RootId,
    pub after: RootId,
    /// The new version, where the state differs from the one before the commit.
    pub version: Option<u64>,
    pub skipped: Vec<Skipped>,
    /// Other execs whose changes may be among these.
    pub shared_with: Vec<ExecId>,
}

impl Slot {
    pub fn new(vault: VaultId) -> Slot {
        let state = State {
            live: None,
            running: BTreeMap::new(),
            used: Instant::now(),
        };
        Slot {
            vault,
            state: Mutex::new(state),
        }
    }

    pub fn running(&self) -> usize {
        self.lock().running.len()
    }

    pub fn is_live(&self) -> bool {
        self.lock().live.is_some()
    }

    /// Joins the vault's sandbox, opening it if there is none.
    pub fn enter(self: &Arc<Self>, runtime: &Runtime, exec: ExecId) -> Result<Entered> {
        let mut state = self.lock();
        if state.live.as_ref().is_some_and(|live| !live.is_alive()) {
            self.salvage(runtime, &mut state, None)?;
        }
        if !state.running.is_empty() {
            self.commit(runtime, &mut state, partial_version())?;
        }
        let before = runtime.inner.vaults.by_id(self.vault)?.head;
        if state.live.is_none() {
            state.live = Some(open(runtime, self.vault)?);
        }
        let live = state.live.as_ref().expect("opened just now");
        let sandbox = live.sandbox.clone();
        state.running.insert(exec, before);
        state.used = Instant::now();
        drop(state);
        let (slot, runtime) = (self.clone(), runtime.clone());
        Ok(Entered {
            sandbox,
            before,
            slot,
            runtime,
            exec,
            left: false,
        })
    }

    /// Runs `change` while nothing else can move the head and no view shows the old one.
    pub fn settled<T>(
        &self,
        runtime: &Runtime,
        change: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.lock();
        let vault = runtime.inner.vaults.by_id(self.vault)?;
        if !state.running.is_empty() {
            let running = state.running.len();
            return Err(Error::Busy {
                vault: vault.name.to_string(),
                running,
            });
        }
        if let Some(closing) = close(&mut state)? {
            closing.in_background();
        }
        change(vault)
    }

    /// Runs `look` on a head that holds all that was written until now, also by running commands.
    pub fn current<T>(
        &self,
        runtime: &Runtime,
        look: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.lock();
        if !state.running.is_empty() {
            self.commit(runtime, &mut state, partial_version())?;
        }
        look(runtime.inner.vaults.by_id(self.vault)?)
    }

    /// Closes a view that has not been used for `idle`.
    pub fn close_if_idle(&self, _runtime: &Runtime, idle: Duration) {
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        if state.running.is_empty() && state.used.elapsed() >= idle {
            // What cannot be given up now is found at the next start.
            if let Ok(Some(closing)) = close(&mut state) {
                drop(state);
                closing.finish();
            }
        }
    }

    /// Ends whatever runs and closes the view, keeping what was written.
    pub fn shut(&self, runtime: &Runtime) {
        let mut state = self.lock();
        if state.running.is_empty() {
            if let Ok(Some(closing)) = close(&mut state) {
                closing.finish();
            }
        } else if let Some(live) = &state.live {
            live.sandbox.kill();
            // On failure the layer stays on disk, where the next start finds it.
            let _ = self.salvage(runtime, &mut state, None);
        }
    }

    fn leave(&self, runtime: &Runtime, exec: ExecId, version: NewVersion) -> Result<Left> {
        let mut state = self.lock();
        let before = state.running.remove(&exec).expect("an exec leaves once");
        let shared_with: Vec<ExecId> = state.running.keys().copied().collect();
        state.used = Instant::now();
        // Whoever watched the command may know of the sandbox's end before it shows.
        let known = version.cause == Cause::Interrupted;
        let lost = state
            .live
            .as_ref()
            .is_some_and(|live| known || !live.is_alive());
        let committed = if lost {
            self.salvage(runtime, &mut state, Some(version))?
        } else {
            self.commit(runtime, &mut state, version)?
        };
        if state.running.is_empty()
            && state
                .live
                .as_ref()
                .is_some_and(|live| live.entries > ROTATE_ENTRIES)
        {
            self.rotate_in_background(runtime);
        }
        let Committed {
            after,
            version,
            skipped,
        } = committed;
        Ok(Left {
            before,
            after,
            version,
            skipped,
            shared_with,
        })
    }

    /// Base and layer become the head; without a view the head is what it is.
    fn commit(
        &self,
        runtime: &Runtime,
        state: &mut State,
        version: NewVersion,
    ) -> Result<Committed> {
        let writers = if state.running.is_empty() {
            Writers::None
        } else {
            Writers::Some
        };
        let Some(live) = &mut state.live else {
            let after = runtime.inner.vaults.by_id(self.vault)?.head;
            return Ok(Committed {
                after,
                version: None,
                skipped: Vec::new(),
            });
        };
        let (committed, entries) = commit_layer(
            runtime,
            &live.engine,
            self.vault,
            &mut live.layer,
            &mut live.cache,
            writers,
            version,
        )?;
        live.entries = entries;
        Ok(committed)
    }

    /// The sandbox died with commands in it: what they wrote becomes a version marked interrupted.
    fn salvage(
        &self,
        runtime: &Runtime,
        state: &mut State,
        version: Option<NewVersion>,
    ) -> Result<Committed> {
        let mut live = state.live.take().expect("only called when there is a view");
        live.sandbox.kill();
        let version = match version {
            Some(version) => NewVersion {
                cause: Cause::Interrupted,
                ..version
            },
            None => interrupted_version(json!({ "why": "the sandbox was lost" })),
        };
        let mut engine = runtime.engine()?;
        let mut commit = |engine: &Engine| {
            let (layer, cache) = (&mut live.layer, &mut live.cache);
            commit_layer(
                runtime,
                engine,
                self.vault,
                layer,
                cache,
                Writers::None,
                version.clone(),
            )
        };
        let mut outcome = commit(&engine);
        if let Err(Error::View(avfs_view::Error::ScannerLost)) = outcome {
            // The keeper was dying, and its sandboxes before it.
            engine.keeper.kill();
            engine = runtime.engine()?;
            outcome = commit(&engine);
        }
        let (committed, _) = outcome?;
        remove_in_background(live.layer.retire()?, engine);
        Ok(committed)
    }

    fn rotate_in_background(&self, runtime: &Runtime) {
        let (slot, runtime) = (runtime.slot(self.vault), runtime.clone());
        std::thread::spawn(move || {
            let mut state = slot.lock();
            let due = state
                .live
                .as_ref()
                .is_some_and(|live| live.entries > ROTATE_ENTRIES);
            if !due || !state.running.is_empty() {
                return;
            }
            if let Ok(Some(closing)) = close(&mut state) {
                closing.in_background();
            }
            // If this fails, so will the next exec, which can say why.
            state.live = open(&runtime, slot.vault).ok();
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Entered {
    /// Commits what the layer holds by now.
    pub fn leave(mut self, version: NewVersion) -> Result<Left> {
        self.left = true;
        self.slot.leave(&self.runtime, self.exec, version)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if !self.left {
            // Only after an error of ours: what the command may have written is still kept.
            let version = interrupted_version(json!({ "why": "the exec failed" }));
            let _ = self.slot.leave(&self.runtime, self.exec, version);
        }
    }
}

/// The outcome of a commit.
pub(crate) struct Committed {
    pub after: RootId,
    pub version: Option<u64>,
    pub skipped: Vec<Skipped>,
}

/// Publishes base + layer as the head, and how many names the layer holds.
pub(crate) fn commit_layer(
    runtime: &Runtime,
    engine: &Engine,
    vault: VaultId,
    layer: &mut Layer,
    cache: &mut HashCache,
    writers: Writers,
    version: NewVersion,
) -> Result<(Committed, usize)> {
    let input = CommitInput {
        trees: runtime.inner.vaults.trees(),
        base: layer.record().base,
        mount_points: &runtime.inner.host.mount_points,
        unfinished_prefix: avfs_sandbox::MOVING_PREFIX.as_bytes(),
        owner: STORED_OWNER,
        writers,
    };
    let committed = avfs_view::commit(&input, &engine.scanner, layer.upper(), cache)?;
    let expected = layer.record().last_commit;
    layer.begin_commit(committed.root)?;
    let published = runtime
        .inner
        .vaults
        .publish(vault, expected, committed.root, version)?;
    layer.finish_commit()?;
    let version = (committed.root != expected).then_some(published.number);
    let after = committed.root;
    Ok((
        Committed {
            after,
            version,
            skipped: committed.skipped,
        },
        committed.entries,
    ))
}

fn open(runtime: &Runtime, vault: VaultId) -> Result<LiveView> {
    let inner = &runtime.inner;
    let engine = runtime.engine()?;
    let vault = inner.vaults.by_id(vault)?;
    let trees = inner.vaults.trees();
    let top = trees.root(vault.head)?.top.meta.clone();
    let layer = inner.layers.create(vault.id, vault.head, &top)?;
    let (lens, lower) = engine.show(trees, vault.head)?;
    let plan = SandboxPlan {
        name: vault.name.to_string(),
        overlay: OverlayPlan {
            lowers: vec![lower, inner.host.skeleton.clone()],
            upper: layer.upper_path(),
            work: layer.work_path(),
        },
        scratch: inner.layers.scratch(vault.id)?,
        lent: inner.host.lent.clone(),
        etc: inner.host.etc(&vault.name),
        readonly: false,
        network: avfs_sandbox::Network::None,
    };
    match engine.keeper.open_sandbox(&plan, vec![layer.hold()?]) {
        Ok(sandbox) => Ok(LiveView {
            sandbox: Arc::new(sandbox),
            _lens: lens,
            layer,
            cache: HashCache::default(),
            entries: 0,
            engine,
        }),
        Err(error) => {
            remove_in_background(layer.retire()?, engine);
            Err(error.into())
        }
    }
}

/// Gives a clean view up. Its sandbox, in which nothing runs, takes the kernel a while to end.
fn close(state: &mut State) -> Result<Option<Closing>> {
    let Some(live) = state.live.take() else {
        return Ok(None);
    };
    let LiveView {
        sandbox,
        _lens,
        layer,
        engine,
        ..
    } = live;
    let retired = layer.retire()?;
    Ok(Some(Closing {
        sandbox,
        _lens,
        retired,
        engine,
    }))
}

/// A view on its way out.
struct Closing {
    sandbox: Arc<Sandbox>,
    _lens: LensRoot,
    retired: Retired,
    engine: Arc<Engine>,
}

impl Closing {
    /// A removal that does not finish is taken up at the next start.
    fn finish(self) {
        self.sandbox.kill();
        let _ = self.retired.remove(&self.engine.sweeper);
    }

    fn in_background(self) {
        std::thread::spawn(move || self.finish());
    }
}

/// A commit in the middle of commands, because somebody looks.
fn partial_version() -> NewVersion {
    NewVersion {
        by: Principal::System,
        exec: None,
        cause: Cause::Exec,
        details: json!({ "partial": true }),
    }
}

pub(crate) fn interrupted_version(details: serde_json::Value) -> NewVersion {
    NewVersion {
        by: Principal::System,
        exec: None,
        cause: Cause::Interrupted,
        details,
    }
}

fn remove_in_background(retired: Retired, engine: Arc<Engine>) {
    std::thread::spawn(move || retired.remove(&engine.sweeper));
}
