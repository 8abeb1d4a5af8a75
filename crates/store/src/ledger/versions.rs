//! Versions: every head that a vault has had.

use rusqlite::Row;

use super::{Id, Rows, Stamp, Transaction, count, limited, object, signed, stamp};
use crate::{ObjectId, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRow {
    pub number: u64,
    pub root: ObjectId,
    pub principal: String,
    pub exec: Option<Id>,
    pub cause: String,
    pub time: Stamp,
}

impl Rows<'_> {
    pub fn version(&self, vault: &Id, number: u64) -> Result<Option<VersionRow>> {
        let sql = "SELECT * FROM version WHERE vault = ?1 AND number = ?2";
        self.one(sql, (vault, signed(number)), version_row)
    }

    pub fn newest_version(&self, vault: &Id) -> Result<Option<VersionRow>> {
        self.nth_newest_version(vault, 0)
    }

    /// The newest version but for so many.
    pub fn nth_newest_version(&self, vault: &Id, skip: u64) -> Result<Option<VersionRow>> {
        let sql = "SELECT * FROM version WHERE vault = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2";
        self.one(sql, (vault, signed(skip)), version_row)
    }

    /// The oldest version that was made at `time` or later.
    pub fn first_version_since(&self, vault: &Id, time: Stamp) -> Result<Option<VersionRow>> {
        let sql = "SELECT * FROM version WHERE vault = ?1 AND (secs, nanos) >= (?2, ?3)
            ORDER BY number LIMIT 1";
        self.one(sql, (vault, time.secs, time.nanos), version_row)
    }

    /// The newest `limit` versions with a number below `before`, newest first.
    pub fn versions_before(
        &self,
        vault: &Id,
        before: u64,
        limit: usize,
    ) -> Result<Vec<VersionRow>> {
        let sql = "SELECT * FROM version WHERE vault = ?1 AND number < ?2
            ORDER BY number DESC LIMIT ?3";
        let values = (vault, signed(before), limited(limit));
        self.all(sql, values, version_row)
    }

    /// The number of the newest version with this root.
    pub fn version_with_root(&self, vault: &Id, root: ObjectId) -> Result<Option<u64>> {
        let sql = "SELECT max(number) FROM version WHERE vault = ?1 AND root = ?2";
        let number = self.value(sql, (vault, root.as_bytes()), |row| {
            row.get::<_, Option<i64>>(0)
        })?;
        Ok(number.map(|number| number as u64))
    }

    pub fn count_versions_before(&self, vault: &Id, number: u64) -> Result<u64> {
        let sql = "SELECT count(*) FROM version WHERE vault = ?1 AND number < ?2";
        self.value(sql, (vault, signed(number)), super::total)
    }

    /// How many versions each vault has.
    pub fn version_counts(&self) -> Result<Vec<(Id, u64)>> {
        let sql = "SELECT vault, count(*) FROM version GROUP BY vault";
        self.all(sql, [], super::id_and_count)
    }
}

impl Transaction<'_> {
    pub fn add_version(&self, vault: &Id, version: &VersionRow) -> Result<()> {
        let sql = "INSERT INTO version (vault, number, root, principal, exec, cause, secs, nanos)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let values = (
            vault,
            signed(version.number),
            version.root.as_bytes(),
            &version.principal,
            version.exec,
            &version.cause,
            version.time.secs,
            version.time.nanos,
        );
        self.change(sql, values)?;
        Ok(())
    }

    pub fn remove_versions_before(&self, vault: &Id, number: u64) -> Result<()> {
        let sql = "DELETE FROM version WHERE vault = ?1 AND number < ?2";
        self.change(sql, (vault, signed(number)))?;
        Ok(())
    }
}

fn version_row(row: &Row<'_>) -> rusqlite::Result<VersionRow> {
    Ok(VersionRow {
        number: count(row, "number")?,
        root: object(row, "root")?,
        principal: row.get("principal")?,
        exec: row.get("exec")?,
        cause: row.get("cause")?,
        time: stamp(row)?,
    })
}
