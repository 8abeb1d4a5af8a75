//! A command that has its vault to itself: nothing else runs there or changes it until it has ended.

use std::sync::Arc;

use avfs_vault::{ExecId, RootId, Vault};

use super::{Company, Slot, State};
use crate::entered::Entered;
use crate::opened::Shape;
use crate::runtime::Runtime;
use crate::{Error, Result};

impl State {
    /// Whether a command has the vault to itself.
    pub(super) fn is_taken(&self) -> bool {
        let mut running = self.running.values();
        running.any(|under| under.company == Company::None)
    }
}

impl Slot {
    /// Opens a fresh sandbox on exactly the root that `admit` names, which must be the vault's head. `admit` is asked while
    /// the head cannot move.
    pub fn enter_alone(
        self: &Arc<Self>,
        runtime: &Runtime,
        exec: ExecId,
        shape: Shape,
        admit: impl FnOnce() -> Result<RootId>,
    ) -> Result<Entered> {
        let mut state = self.without_commands(runtime, None)?;
        state.check_free_for_commands()?;
        self.bury(runtime, &mut state)?;
        self.save(runtime, &mut state)?;
        let root = admit()?;
        let vault = runtime.inner.vaults.by_id(self.vault)?;
        check_at(&vault, vault.head, root)?;
        // A sandbox that commands have used keeps what they left in memory: /var/tmp, /run, /dev/shm, shared memory,
        // message queues.
        state.close()?;
        self.join(runtime, state, exec, shape.alone(), Company::None)
    }

    /// Opens a read-only view of its own on exactly the root that `admit` names, which must be the vault's head. What
    /// becomes of the vault meanwhile is not seen in it.
    pub fn look_alone(
        self: &Arc<Self>,
        runtime: &Runtime,
        shape: Shape,
        admit: impl FnOnce() -> Result<RootId>,
    ) -> Result<Entered> {
        let root = admit()?;
        let entered = self.look(runtime, shape.alone())?;
        let vault = runtime.inner.vaults.by_id(self.vault)?;
        check_at(&vault, entered.before, root)?;
        Ok(entered)
    }

    /// Refuses whoever wants to work in the vault while a command has it to itself.
    pub(super) fn check_shared(&self, runtime: &Runtime, state: &State) -> Result<()> {
        match state.is_taken() {
            true => Err(self.busy(runtime, state)?),
            false => Ok(()),
        }
    }
}

fn check_at(vault: &Vault, found: RootId, expected: RootId) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::HeadMoved {
            vault: vault.name.to_string(),
            expected,
        }),
    }
}
