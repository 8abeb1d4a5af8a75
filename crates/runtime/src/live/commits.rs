//! How what commands wrote becomes versions: commits, refused ones, and what a lost sandbox left.

use avfs_vault::{Cause, ExecId, NewVersion, Principal};
use avfs_view::Writers;
use serde_json::json;

use super::{Slot, State};
use crate::engine::Engine;
use crate::opened::{
    CommitPlan, Committed, Otherwise, commit_layer, interrupted_version, remove_in_background,
};
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
            .map_err(|error| self.uncommitted(runtime, error))
    }

    pub(super) fn uncommitted(&self, runtime: &Runtime, error: Error) -> Error {
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
    pub(super) fn salvage(
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
}

/// A commit in the middle of commands, because somebody looks.
pub(super) fn partial_version(state: &State) -> NewVersion {
    NewVersion {
        by: Principal::System,
        exec: None,
        cause: Cause::Exec,
        details: json!({ "partial": true, "execs": names(state.running.keys()) }),
    }
}

/// Whose changes a version may hold.
pub(super) fn names<'a>(execs: impl Iterator<Item = &'a ExecId>) -> Vec<String> {
    execs.map(ToString::to_string).collect()
}
