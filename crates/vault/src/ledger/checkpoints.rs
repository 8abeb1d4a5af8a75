//! Checkpoints: saving, finding, deleting, and going back to one.

use avfs_store::ledger::{CheckpointRow, Rows, Transaction};
use avfs_store::{Durability, WayOut};
use serde_json::json;
use std::collections::HashMap;

use super::journal;
use super::rows::{parsed, values};
use super::vaults::{advance, by_id, event};
use crate::{
    Cause, Checkpoint, CheckpointName, CheckpointOrigin, Description, Error, JournalEvent,
    Principal, Restored, Result, RootId, Time, VaultId, Vaults,
};

/// What a checkpoint is to be called, and what is to be said about it.
#[derive(Clone, Copy, Default)]
pub struct CheckpointLabel<'a> {
    /// Without a name, one that is free is made from the time.
    pub name: Option<&'a CheckpointName>,
    pub description: Option<&'a Description>,
}

impl<'a> From<Option<&'a CheckpointName>> for CheckpointLabel<'a> {
    fn from(name: Option<&'a CheckpointName>) -> CheckpointLabel<'a> {
        CheckpointLabel {
            name,
            description: None,
        }
    }
}

impl Vaults {
    /// Names `root`.
    pub fn save_checkpoint<'a>(
        &self,
        vault: VaultId,
        label: impl Into<CheckpointLabel<'a>>,
        root: RootId,
        origin: CheckpointOrigin,
        by: &Principal,
    ) -> Result<Checkpoint> {
        let label = label.into();
        let durability = match origin {
            CheckpointOrigin::Automatic => Durability::Relaxed,
            CheckpointOrigin::Asked | CheckpointOrigin::BeforeRestore => Durability::Full,
        };
        self.store().write(durability, |transaction| {
            let head = by_id(transaction, vault)?.head;
            self.check_stored(head, root)?;
            let name = match label.name {
                Some(name) => name.clone(),
                None => free_name(transaction, vault, "checkpoint")?,
            };
            let checkpoint = Checkpoint {
                name,
                description: label.description.cloned(),
                root,
                origin,
                time: Time::now(),
                by: *by,
            };
            insert(transaction, vault, &checkpoint)?;
            let details = json!({
                "checkpoint": checkpoint.name.as_str(),
                "origin": origin.as_str(),
                "root": root.to_string(),
            });
            journal::append(
                transaction,
                event(vault, *by, JournalEvent::CheckpointSave, details),
            )?;
            Ok(checkpoint)
        })
    }

    /// How many checkpoints a vault has.
    pub fn checkpoint_count(&self, vault: VaultId) -> Result<usize> {
        let count = self
            .store()
            .read(|rows| rows.count_checkpoints(vault.as_bytes()))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// How many checkpoints each vault has that has any.
    pub fn checkpoint_counts(&self) -> Result<HashMap<VaultId, usize>> {
        let counts = self.store().read(|rows| rows.checkpoint_counts())?;
        let counts = counts.into_iter().map(|(vault, count)| {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            (VaultId::from_bytes(vault), count)
        });
        Ok(counts.collect())
    }

    /// Oldest first.
    pub fn checkpoints(&self, vault: VaultId) -> Result<Vec<Checkpoint>> {
        self.store().read(|rows| {
            by_id(rows, vault)?;
            values(rows.checkpoints(vault.as_bytes())?)
        })
    }

    pub fn checkpoint(&self, vault: VaultId, name: &CheckpointName) -> Result<Checkpoint> {
        self.store().read(|rows| {
            by_id(rows, vault)?;
            find(rows, vault, name)
        })
    }

    pub fn delete_checkpoint(
        &self,
        vault: VaultId,
        name: &CheckpointName,
        by: &Principal,
    ) -> Result<()> {
        self.remove_checkpoint(vault, name, *by, JournalEvent::CheckpointDelete)
    }

    /// Removes a checkpoint nobody asked for; refuses one that somebody did.
    pub fn drop_automatic_checkpoint(
        &self,
        vault: VaultId,
        name: &CheckpointName,
        by: &Principal,
    ) -> Result<()> {
        self.remove_checkpoint(vault, name, *by, JournalEvent::CheckpointDrop)
    }

    fn remove_checkpoint(
        &self,
        vault: VaultId,
        name: &CheckpointName,
        by: Principal,
        what: JournalEvent,
    ) -> Result<()> {
        self.freeing(WayOut::Small, Durability::Relaxed, |transaction| {
            by_id(transaction, vault)?;
            let checkpoint = find(transaction, vault, name)?;
            let is_automatic = checkpoint.origin == CheckpointOrigin::Automatic;
            if what == JournalEvent::CheckpointDrop && !is_automatic {
                return Err(Error::CheckpointNotAutomatic { name: name.clone() });
            }
            transaction.remove_checkpoint(vault.as_bytes(), name.as_str())?;
            let details = json!({
                "checkpoint": name.as_str(),
                "root": checkpoint.root.to_string(),
            });
            journal::append(transaction, event(vault, by, what, details))?;
            Ok(())
        })
    }

    /// Moves the head back to a checkpoint, all or nothing. What was there before is kept as a
    /// checkpoint of its own, and so are newer checkpoints.
    pub fn restore(
        &self,
        vault: VaultId,
        expected: RootId,
        name: &CheckpointName,
        by: &Principal,
    ) -> Result<Restored> {
        self.freeing(WayOut::Small, Durability::Full, |transaction| {
            let mut vault = by_id(transaction, vault)?;
            vault.expect_head(expected)?;
            let checkpoint = find(transaction, vault.id, name)?;
            // The head may be damaged, and then this is the way out; what it goes back to may not.
            self.trees().root(checkpoint.root)?;
            let undo = Checkpoint {
                name: free_name(transaction, vault.id, "before-restore")?,
                description: None,
                root: vault.head,
                origin: CheckpointOrigin::BeforeRestore,
                time: Time::now(),
                by: *by,
            };
            insert(transaction, vault.id, &undo)?;
            let cause = Cause::Restore;
            let version = advance(transaction, &mut vault, checkpoint.root, *by, None, cause)?;
            let details = json!({
                "checkpoint": name.as_str(),
                "undo": undo.name.as_str(),
                "from": expected.to_string(),
                "root": version.root.to_string(),
                "version": version.number,
            });
            journal::append(transaction, event(vault.id, *by, cause, details))?;
            Ok(Restored { version, undo })
        })
    }
}

/// `prefix-YYYYMMDD-HHMMSS-xxxx`, in UTC, not yet taken.
fn free_name(rows: &Rows<'_>, vault: VaultId, prefix: &str) -> Result<CheckpointName> {
    let stamp = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    loop {
        let random = avfs_store::fresh_uuid().as_u128() & 0xffff;
        let name: CheckpointName = format!("{prefix}-{stamp}-{random:04x}").parse()?;
        if rows.checkpoint(vault.as_bytes(), name.as_str())?.is_none() {
            return Ok(name);
        }
    }
}

fn insert(transaction: &Transaction<'_>, vault: VaultId, checkpoint: &Checkpoint) -> Result<()> {
    let (vault, name) = (vault.as_bytes(), &checkpoint.name);
    if transaction.checkpoint(vault, name.as_str())?.is_some() {
        return Err(Error::CheckpointExists { name: name.clone() });
    }
    let row = CheckpointRow {
        name: name.to_string(),
        description: checkpoint
            .description
            .as_ref()
            .map(|it| it.as_str().to_owned()),
        root: checkpoint.root.object(),
        origin: checkpoint.origin.to_string(),
        principal: checkpoint.by.to_string(),
        time: checkpoint.time.into(),
    };
    Ok(transaction.add_checkpoint(vault, &row)?)
}

pub fn find(rows: &Rows<'_>, vault: VaultId, name: &CheckpointName) -> Result<Checkpoint> {
    match rows.checkpoint(vault.as_bytes(), name.as_str())? {
        Some(found) => found.try_into(),
        None => Err(Error::CheckpointNotFound { name: name.clone() }),
    }
}

impl TryFrom<CheckpointRow> for Checkpoint {
    type Error = Error;

    fn try_from(row: CheckpointRow) -> Result<Checkpoint> {
        Ok(Checkpoint {
            name: parsed(&row.name)?,
            description: row.description.as_deref().map(parsed).transpose()?,
            root: RootId::new(row.root),
            origin: parsed(&row.origin)?,
            time: row.time.into(),
            by: parsed(&row.principal)?,
        })
    }
}
