//! The versions of a vault, and of one path in it.

use avfs_store::ledger::Rows;

use super::rows::values;
use super::vaults::by_id;
use crate::{Entry, Error, Result, RootId, Vault, VaultId, VaultPath, Vaults, Version};

/// How many versions are read at a time.
const PAGE: usize = 256;

/// A version that changed a path, and what the path was from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathVersion {
    pub version: Version,
    /// None when that version removed it.
    pub entry: Option<Entry>,
}

impl Vaults {
    pub fn version(&self, vault: VaultId, number: u64) -> Result<Version> {
        self.store().read(|rows| {
            let vault = by_id(rows, vault)?;
            find(rows, &vault, number)
        })
    }

    /// The newest version of the vault with this root.
    pub fn version_of(&self, vault: VaultId, root: RootId) -> Result<Option<u64>> {
        let (vault, root) = (vault.as_bytes(), root.object());
        Ok(self
            .store()
            .read(|rows| rows.version_with_root(vault, root))?)
    }

    /// The newest `limit` versions whose number is below `before`, newest first.
    pub fn versions_before(
        &self,
        vault: VaultId,
        before: u64,
        limit: usize,
    ) -> Result<Vec<Version>> {
        let vault = vault.as_bytes();
        let read = |rows: &Rows<'_>| rows.versions_before(vault, before, limit);
        values(self.store().read(read)?)
    }

    /// The newest `limit` versions that changed what is at `path` or beneath it, newest first.
    /// Times alone are no change.
    pub fn path_history(
        &self,
        vault: VaultId,
        path: &VaultPath,
        limit: usize,
    ) -> Result<Vec<PathVersion>> {
        self.path_history_before(vault, path, u64::MAX, limit)
    }

    /// As [`Vaults::path_history`], of versions whose number is below `before`.
    pub fn path_history_before(
        &self,
        vault: VaultId,
        path: &VaultPath,
        mut before: u64,
        limit: usize,
    ) -> Result<Vec<PathVersion>> {
        let mut history = Vec::new();
        let mut newer: Option<PathVersion> = None;
        while history.len() < limit {
            let page = self.versions_before(vault, before, PAGE)?;
            let Some(last) = page.last() else { break };
            before = last.number;
            for version in page {
                let entry = self.trees().entry(version.root, path)?;
                let older = PathVersion { version, entry };
                if let Some(newer) = newer.replace(older.clone())
                    && self.trees().changed(path, &older.entry, &newer.entry)?
                {
                    history.push(newer);
                }
                if history.len() == limit {
                    return Ok(history);
                }
            }
        }
        // The first version of all is a change when the path was there from the beginning.
        let began_with = newer.filter(|oldest| oldest.entry.is_some());
        history.extend(began_with.filter(|_| history.len() < limit));
        Ok(history)
    }
}

pub fn find(rows: &Rows<'_>, vault: &Vault, number: u64) -> Result<Version> {
    match rows.version(vault.id.as_bytes(), number)? {
        Some(found) => found.try_into(),
        None => Err(Error::VersionNotFound {
            vault: vault.name.clone(),
            number,
        }),
    }
}
