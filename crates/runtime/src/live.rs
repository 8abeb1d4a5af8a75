//! The live view of a vault: its layer, its sandbox, and who runs in it.
//!
//! All that moves a vault's head goes through its slot, one at a time. After each exec the layer is
//! committed, so a view in which nothing runs is clean, and closing it loses nothing. A commit that is
//! refused leaves the view unsaved: it stays until a later commit succeeds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use avfs_sandbox::Sandbox;
use avfs_vault::{Cause, CheckpointName, ExecId, NewVersion, Principal, RootId, Vault, VaultId};
use avfs_view::{Skipped, Writers};
use serde_json::json;

use crate::engine::Engine;
use crate::opened::{
    CommitPlan, Committed, LiveView, Otherwise, commit_layer, open, remove_in_background,
};
use crate::runtime::{Runtime, lock};
use crate::{Error, ErrorKind, Result};

/// A layer with more names than this is exchanged for a fresh one: every commit looks at all of them.
const GROWN: usize = 300;
/// But not between two commands of one piece of work. What the first one wrote is in the page cache
/// under its own files, and would have to be fetched through the lens, one file at a time.
const ROTATE_AFTER: Duration = Duration::from_secs(2);
/// Unless looking at them has by then cost as much as fetching them would.
const ROTATE_COMMITS: u32 = 20;

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
    /// The checkpoint that holds what the quota kept out of the vault.
    pub aside: Option<CheckpointName>,
}

impl Left {
    /// For a commit that did not come about.
    pub fn nothing(before: RootId) -> Left {
        Left {
            before,
            after: before,
            version: None,
            skipped: Vec::new(),
            shared_with: Vec::new(),
            aside: None,
        }
    }
}

impl State {
    fn has_grown(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.entries > GROWN)
    }
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
            match self.commit(runtime, &mut state, partial_version()) {
                // The command may be the one that makes room.
                Err(error) if error.kind() == ErrorKind::Quota => {}
                committed => drop(committed?),
            }
        }
        let before = runtime.inner.vaults.by_id(self.vault)?.head;
        if state.live.is_none() {
            state.live = Some(open(runtime, self.vault)?);
        }
        let live = state.live.as_mut().expect("opened just now");
        live.unsaved = true;
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
        self.save(runtime, &mut state)?;
        if let Some(live) = state.live.take() {
            live.close()?.in_background();
        }
        let _lease = runtime.inner.vaults.lease();
        change(runtime.inner.vaults.by_id(self.vault)?)
    }

    /// Makes way for what needs no commit: what a quota keeps out becomes a checkpoint.
    pub fn put_aside(&self, runtime: &Runtime) -> Result<()> {
        let mut state = self.lock();
        if !state.running.is_empty() {
            return Ok(());
        }
        match self.save(runtime, &mut state) {
            Err(error) if error.kind() == ErrorKind::Quota => {
                self.salvage(runtime, &mut state, None).map(drop)
            }
            saved => saved,
        }
    }

    /// Commits what an earlier commit was refused for, or says once more why it cannot be.
    fn save(&self, runtime: &Runtime, state: &mut State) -> Result<()> {
        let Some(live) = state.live.as_mut().filter(|live| live.unsaved) else {
            return Ok(());
        };
        let unknown = || interrupted_version(json!({ "why": "an earlier commit was refused" }));
        let version = live.refused.take().unwrap_or_else(unknown);
        let saved = self.commit(runtime, state, version);
        saved
            .map(drop)
            .map_err(|error| self.uncommitted(runtime, error))
    }

    fn uncommitted(&self, runtime: &Runtime, error: Error) -> Error {
        let vault = runtime.inner.vaults.by_id(self.vault);
        Error::Uncommitted {
            vault: vault.map_or_else(|_| self.vault.to_string(), |vault| vault.name.to_string()),
            source: Box::new(error),
        }
    }

    /// Runs `look` on a head that holds all that was written until now, also by running commands.
    pub fn current<T>(
        &self,
        runtime: &Runtime,
        look: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.lock();
        if !state.running.is_empty() {
            let committed = self.commit(runtime, &mut state, partial_version());
            committed.map_err(|error| self.uncommitted(runtime, error))?;
        } else {
            self.save(runtime, &mut state)?;
        }
        look(runtime.inner.vaults.by_id(self.vault)?)
    }

    /// Closes a view that has not been used for `idle`, unless it holds what could not be committed;
    /// one that has rested a little while gets a fresh layer.
    pub fn tidy(&self, runtime: &Runtime, idle: Duration) {
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        if !state.running.is_empty() {
            return;
        }
        if state.used.elapsed() < idle {
            if state.used.elapsed() >= ROTATE_AFTER && state.has_grown() {
                self.rotate_in_background(runtime);
            }
            return;
        }
        if let Some(live) = state.live.take_if(|live| !live.unsaved) {
            drop(state);
            // What cannot be given up now is found at the next start.
            if let Ok(closing) = live.close() {
                closing.finish();
            }
            // Only memory: it is tried again after the next work.
            let _ = runtime.rest();
        }
    }

    /// Ends whatever runs and closes the view, keeping what was written.
    pub fn shut(&self, runtime: &Runtime) {
        let mut state = self.lock();
        if state.live.as_ref().is_some_and(|live| live.unsaved) {
            // On failure the layer stays on disk, where the next start finds it.
            let _ = self.salvage(runtime, &mut state, None);
        } else {
            let has_grown = state.has_grown();
            match state.live.take().map(LiveView::close) {
                // The next start has the time to remove it.
                Some(Ok(closing)) if has_grown => closing.leave(),
                Some(Ok(closing)) => closing.finish(),
                // The next start finds it, too.
                Some(Err(_)) | None => {}
            }
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
            self.salvage(runtime, &mut state, Some(version))
        } else {
            self.commit(runtime, &mut state, version)
        };
        let committed = committed.map_err(|error| self.uncommitted(runtime, error))?;
        if state.running.is_empty() && state.has_grown() {
            let live = state.live.as_mut().expect("it has grown");
            live.commits_grown += 1;
            if live.commits_grown > ROTATE_COMMITS {
                self.rotate_in_background(runtime);
            }
        }
        let Committed {
            after,
            version,
            skipped,
            aside,
        } = committed;
        Ok(Left {
            before,
            after,
            version,
            skipped,
            shared_with,
            aside,
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
                aside: None,
            });
        };
        let plan = CommitPlan {
            vault: self.vault,
            layer: &mut live.layer,
            cache: &mut live.cache,
            writers,
            version,
            otherwise: Otherwise::Refuse,
        };
        let refused = plan.version.clone();
        match commit_layer(runtime, &live.engine, plan) {
            Ok((committed, entries)) => {
                live.entries = entries;
                live.unsaved = writers == Writers::Some;
                live.refused = None;
                Ok(committed)
            }
            Err(error) => {
                if writers == Writers::None {
                    live.refused = Some(refused);
                }
                Err(error)
            }
        }
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
            let plan = CommitPlan {
                vault: self.vault,
                layer: &mut live.layer,
                cache: &mut live.cache,
                writers: Writers::None,
                version: version.clone(),
                otherwise: Otherwise::KeepAside,
            };
            commit_layer(runtime, engine, plan)
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
            let unsaved = state.live.as_ref().is_some_and(|live| live.unsaved);
            if unsaved || !state.has_grown() || !state.running.is_empty() {
                return;
            }
            let closing = state.live.take().map(LiveView::close);
            // If this fails, so will the next exec, which can say why.
            state.live = open(&runtime, slot.vault).ok();
            let fresh = state
                .live
                .as_ref()
                .map(|live| (live.engine.clone(), live.shown.clone()));
            drop(state);
            if let Some((engine, shown)) = fresh {
                // Only a help to the next command.
                let _ = engine.sweeper.warm(&shown);
            }
            if let Some(Ok(closing)) = closing {
                closing.finish();
            }
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
