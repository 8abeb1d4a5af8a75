//! Checkpoints: roots of a vault that have a name.

use rusqlite::Row;

use super::{Id, Rows, Stamp, Transaction, object, stamp};
use crate::{ObjectId, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRow {
    pub name: String,
    pub description: Option<String>,
    pub root: ObjectId,
    pub origin: String,
    pub principal: String,
    pub time: Stamp,
}

impl Rows<'_> {
    pub fn checkpoint(&self, vault: &Id, name: &str) -> Result<Option<CheckpointRow>> {
        let sql = "SELECT * FROM checkpoint WHERE vault = ?1 AND name = ?2";
        self.one(sql, (vault, name), checkpoint_row)
    }

    /// Oldest first.
    pub fn checkpoints(&self, vault: &Id) -> Result<Vec<CheckpointRow>> {
        let sql = "SELECT * FROM checkpoint WHERE vault = ?1 ORDER BY made";
        self.all(sql, [vault], checkpoint_row)
    }

    pub fn count_checkpoints(&self, vault: &Id) -> Result<u64> {
        let sql = "SELECT count(*) FROM checkpoint WHERE vault = ?1";
        self.value(sql, [vault], super::total)
    }

    /// How many checkpoints each vault has that has any.
    pub fn checkpoint_counts(&self) -> Result<Vec<(Id, u64)>> {
        let sql = "SELECT vault, count(*) FROM checkpoint GROUP BY vault";
        self.all(sql, [], super::id_and_count)
    }

    /// How many were made before `time`, those of one origin not counted.
    pub fn count_checkpoints_before(&self, vault: &Id, time: Stamp, except: &str) -> Result<u64> {
        let sql = "SELECT count(*) FROM checkpoint
            WHERE vault = ?1 AND origin != ?2 AND (secs, nanos) < (?3, ?4)";
        let values = (vault, except, time.secs, time.nanos);
        self.value(sql, values, super::total)
    }
}

impl Transaction<'_> {
    pub fn add_checkpoint(&self, vault: &Id, checkpoint: &CheckpointRow) -> Result<()> {
        let sql = "INSERT INTO checkpoint
            (vault, name, root, origin, principal, secs, nanos, description)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let values = (
            vault,
            &checkpoint.name,
            checkpoint.root.as_bytes(),
            &checkpoint.origin,
            &checkpoint.principal,
            checkpoint.time.secs,
            checkpoint.time.nanos,
            &checkpoint.description,
        );
        self.change(sql, values)?;
        Ok(())
    }

    pub fn remove_checkpoint(&self, vault: &Id, name: &str) -> Result<()> {
        let sql = "DELETE FROM checkpoint WHERE vault = ?1 AND name = ?2";
        self.change(sql, (vault, name))?;
        Ok(())
    }

    /// Removes those that `count_checkpoints_before` counts.
    pub fn remove_checkpoints_before(&self, vault: &Id, time: Stamp, except: &str) -> Result<()> {
        let sql = "DELETE FROM checkpoint
            WHERE vault = ?1 AND origin != ?2 AND (secs, nanos) < (?3, ?4)";
        self.change(sql, (vault, except, time.secs, time.nanos))?;
        Ok(())
    }
}

fn checkpoint_row(row: &Row<'_>) -> rusqlite::Result<CheckpointRow> {
    Ok(CheckpointRow {
        name: row.get("name")?,
        description: row.get("description")?,
        root: object(row, "root")?,
        origin: row.get("origin")?,
        principal: row.get("principal")?,
        time: stamp(row)?,
    })
}
