//! Checkpoints: saving, finding, deleting, and going back to one.

use avfs_store::rusqlite::{self, Connection, OptionalExtension, Row, Transaction};
use avfs_store::{Durability, WayOut};
use serde_json::json;
use std::collections::HashMap;

use crate::schema::{optional_text, root, text, time};
use crate::vaults::{advance, by_id, event};
use crate::{
    Cause, Checkpoint, CheckpointName, CheckpointOrigin, Description, Error, Principal, Restored,
    Result, RootId, Time, VaultId, Vaults, journal,
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
            journal::append(transaction, event(vault, *by, "checkpoint.save", details))?;
            Ok(checkpoint)
        })
    }

    /// How many checkpoints a vault has.
    pub fn checkpoint_count(&self, vault: VaultId) -> Result<usize> {
        let sql = "SELECT COUNT(*) FROM checkpoint WHERE vault = ?1";
        self.store().read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let count: i64 = statement.query_row([vault.as_bytes()], |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }

    /// How many checkpoints each vault has that has any.
    pub fn checkpoint_counts(&self) -> Result<HashMap<VaultId, usize>> {
        let sql = "SELECT vault, COUNT(*) FROM checkpoint GROUP BY vault";
        self.store().read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| {
                let count: i64 = row.get(1)?;
                let vault = VaultId::from_bytes(row.get(0)?);
                Ok((vault, usize::try_from(count).unwrap_or(0)))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Oldest first.
    pub fn checkpoints(&self, vault: VaultId) -> Result<Vec<Checkpoint>> {
        self.store().read(|connection| {
            by_id(connection, vault)?;
            let sql = "SELECT * FROM checkpoint WHERE vault = ?1 ORDER BY made";
            let mut select = connection.prepare_cached(sql)?;
            let rows = select.query_map([vault.as_bytes()], checkpoint_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn checkpoint(&self, vault: VaultId, name: &CheckpointName) -> Result<Checkpoint> {
        self.store().read(|connection| {
            by_id(connection, vault)?;
            find(connection, vault, name)
        })
    }

    pub fn delete_checkpoint(
        &self,
        vault: VaultId,
        name: &CheckpointName,
        by: &Principal,
    ) -> Result<()> {
        self.freeing(WayOut::Small, Durability::Relaxed, |transaction| {
            by_id(transaction, vault)?;
            let checkpoint = find(transaction, vault, name)?;
            delete(transaction, vault, &checkpoint, *by, "checkpoint.delete")
        })
    }

    /// Removes a checkpoint nobody asked for; refuses one that somebody did.
    pub fn drop_automatic_checkpoint(
        &self,
        vault: VaultId,
        name: &CheckpointName,
        by: &Principal,
    ) -> Result<()> {
        self.freeing(WayOut::Small, Durability::Relaxed, |transaction| {
            by_id(transaction, vault)?;
            let checkpoint = find(transaction, vault, name)?;
            if checkpoint.origin != CheckpointOrigin::Automatic {
                return Err(Error::CheckpointNotAutomatic { name: name.clone() });
            }
            delete(transaction, vault, &checkpoint, *by, "checkpoint.drop")
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
            journal::append(transaction, event(vault.id, *by, cause.as_str(), details))?;
            Ok(Restored { version, undo })
        })
    }
}

/// `prefix-YYYYMMDD-HHMMSS-xxxx`, in UTC, not yet taken.
fn free_name(connection: &Connection, vault: VaultId, prefix: &str) -> Result<CheckpointName> {
    let stamp = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    loop {
        let random = avfs_store::fresh_uuid().as_u128() & 0xffff;
        let name: CheckpointName = format!("{prefix}-{stamp}-{random:04x}").parse()?;
        if find_optional(connection, vault, &name)?.is_none() {
            return Ok(name);
        }
    }
}

fn insert(transaction: &Transaction<'_>, vault: VaultId, checkpoint: &Checkpoint) -> Result<()> {
    let name = &checkpoint.name;
    if find_optional(transaction, vault, name)?.is_some() {
        return Err(Error::CheckpointExists { name: name.clone() });
    }
    let insert = "INSERT INTO checkpoint
        (vault, name, root, origin, principal, secs, nanos, description)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    transaction.prepare_cached(insert)?.execute((
        vault.as_bytes(),
        name.as_str(),
        checkpoint.root.object().as_bytes(),
        checkpoint.origin.as_str(),
        checkpoint.by.to_string(),
        checkpoint.time.secs,
        checkpoint.time.nanos,
        checkpoint.description.as_ref().map(Description::as_str),
    ))?;
    Ok(())
}

fn delete(
    transaction: &Transaction<'_>,
    vault: VaultId,
    checkpoint: &Checkpoint,
    by: Principal,
    operation: &str,
) -> Result<()> {
    let delete = "DELETE FROM checkpoint WHERE vault = ?1 AND name = ?2";
    let values = (vault.as_bytes(), checkpoint.name.as_str());
    transaction.prepare_cached(delete)?.execute(values)?;
    let details = json!({
        "checkpoint": checkpoint.name.as_str(),
        "root": checkpoint.root.to_string(),
    });
    journal::append(transaction, event(vault, by, operation, details))?;
    Ok(())
}

pub fn find(connection: &Connection, vault: VaultId, name: &CheckpointName) -> Result<Checkpoint> {
    find_optional(connection, vault, name)?
        .ok_or_else(|| Error::CheckpointNotFound { name: name.clone() })
}

fn find_optional(
    connection: &Connection,
    vault: VaultId,
    name: &CheckpointName,
) -> Result<Option<Checkpoint>> {
    let sql = "SELECT * FROM checkpoint WHERE vault = ?1 AND name = ?2";
    let mut select = connection.prepare_cached(sql)?;
    Ok(select
        .query_row((vault.as_bytes(), name.as_str()), checkpoint_row)
        .optional()?)
}

fn checkpoint_row(row: &Row<'_>) -> rusqlite::Result<Checkpoint> {
    Ok(Checkpoint {
        name: text(row, "name")?,
        description: optional_text(row, "description")?,
        root: root(row, "root")?,
        origin: text(row, "origin")?,
        time: time(row)?,
        by: text(row, "principal")?,
    })
}
