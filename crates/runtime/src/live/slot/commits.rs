//! How an exec leaves its sandbox, and how what commands wrote becomes versions: commits, and refused ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use avfs_vault::{Cause, CheckpointName, ExecId, NewJournalEntry, NewVersion, Principal, RootId};
use avfs_view::{Skipped, StagingUse, Writers};
use serde_json::json;

use super::exec_session::{ExecSession, Seat};
use super::{Sharing, Slot, State};
use crate::live::admission::Stop;
use crate::live::engine::Engine;
use crate::live::layer_commit::{
    CommitPlan, Committed, OnQuota, commit_layer, commit_version, interrupted_version,
};
use crate::live::recover::Stranded;
use crate::live::view_backend::ViewBackend;
use crate::runtime::Runtime;
use crate::{Error, Result};

/// Commits that may look at many names before the layer is exchanged for a fresh one, even between two commands of one
/// piece of work: by then looking at them has cost as much as fetching what is in the page cache would.
const ROTATE_COMMITS: u32 = 20;

/// What an exec left behind.
pub(crate) struct SessionOutcome {
    pub before: RootId,
    pub after: RootId,
    /// The new version, where the state differs from the one before the commit.
    pub version: Option<u64>,
    pub skipped: Vec<Skipped>,
    /// Other execs whose changes may be among these.
    pub shared_with: Vec<ExecId>,
    /// Whether changes of host programs, through a mount, may be among these.
    pub with_mount: bool,
    /// The checkpoint that holds what the quota kept out of the vault.
    pub aside: Option<CheckpointName>,
}

impl SessionOutcome {
    /// For a commit that did not come about.
    pub fn nothing(before: RootId) -> SessionOutcome {
        SessionOutcome {
            before,
            after: before,
            version: None,
            skipped: Vec::new(),
            shared_with: Vec::new(),
            with_mount: false,
            aside: None,
        }
    }
}

impl ExecSession {
    /// Commits what the layer holds by now, unless it is stopped.
    pub fn leave(mut self, version: NewVersion, stop: Stop<'_>) -> Result<SessionOutcome> {
        match self.seat.take() {
            Some(seat) => self.leave_seat(seat, version, stop),
            None => Ok(SessionOutcome::nothing(self.before)),
        }
    }

    fn leave_seat(
        &self,
        seat: Seat,
        version: NewVersion,
        stop: Stop<'_>,
    ) -> Result<SessionOutcome> {
        match seat {
            Seat::Shared { slot, exec } => slot.leave(&self.runtime, exec, version, stop),
            Seat::Apart { view, vault } => {
                view.close()?.in_background();
                let mut details = version.details;
                details["changed_paths"] = json!(0);
                self.runtime.inner.vaults.record(NewJournalEntry {
                    vault: Some(vault),
                    exec: version.exec,
                    principal: version.by,
                    operation: version.cause.into(),
                    details,
                })?;
                Ok(SessionOutcome::nothing(self.before))
            }
        }
    }
}

impl Drop for ExecSession {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            // Only after an error of ours: what the command may have written is still kept.
            // Others may go on: whether the sandbox is lost, the slot sees for itself.
            let version = NewVersion {
                cause: Cause::Exec,
                ..interrupted_version(json!({ "why": "the exec failed" }))
            };
            let _ = self.leave_seat(seat, version, &|| false);
        }
    }
}

impl Slot {
    /// Commits what the layer holds once `exec` has ended.
    fn leave(
        &self,
        runtime: &Runtime,
        exec: ExecId,
        mut version: NewVersion,
        stop: Stop<'_>,
    ) -> Result<SessionOutcome> {
        let mut state = self.lock();
        let left = state.running.remove(&exec).expect("an exec leaves once");
        self.running.store(state.running.len(), Ordering::Relaxed);
        let shared_with: Vec<ExecId> = left.beside.iter().copied().collect();
        self.left.notify_all();
        if !state.running.is_empty() {
            // Theirs is in it too, as far as they have come.
            version.details["execs"] = json!(names(state.running.keys().chain([&exec])));
        }
        state.used = Instant::now();
        // Whoever watched the command may know of the sandbox's end before it shows.
        let known = version.cause == Cause::Interrupted;
        let mut lost = false;
        if let Some(live) = &mut state.live {
            let is_dead = known || !live.sandbox().is_ok_and(|sandbox| sandbox.is_alive());
            match live.backend.is_mount() {
                // The mount goes on without it.
                true => drop(live.beside.take_if(|_| is_dead)),
                false => lost = known || !live.is_alive(),
            }
        }
        let committed = if lost {
            self.salvage(runtime, &mut state, Some(version))
        } else {
            self.commit_of(runtime, &mut state, version, Some(left.before), stop)
        };
        let committed = committed.map_err(|error| self.as_uncommitted(runtime, error))?;
        if left.sharing == Sharing::Alone {
            // The next command wants the vault's own /tmp.
            state.close()?;
        }
        if !state.is_in_use() && state.has_grown() {
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
        Ok(SessionOutcome {
            before: left.before,
            after,
            version,
            skipped,
            shared_with,
            with_mount: left.with_mount,
            aside,
        })
    }

    /// Commits what an earlier commit was refused for, or says once more why it cannot be.
    pub(super) fn save(&self, runtime: &Runtime, state: &mut State) -> Result<()> {
        let Some(live) = state.live.as_mut().filter(|live| live.unsaved) else {
            return Ok(());
        };
        let unknown = || interrupted_version(json!({ "why": "an earlier commit was refused" }));
        let version = live.refused.take().unwrap_or_else(unknown);
        let saved = self.commit(runtime, state, version);
        saved
            .map(drop)
            .map_err(|error| self.as_uncommitted(runtime, error))
    }

    pub(super) fn as_uncommitted(&self, runtime: &Runtime, error: Error) -> Error {
        let vault = runtime.inner.vaults.by_id(self.vault);
        Error::Uncommitted {
            vault: vault.map_or_else(|_| self.vault.to_string(), |vault| vault.name.to_string()),
            source: Box::new(error),
        }
    }

    /// Base and layer become the head; without a view the head is what it is.
    pub(super) fn commit(
        &self,
        runtime: &Runtime,
        state: &mut State,
        version: NewVersion,
    ) -> Result<Committed> {
        self.commit_unless(runtime, state, version, &|| false)
    }

    /// Notes for readers that a commit has the slot.
    pub(super) fn committing<T>(&self, commit: impl FnOnce() -> T) -> T {
        self.committing.store(true, Ordering::Release);
        let committed = commit();
        self.committing.store(false, Ordering::Release);
        committed
    }

    /// Commits with the help of a keeper; where that died meanwhile, with the help of the next one.
    pub(super) fn commit_by<T>(
        &self,
        runtime: &Runtime,
        engine: &mut Arc<Engine>,
        mut commit: impl FnMut(&Engine) -> Result<T>,
    ) -> Result<T> {
        self.committing(|| {
            let outcome = commit(engine);
            if !is_without_keeper(&outcome, engine) {
                return outcome;
            }
            *engine = runtime.engine()?;
            commit(engine)
        })
    }

    /// Commits, unless it is stopped. Then the layer stays as it is, and the next to come tries again.
    pub(super) fn commit_unless(
        &self,
        runtime: &Runtime,
        state: &mut State,
        version: NewVersion,
        stop: Stop<'_>,
    ) -> Result<Committed> {
        self.commit_of(runtime, state, version, None, stop)
    }

    /// Commits the work of a command that began with `since`, unless it is stopped.
    fn commit_of(
        &self,
        runtime: &Runtime,
        state: &mut State,
        version: NewVersion,
        since: Option<RootId>,
        stop: Stop<'_>,
    ) -> Result<Committed> {
        let stop = || stop() || runtime.is_over() || self.halts.any();
        let Some(live) = &mut state.live else {
            let after = runtime.inner.vaults.by_id(self.vault)?.head;
            return Ok(Committed::unchanged(after));
        };
        let quiet = live.backend.quiesce()?;
        let writers = match &live.backend {
            ViewBackend::Sandbox(_) if state.running.is_empty() => Writers::None,
            ViewBackend::Mount(_) if quiet.is_some() => Writers::None,
            ViewBackend::Sandbox(_) | ViewBackend::Mount(_) => Writers::Some,
        };
        let mut engine = live.engine.clone();
        let committed = self.commit_by(runtime, &mut engine, |engine| {
            let plan = CommitPlan {
                vault: self.vault,
                layer: &mut live.layer,
                cache: &mut live.cache,
                writers,
                staging: StagingUse::InUse,
                version: version.clone(),
                since,
                on_quota: OnQuota::Refuse,
                stop: &stop,
            };
            commit_layer(runtime, engine, plan)
        });
        match committed {
            Ok((committed, entries)) => {
                live.entries = entries;
                drop(quiet);
                live.unsaved = writers == Writers::Some || live.backend.is_mount();
                (live.refused, live.uncommitted) = (None, None);
                live.backend.set_room(runtime, self.vault)?;
                Ok(committed)
            }
            Err(error) => {
                live.uncommitted = Some(Stranded::because(runtime, &error));
                if writers == Writers::None && !live.backend.is_mount() {
                    live.refused = Some(version);
                }
                Err(error)
            }
        }
    }

    pub(super) fn commit_partly(&self, runtime: &Runtime, state: &mut State) -> Result<Committed> {
        let version = partial_version(state);
        self.commit(runtime, state, version)
    }
}

/// Whether something failed only because the keeper died.
pub(crate) fn is_without_keeper<T>(outcome: &Result<T>, engine: &Engine) -> bool {
    matches!(outcome, Err(Error::View(avfs_view::Error::ScannerLost))) && !engine.keeper.is_alive()
}

/// A commit in the middle of somebody's work, because somebody else looks.
fn partial_version(state: &State) -> NewVersion {
    if state.mount().is_some() && state.running.is_empty() {
        return commit_version(Principal::SYSTEM, json!({ "partial": true }));
    }
    NewVersion {
        by: Principal::SYSTEM,
        exec: None,
        cause: Cause::Exec,
        details: json!({ "partial": true, "execs": names(state.running.keys()) }),
    }
}

/// Whose changes a version may hold.
pub(super) fn names<'a>(execs: impl Iterator<Item = &'a ExecId>) -> Vec<String> {
    execs.map(ToString::to_string).collect()
}
