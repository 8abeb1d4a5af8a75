//! Whether commands share a vault: one that needs approval has it to itself.

use super::{Slot, State};
use crate::Result;
use crate::runtime::Runtime;

/// Whether other commands may begin while one runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    Shared,
    /// Nothing else runs there or changes the vault until it has ended.
    Alone,
}

impl State {
    /// Whether a command has the vault to itself.
    pub(super) fn is_taken(&self) -> bool {
        let mut running = self.running.values();
        running.any(|running| running.sharing == Sharing::Alone)
    }
}

impl Slot {
    /// Refuses whoever wants to work in the vault while a command has it to itself.
    pub(super) fn check_shared(&self, runtime: &Runtime, state: &State) -> Result<()> {
        match state.is_taken() {
            true => Err(self.busy(runtime, state)?),
            false => Ok(()),
        }
    }
}
