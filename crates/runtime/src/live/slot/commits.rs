//! How what commands wrote becomes versions: commits, and refused ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avfs_vault::{Cause, ExecId, NewVersion, Principal};
use avfs_view::{StagingUse, Writers};
use serde_json::json;

use super::{Slot, State};
use crate::live::admission::Stop;
use crate::live::engine::Engine;
use crate::live::layer_commit::commit_version;
use crate::live::layer_commit::{
    CommitPlan, Committed, OnQuota, commit_layer, interrupted_version,
};
use crate::live::recover::Stranded;
use crate::live::view_backend::ViewBackend;
use crate::runtime::Runtime;
use crate::{Error, Result};

impl Slot {
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
    if state.mount().is_some() {
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
