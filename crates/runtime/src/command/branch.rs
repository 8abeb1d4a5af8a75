//! A fork made for one command.

use avfs_vault::{AfterFork, ExecId, ForkPoint, Principal, Vault, VaultId, VaultName};

use crate::Result;
use crate::command::report::ForkReport;
use crate::live::slot::IfBusy;
use crate::runtime::Runtime;
use crate::session::Session;

/// Marks a fork that goes away with its command, whatever becomes of the daemon.
const THROWAWAY: &str = "own.throwaway";

/// A fork that goes away when this is dropped.
pub(crate) struct Fork {
    pub vault: Vault,
    session: Session,
    stays: bool,
}

impl Fork {
    /// Forks `source` as it is now, also with what running commands have written.
    pub fn of(session: &Session, source: &Vault, exec: ExecId) -> Result<Fork> {
        let name: VaultName = format!("fork-{exec}").parse()?;
        let (forked, _) =
            session.vault_fork(&source.name, &ForkPoint::Head, &name, AfterFork::Stay)?;
        let fork = Fork {
            vault: forked.vault,
            session: session.clone(),
            stays: false,
        };
        fork.mark(Some(exec.to_string()))?;
        Ok(fork)
    }

    /// Gives the fork up, or to whoever wants it.
    pub fn end(mut self, keep: bool) -> Result<ForkReport> {
        let name = self.vault.name.clone();
        if keep {
            self.mark(None)?;
        } else {
            // It was made for this command: whoever else found their way into it is ended.
            self.session.vault_delete(&name, IfBusy::End)?;
        }
        self.stays = true;
        Ok(ForkReport { name, kept: keep })
    }

    fn mark(&self, exec: Option<String>) -> Result<()> {
        let change = [(THROWAWAY.to_owned(), exec)];
        let vaults = &self.session.inner.vaults;
        Ok(vaults.change_settings(self.vault.id, &change, &Principal::SYSTEM)?)
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        if !self.stays {
            // Only after an error of ours. If this fails too, the next start finds the mark.
            let _ = self.session.vault_delete(&self.vault.name, IfBusy::End);
        }
    }
}

impl Runtime {
    /// The forks of commands that an earlier daemon did not see end.
    pub(crate) fn throwaway_forks(&self) -> Result<Vec<VaultId>> {
        Ok(self.inner.vaults.with_setting(THROWAWAY)?)
    }

    /// Removes them, whatever they hold.
    pub(crate) fn remove_throwaway_forks(&self, forks: Vec<VaultId>) -> Result<()> {
        for id in forks {
            let vault = self.inner.vaults.by_id(id)?;
            self.by(Principal::SYSTEM)
                .vault_delete(&vault.name, IfBusy::End)?;
        }
        Ok(())
    }
}
