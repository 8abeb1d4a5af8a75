//! The versions of a vault, and of one path in it.

use avfs_store::rusqlite::{self, OptionalExtension};

use crate::vaults::{by_id, version_row};
use crate::{
    Change, ChangeKind, Entry, Error, Result, RootId, Trees, VaultId, VaultPath, Vaults, Version,
};

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
        self.store().read(|connection| {
            let owner = by_id(connection, vault)?;
            let sql = "SELECT * FROM version WHERE vault = ?1 AND number = ?2";
            let mut select = connection.prepare_cached(sql)?;
            let number_stored = i64::try_from(number).unwrap_or(i64::MAX);
            let found = select.query_row((vault.as_bytes(), number_stored), version_row);
            found.optional()?.ok_or(Error::VersionNotFound {
                vault: owner.name,
                number,
            })
        })
    }

    /// The newest version of the vault with this root.
    pub fn version_of(&self, vault: VaultId, root: RootId) -> Result<Option<u64>> {
        self.store().read(|connection| {
            let sql = "SELECT max(number) FROM version WHERE vault = ?1 AND root = ?2";
            let mut select = connection.prepare_cached(sql)?;
            let values = (vault.as_bytes(), root.object());
            let number = select.query_row((values.0, values.1.as_bytes()), |row| {
                row.get::<_, Option<i64>>(0)
            })?;
            Ok(number.map(|number| number as u64))
        })
    }

    /// The newest `limit` versions whose number is below `before`, newest first.
    pub fn versions_before(
        &self,
        vault: VaultId,
        before: u64,
        limit: usize,
    ) -> Result<Vec<Version>> {
        self.store().read(|connection| {
            let sql = "SELECT * FROM version WHERE vault = ?1 AND number < ?2
                ORDER BY number DESC LIMIT ?3";
            let mut select = connection.prepare_cached(sql)?;
            let before = i64::try_from(before).unwrap_or(i64::MAX);
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = select.query_map((vault.as_bytes(), before, limit), version_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The newest `limit` versions that changed what is at `path` or beneath it, newest first.
    /// Times alone are no change.
    pub fn path_history(
        &self,
        vault: VaultId,
        path: &VaultPath,
        limit: usize,
    ) -> Result<Vec<PathVersion>> {
        let mut history = Vec::new();
        let mut before = u64::MAX;
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

impl Trees {
    /// Every path that differs between two entries, the first of which is at `path`.
    pub fn diff_entries(
        &self,
        path: &VaultPath,
        before: Option<Entry>,
        after: Option<Entry>,
    ) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        self.diff_entry(path.clone(), before, after, &mut |change| {
            changes.push(change);
            true
        })?;
        Ok(changes)
    }

    /// Every path at or beneath `path` that differs between two roots.
    pub fn diff_at(&self, before: RootId, after: RootId, path: &VaultPath) -> Result<Vec<Change>> {
        let (before, after) = (self.entry(before, path)?, self.entry(after, path)?);
        self.diff_entries(path, before, after)
    }

    fn changed(
        &self,
        path: &VaultPath,
        before: &Option<Entry>,
        after: &Option<Entry>,
    ) -> Result<bool> {
        if before == after {
            return Ok(false);
        }
        let changes = self.diff_entries(path, before.clone(), after.clone())?;
        Ok(changes
            .iter()
            .any(|change| change.kind != ChangeKind::Times))
    }
}
