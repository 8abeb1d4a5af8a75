//! The live view of a vault: its layer, its sandbox, and who runs in it.
//!
//! All that moves a vault's head goes through its slot, one at a time. After each exec the layer is
//! committed, so a view in which nothing runs is clean, and closing it loses nothing. A commit that is
//! refused leaves the view unsaved: it stays until a later commit succeeds.

mod aside;
mod change;
mod commits;
mod exec_session;
mod mount;
mod reading;
mod resting;
mod salvage;
mod sharing;
mod unsaved;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use avfs_vault::{ExecId, Principal, Quota, RootId, Vault, VaultId};

use self::sharing::Sharing;
use crate::live::admission::Halts;
use crate::live::recover::{LeftLayer, Stranded, StrandedLayer};
use crate::live::shape::Shape;
use crate::live::view::LiveView;
use crate::live::view_base::ViewBase;
use crate::runtime::{Runtime, lock};
use crate::session::Session;
use crate::{Error, Result};
pub(crate) use change::HeadChange;
pub(crate) use commits::{SessionOutcome, is_without_keeper};
pub(crate) use exec_session::{ExecSession, Inside};
pub use reading::{Freeze, Stillness};

/// A layer with more names than this is exchanged for a fresh one: every commit looks at all of them.
const GROWN: usize = 300;
/// But not between two commands of one piece of work. What the first one wrote is in the page cache
/// under its own files, and would have to be fetched through the lens, one file at a time.
const ROTATE_AFTER: Duration = Duration::from_secs(2);
/// How long commands that are ended may take; each has its grace and then none.
const ENDING: Duration = Duration::from_secs(15);
const ENDING_POLL: Duration = Duration::from_millis(50);

/// What becomes of commands that are in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfBusy {
    /// They go on, and nothing is done.
    Refuse,
    /// They are ended first.
    End,
}

/// One vault's place for a live view.
pub(crate) struct Slot {
    pub(crate) vault: VaultId,
    state: Mutex<State>,
    /// Told when an exec has left.
    left: Condvar,
    /// Asks a commit that holds the lock to end.
    pub(crate) halts: Halts,
    /// Whether there are layers that are still to be taken in.
    pub(crate) recovering: AtomicBool,
    /// As of the last time that somebody had the lock.
    running: AtomicUsize,
    mounted: AtomicBool,
    committing: AtomicBool,
}

pub(crate) struct State {
    /// What an earlier daemon left and nobody has taken in yet.
    pub(crate) left: Vec<LeftLayer>,
    /// What could not be taken in.
    pub(crate) stranded: Vec<StrandedLayer>,
    live: Option<LiveView>,
    /// The view before, if somebody else moved the head since. It holds nothing of its own, and when there is a command
    /// again it may catch up. There is never one beside a live view.
    resting: Option<LiveView>,
    running: BTreeMap<ExecId, RunningExec>,
    used: Instant,
}

/// An exec under way.
struct RunningExec {
    /// The root that it started from.
    before: RootId,
    /// Execs that ran at the same time for a while.
    beside: BTreeSet<ExecId>,
    /// Set to have it ended.
    ending: Arc<AtomicBool>,
    sharing: Sharing,
    /// Whether the vault was mounted.
    with_mount: bool,
    /// In what kind of sandbox.
    shape: Shape,
}

impl State {
    /// Why the last commit of the view did not come about.
    pub(crate) fn refusal(&self) -> Option<&Stranded> {
        self.live.as_ref()?.uncommitted.as_ref()
    }

    fn has_grown(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.entries > GROWN)
    }
}

impl Slot {
    pub fn new(vault: VaultId) -> Slot {
        let state = State {
            left: Vec::new(),
            stranded: Vec::new(),
            live: None,
            resting: None,
            running: BTreeMap::new(),
            used: Instant::now(),
        };
        Slot {
            vault,
            state: Mutex::new(state),
            left: Condvar::new(),
            halts: Halts::default(),
            recovering: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            mounted: AtomicBool::new(false),
            committing: AtomicBool::new(false),
        }
    }

    /// How many commands run. Never waits, as nobody who asks about all vaults may wait for one.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Whether a view is open in which nothing happens. Never waits.
    pub fn is_idle(&self) -> bool {
        let state = self.state.try_lock();
        state.is_ok_and(|state| state.base().is_some() && !state.is_in_use())
    }

    /// When somebody last had its view; none while somebody has. Never waits.
    pub fn last_used(&self) -> Option<Instant> {
        self.state.try_lock().ok().map(|state| state.used)
    }

    /// Whether a view is open, at work or at rest. Never waits: a slot at which somebody is at work has one.
    pub fn is_live(&self) -> bool {
        match self.state.try_lock() {
            Ok(state) => state.base().is_some(),
            Err(_) => true,
        }
    }

    /// Whether a new slot would do as well: there is no view, and nothing that is still to be taken in. Never waits.
    pub fn is_empty(&self) -> bool {
        let state = self.state.try_lock();
        state.is_ok_and(|state| {
            let has_view = state.live.is_some() || state.resting.is_some();
            let has_layers = !state.left.is_empty() || !state.stranded.is_empty();
            !has_view && !has_layers && state.running.is_empty() && !self.is_recovering()
        })
    }

    /// What its view stands on. Never waits: whoever asks has locked a slot of its own.
    fn base(&self) -> Option<Arc<ViewBase>> {
        self.state.try_lock().ok()?.base()
    }

    /// Runs `change` while nothing else can move the head and nobody sees the old one.
    pub fn settled<T>(
        &self,
        runtime: &Runtime,
        change: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        self.settle(runtime, None, State::rest, change)
    }

    /// Runs `change` while nothing else can move the head. Commands in the way are ended first, if the caller says so.
    pub fn settled_after<T>(
        &self,
        by: &Session,
        if_busy: IfBusy,
        change: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        let ended_by = (if_busy == IfBusy::End).then_some(by);
        self.settle(by, ended_by, State::rest, change)
    }

    /// Runs `change` while nothing else can move the head, and closes the view: after such a change no open one will do.
    pub fn closed<T>(
        &self,
        runtime: &Runtime,
        change: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        self.settle(runtime, None, State::close, change)
    }

    fn settle<T>(
        &self,
        runtime: &Runtime,
        ended_by: Option<&Session>,
        leave: impl FnOnce(&mut State) -> Result<()>,
        change: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        let state = self.ready_after(runtime, ended_by)?;
        self.settle_in(runtime, state, ended_by, leave, change)
    }

    /// Settles for a caller that has the slot already.
    fn settle_in<T>(
        &self,
        runtime: &Runtime,
        state: MutexGuard<'_, State>,
        ended_by: Option<&Session>,
        leave: impl FnOnce(&mut State) -> Result<()>,
        change: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.without_commands_in(runtime, state, ended_by)?;
        if let Some(by) = ended_by
            && state.mount().is_some()
        {
            by.govern("a mount")?;
            let last = mount::last_version(Principal::SYSTEM);
            self.finish_mount(runtime, &mut state, last, &|| runtime.is_over())?;
        }
        state.check_unmounted()?;
        self.save(runtime, &mut state)?;
        leave(&mut state)?;
        let _lease = runtime.inner.vaults.lease();
        let vault = runtime.inner.vaults.by_id(self.vault)?;
        if vault.quota != Quota::default() {
            runtime.with_engine(|engine| runtime.weigh_scratch(engine, &vault))?;
        }
        change(vault)
    }

    /// The slot while nothing runs in it: what does is respected or, if it is theirs to end, ended by somebody.
    fn without_commands(
        &self,
        runtime: &Runtime,
        ended_by: Option<&Session>,
    ) -> Result<MutexGuard<'_, State>> {
        let state = self.ready_after(runtime, ended_by)?;
        self.without_commands_in(runtime, state, ended_by)
    }

    fn without_commands_in<'a>(
        &'a self,
        runtime: &Runtime,
        mut state: MutexGuard<'a, State>,
        ended_by: Option<&Session>,
    ) -> Result<MutexGuard<'a, State>> {
        let deadline = Instant::now() + ENDING;
        while !state.running.is_empty() {
            let Some(by) = ended_by.filter(|_| Instant::now() < deadline) else {
                return Err(self.busy(runtime, &state)?);
            };
            for exec in state.running.keys() {
                by.check_exec(*exec)?;
            }
            for (exec, running) in &state.running {
                runtime.note_end_of_job(*exec, "somebody took the vault with --force");
                running.ending.store(true, Ordering::Release);
            }
            let waited = self.left.wait_timeout(state, ENDING_POLL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(state)
    }

    /// Closes a view that has not been used for `idle`, unless it holds what could not be committed;
    /// one that has rested a little while gets a fresh layer.
    pub fn tidy(&self, runtime: &Runtime, idle: Duration) {
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        if state.running.is_empty() && state.used.elapsed() >= idle {
            // A mount stays; the sandbox in it need not.
            state.live.as_mut().and_then(|live| live.beside.take());
        }
        if state.is_in_use() {
            return;
        }
        if state.used.elapsed() < idle {
            if state.used.elapsed() >= ROTATE_AFTER && state.has_grown() {
                self.rotate_in_background(runtime);
            }
            return;
        }
        let clean = state.live.take_if(|live| !live.unsaved);
        if let Some(view) = clean.or(state.resting.take()) {
            drop(state);
            // What cannot be given up now is found at the next start.
            if let Ok(closing) = view.close() {
                closing.finish();
            }
            // Only memory: it is tried again after the next work.
            let _ = runtime.release_caches();
        }
    }

    /// Ends whatever runs and closes the view, keeping what was written.
    pub fn shut(&self, runtime: &Runtime) {
        let mut state = self.lock();
        if state.mount().is_some() {
            let (last, over) = (mount::last_version(Principal::SYSTEM), || runtime.is_over());
            let _ = self.finish_mount(runtime, &mut state, last, &over);
        } else if state.live.as_ref().is_some_and(|live| live.unsaved) {
            // On failure the layer stays on disk, where the next start finds it.
            let _ = self.salvage(runtime, &mut state, None);
        } else {
            let has_grown = state.has_grown();
            let view = state.live.take().or(state.resting.take());
            match view.map(LiveView::close) {
                // The next start has the time to remove it.
                Some(Ok(closing)) if has_grown => closing.leave(),
                Some(Ok(closing)) => closing.finish(),
                // The next start finds it, too.
                Some(Err(_)) | None => {}
            }
        }
    }

    /// That commands are in the way, and which of them are jobs.
    fn busy(&self, runtime: &Runtime, state: &State) -> Result<Error> {
        if state.is_taken() {
            let vault = runtime.inner.vaults.by_id(self.vault)?.name.to_string();
            return Ok(Error::RunsAlone { vault });
        }
        let execs: Vec<ExecId> = state.running.keys().copied().collect();
        Ok(Error::Busy {
            vault: runtime.inner.vaults.by_id(self.vault)?.name.to_string(),
            running: execs.len(),
            jobs: runtime.jobs_among(&execs),
        })
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock().ok()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
