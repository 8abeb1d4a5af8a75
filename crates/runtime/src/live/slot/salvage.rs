//! Layers that change hands: of a sandbox that died, and of one that has grown.

use avfs_vault::{Cause, NewVersion};
use avfs_view::{StagingUse, Writers};
use serde_json::json;

use super::{Slot, State};
use crate::Result;
use crate::live::layer_commit::{
    CommitPlan, Committed, OnQuota, commit_layer, interrupted_version,
};
use crate::live::recover::StrandedLayer;
use crate::live::shape::Access;
use crate::live::view::{LiveView, open, remove_in_background};
use crate::retried::{Retried, note};
use crate::runtime::Runtime;

impl Slot {
    /// Gives a view up whose sandbox died.
    pub(super) fn bury(&self, runtime: &Runtime, state: &mut State) -> Result<()> {
        let is_dead = |live: &LiveView| !live.backend.is_mount() && !live.is_alive();
        let Some(dead) = state.live.take_if(|live| is_dead(live)) else {
            return Ok(());
        };
        note(Retried::Sandbox);
        if dead.unsaved {
            state.live = Some(dead);
            return self.salvage(runtime, state, None).map(drop);
        }
        dead.backend.end();
        remove_in_background(dead.layer.retire()?, runtime.engine()?);
        Ok(())
    }

    /// The sandbox died with commands in it: what they wrote becomes a version marked interrupted.
    pub(super) fn salvage(
        &self,
        runtime: &Runtime,
        state: &mut State,
        version: Option<NewVersion>,
    ) -> Result<Committed> {
        let mut live = state.live.take().expect("only called when there is a view");
        live.backend.end();
        let version = match version {
            Some(version) => NewVersion {
                cause: Cause::Interrupted,
                ..version
            },
            None => interrupted_version(json!({ "why": "the sandbox was lost" })),
        };
        let stop = || runtime.is_over() || self.halts.any();
        let mut engine = runtime.engine()?;
        let outcome = self.commit_by(runtime, &mut engine, |engine| {
            let plan = CommitPlan {
                vault: self.vault,
                layer: &mut live.layer,
                cache: &mut live.cache,
                writers: Writers::None,
                staging: StagingUse::Abandoned,
                version: version.clone(),
                since: None,
                on_quota: OnQuota::KeepAside,
                stop: &stop,
            };
            commit_layer(runtime, engine, plan)
        });
        match outcome {
            Ok((committed, _)) => {
                remove_in_background(live.layer.retire()?, engine);
                Ok(committed)
            }
            // The sandbox is gone, so nothing can be removed in it; the vault is used without it.
            Err(error) => {
                let found = live.layer.leave(self.vault);
                state
                    .stranded
                    .push(StrandedLayer::new(runtime, found, &error));
                Err(error)
            }
        }
    }

    pub(super) fn rotate_in_background(&self, runtime: &Runtime) {
        let (slot, runtime) = (runtime.slot(self.vault), runtime.clone());
        std::thread::spawn(move || {
            let mut state = slot.lock();
            let unsaved = state.live.as_ref().is_some_and(|live| live.unsaved);
            if unsaved || !state.has_grown() || !state.running.is_empty() {
                return;
            }
            let shape = state.live.as_ref().map(|live| live.shape);
            let closing = state.live.take().map(LiveView::close);
            // If this fails, so will the next exec, which can say why.
            state.live = open(
                &runtime,
                slot.vault,
                shape.unwrap_or_default(),
                Access::ReadWrite,
                &[],
            )
            .ok();
            let fresh = state
                .live
                .as_ref()
                .map(|live| (live.engine.clone(), live.base.shown.clone()));
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
}
