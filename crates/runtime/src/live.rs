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
use crate::through::{Applied, Draft};
use crate::{Error, ErrorKind, Result};

/// A layer with more names than this is exchanged for a fresh one once nothing runs in it.
const ROTATE_ENTRIES: usize = 300;

/// How often a change is tried anew that a command was faster than.
const CHANGE_TRIES: usize = 10;
/// How long commands may take to be gone once they are killed.
const ENDING: Duration = Duration::from_secs(30);

/// What becomes of commands that are in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhileRunning {
    /// They go on, and what would disturb them is refused.
    Refuse,
    /// They are killed; what they wrote becomes a version first.
    End,
}

/// A change of a vault's head by somebody who is no command.
pub(crate) struct HeadChange<'a, T> {
    pub version: NewVersion,
    /// What the head is to become; asked again when a command was faster.
    pub draft: &'a mut dyn FnMut(&Vault) -> Result<Draft<T>>,
    /// Makes a root the head and gives the number of its version, where no view is in use.
    pub publish: &'a dyn Fn(&Vault, RootId, NewVersion) -> Result<u64>,
}

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

    /// Makes somebody's change: on the head itself, or, where commands are at work, through their view.
    pub fn change<T>(&self, runtime: &Runtime, change: HeadChange<'_, T>) -> Result<(T, u64)> {
        let mut state = self.lock();
        if state.running.is_empty() {
            drop(state);
            return self.settled(runtime, |vault| {
                let draft = (change.draft)(&vault)?;
                let number = (change.publish)(&vault, draft.root, change.version)?;
                Ok((draft.value, number))
            });
        }
        for _ in 0..CHANGE_TRIES {
            let committed = self.commit(runtime, &mut state, partial_version());
            committed.map_err(|error| self.uncommitted(runtime, error))?;
            let vaults = &runtime.inner.vaults;
            let _lease = vaults.lease();
            let vault = vaults.by_id(self.vault)?;
            let draft = (change.draft)(&vault)?;
            vaults.check_quota(&vault, draft.root)?;
            let live = state.live.as_ref().expect("commands run in a view");
            let through = live.through(vaults.trees());
            if through.apply(vault.head, draft.root, draft.gesture.as_ref())? == Applied::All {
                let committed = self.commit(runtime, &mut state, change.version);
                let committed = committed.map_err(|error| self.uncommitted(runtime, error))?;
                return Ok((draft.value, committed.version.unwrap_or(vault.version)));
            }
        }
        let vault = runtime.inner.vaults.by_id(self.vault)?.name.to_string();
        Err(Error::Overtaken { vault })
    }

    /// Takes in what the view holds by now, and says what the head was before. In the journal it
    /// stands whether or not there was anything to take in.
    pub fn commit_now(
        &self,
        runtime: &Runtime,
        version: NewVersion,
    ) -> Result<(RootId, Committed)> {
        let mut state = self.lock();
        let before = runtime.inner.vaults.by_id(self.vault)?.head;
        let committed = if state.live.is_some() {
            self.commit(runtime, &mut state, version)
                .map_err(|error| self.uncommitted(runtime, error))?
        } else {
            let vaults = &runtime.inner.vaults;
            vaults.publish(self.vault, before, before, version)?;
            Committed::unchanged(before)
        };
        Ok((before, committed))
    }

    /// Ends all commands; what they wrote is committed as they leave.
    pub fn end_commands(&self, runtime: &Runtime) -> Result<()> {
        let deadline = Instant::now() + ENDING;
        loop {
            let state = self.lock();
            if state.running.is_empty() {
                return Ok(());
            }
            if let Some(live) = &state.live {
                live.sandbox.kill();
            }
            let running = state.running.len();
            drop(state);
            if Instant::now() > deadline {
                let vault = runtime.inner.vaults.by_id(self.vault)?.name.to_string();
                return Err(Error::Busy { vault, running });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
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

    /// Closes a view that has not been used for `idle`, unless it holds what could not be committed.
    pub fn close_if_idle(&self, idle: Duration) {
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        if !state.running.is_empty() || state.used.elapsed() < idle {
            return;
        }
        if let Some(live) = state.live.take_if(|live| !live.unsaved) {
            drop(state);
            // What cannot be given up now is found at the next start.
            if let Ok(closing) = live.close() {
                closing.finish();
            }
        }
    }

    /// Ends whatever runs and closes the view, keeping what was written.
    pub fn shut(&self, runtime: &Runtime) {
        let mut state = self.lock();
        if state.live.as_ref().is_some_and(|live| live.unsaved) {
            // On failure the layer stays on disk, where the next start finds it.
            let _ = self.salvage(runtime, &mut state, None);
        } else if let Some(Ok(closing)) = state.live.take().map(LiveView::close) {
            closing.finish();
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
            return Ok(Committed::unchanged(after));
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
            let due = state
                .live
                .as_ref()
                .is_some_and(|live| live.entries > ROTATE_ENTRIES && !live.unsaved);
            if !due || !state.running.is_empty() {
                return;
            }
            if let Some(Ok(closing)) = state.live.take().map(LiveView::close) {
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
