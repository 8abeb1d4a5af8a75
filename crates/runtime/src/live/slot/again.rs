//! Commands whose sandbox died before they could have begun.

use std::sync::Arc;

use avfs_sandbox::Sandbox;
use avfs_vault::ExecId;

use super::Slot;
use crate::entered::Inside;
use crate::opened::{LiveView, open};
use crate::options::Access;
use crate::runtime::Runtime;
use crate::{Error, Result};

impl Slot {
    /// Joins another sandbox for an exec whose first one died before the command could have begun.
    pub fn enter_again(
        &self,
        runtime: &Runtime,
        exec: ExecId,
        lost: &Arc<Sandbox>,
    ) -> Result<Inside> {
        let mut state = self.lock();
        let gone = || Error::Sandbox(avfs_sandbox::Error::SandboxGone);
        let shape = state.running.get(&exec).ok_or_else(gone)?.shape;
        // It may still be dying.
        let is_lost = |live: &LiveView| !live.is_alive() || live.stage.is(lost);
        if state.live.as_ref().is_some_and(is_lost) {
            self.salvage(runtime, &mut state, None)?;
        }
        if state.live.is_none() {
            state.live = Some(open(runtime, self.vault, shape, Access::ReadWrite, &[])?);
        }
        let live = state.live.as_mut().ok_or_else(gone)?;
        live.unsaved = true;
        if live.shape != shape {
            return Err(gone());
        }
        live.inside()
    }
}
