//! Quotas: what a vault may grow to. Whatever moves a head forward is held to them.

use std::collections::HashSet;

use avfs_store::Durability;
use serde_json::json;

use super::journal;
use super::vaults::{by_id, event};
use crate::tree::delta::{Delta, NewFile};
use crate::{
    Content, Error, JournalEvent, Principal, Quota, QuotaLimit, Result, RootId, Vault, VaultId,
    VaultPath, Vaults,
};

impl Quota {
    pub fn get(&self, limit: QuotaLimit) -> Option<u64> {
        match limit {
            QuotaLimit::Bytes => self.bytes,
            QuotaLimit::Files => self.files,
            QuotaLimit::FileBytes => self.file_bytes,
        }
    }

    /// With another value for one limit.
    pub fn with(mut self, limit: QuotaLimit, value: Option<u64>) -> Quota {
        match limit {
            QuotaLimit::Bytes => self.bytes = value,
            QuotaLimit::Files => self.files = value,
            QuotaLimit::FileBytes => self.file_bytes = value,
        }
        self
    }
}

/// What is kept for a vault beside its head and counts, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside {
    pub bytes: u64,
    pub files: u64,
}

impl Vaults {
    /// Notes what there is beside the head, to be counted until it is noted anew.
    pub fn note_beside(&self, vault: VaultId, beside: Beside) {
        let mut known = self.shared().beside();
        match beside == Beside::default() {
            true => drop(known.remove(&vault)),
            false => drop(known.insert(vault, beside)),
        }
    }

    /// What was noted last.
    pub fn beside(&self, vault: VaultId) -> Beside {
        let known = self.shared().beside();
        known.get(&vault).copied().unwrap_or_default()
    }

    /// Sets or clears one limit. A vault that is above it already stays as it is, and may shrink.
    pub fn set_quota(
        &self,
        vault: VaultId,
        limit: QuotaLimit,
        value: Option<u64>,
        by: &Principal,
    ) -> Result<Vault> {
        self.store().write(Durability::Relaxed, |transaction| {
            let mut vault = by_id(transaction, vault)?;
            vault.quota = vault.quota.with(limit, value);
            let quota = vault.quota;
            transaction.set_quota(vault.id.as_bytes(), &quota.into())?;
            let details = json!({
                "bytes": quota.bytes,
                "files": quota.files,
                "file_bytes": quota.file_bytes,
            });
            journal::append(
                transaction,
                event(vault.id, *by, JournalEvent::Quota, details),
            )?;
            Ok(vault)
        })
    }

    /// Refuses a root that grows the vault beyond a limit. What grows nothing is never refused.
    pub fn check_quota(&self, vault: &Vault, new: RootId) -> Result<()> {
        let quota = vault.quota;
        if quota == Quota::default() {
            return Ok(());
        }
        let (before, after) = (self.trees().root(vault.head)?, self.trees().root(new)?);
        let Beside { bytes, files } = self.beside(vault.id);
        let totals = [
            (QuotaLimit::Bytes, before.bytes(), after.bytes(), bytes),
            (QuotaLimit::Files, before.files(), after.files(), files),
        ];
        for (limit, before, after, beside) in totals {
            let wanted = after.saturating_add(beside);
            if let Some(most) = quota.get(limit)
                && wanted > most
                && after > before
            {
                return Err(exceeded(vault, limit, most, wanted, None));
            }
        }
        match quota.file_bytes {
            Some(most) => self.check_file_sizes(vault, new, most),
            None => Ok(()),
        }
    }

    /// Refuses a file of which the size alone tells that its vault could not take it in, whatever else changes: such
    /// a file needs not be read.
    pub fn check_size(&self, vault: &Vault, path: &VaultPath, size: u64) -> Result<()> {
        let limits = [QuotaLimit::FileBytes, QuotaLimit::Bytes];
        for limit in limits {
            let Some(most) = vault.quota.get(limit).filter(|most| size > *most) else {
                continue;
            };
            // A vault that holds more already may stay as it is.
            if size > self.trees().root(vault.head)?.bytes() {
                return Err(exceeded(vault, limit, most, size, Some(path.clone())));
            }
        }
        Ok(())
    }

    fn check_file_sizes(&self, vault: &Vault, new: RootId, most: u64) -> Result<()> {
        let delta = Delta::between(self.trees(), vault.head, new)?;
        let grown = |file: &&NewFile| {
            file.size > most && file.size_before.is_none_or(|before| before < file.size)
        };
        if !delta.files.iter().any(|file| grown(&file)) {
            return Ok(());
        }
        // A file that was there under another name has only been moved.
        let gone = Delta::between(self.trees(), new, vault.head)?;
        let gone: HashSet<Content> = gone.files.iter().map(|file| file.content).collect();
        let mut large = delta.files.iter().filter(grown);
        match large.find(|file| !gone.contains(&file.content)) {
            None => Ok(()),
            Some(file) => {
                let path = Some(file.path.clone());
                let limit = QuotaLimit::FileBytes;
                Err(exceeded(vault, limit, most, file.size, path))
            }
        }
    }
}

fn exceeded(
    vault: &Vault,
    limit: QuotaLimit,
    most: u64,
    wanted: u64,
    path: Option<VaultPath>,
) -> Error {
    Error::QuotaExceeded {
        vault: vault.name.clone(),
        limit,
        most,
        wanted,
        path,
    }
}
