//! The rules of a vault, as the text their author wrote. What they mean is known elsewhere.

use avfs_store::Durability;
use avfs_store::ledger::Transaction;
use serde_json::json;

use super::journal;
use super::vaults::{by_id, event};
use crate::{Error, JournalEvent, Principal, Result, VaultId, Vaults};

impl Vaults {
    /// The vault's own rules; none if nobody wrote any.
    pub fn policy(&self, vault: VaultId) -> Result<Option<String>> {
        Ok(self.store().read(|rows| rows.policy(vault.as_bytes()))?)
    }

    /// Replaces the rules, if they are still what whoever wrote the new ones has seen.
    pub fn set_policy(
        &self,
        vault: VaultId,
        seen: Option<&str>,
        text: Option<&str>,
        by: &Principal,
    ) -> Result<()> {
        self.store().write(Durability::Full, |transaction| {
            let vault = by_id(transaction, vault)?;
            if transaction.policy(vault.id.as_bytes())?.as_deref() != seen {
                return Err(Error::PolicyChanged { vault: vault.name });
            }
            transaction.set_policy(vault.id.as_bytes(), text)?;
            let details = json!({ "before": seen, "after": text });
            journal::append(
                transaction,
                event(vault.id, *by, JournalEvent::PolicySet, details),
            )?;
            Ok(())
        })
    }
}

/// A fork is bound by the rules of what it was forked from.
pub fn inherit(transaction: &Transaction<'_>, source: VaultId, fork: VaultId) -> Result<()> {
    Ok(transaction.copy_policy(source.as_bytes(), fork.as_bytes())?)
}
