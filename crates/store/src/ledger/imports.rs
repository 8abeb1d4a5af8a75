//! Host directories that were imported, and the root in which each was equal to its place in a vault.

use rusqlite::Row;

use super::{Id, Rows, Stamp, Transaction, count, object, signed, stamp};
use crate::{ObjectId, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRow {
    /// The directory of the host.
    pub host: Vec<u8>,
    /// Its place in the vault.
    pub place: Vec<u8>,
    pub root: ObjectId,
    pub version: u64,
    pub time: Stamp,
}

impl Rows<'_> {
    /// The newest first.
    pub fn imports(&self, vault: &Id) -> Result<Vec<ImportRow>> {
        let sql = "SELECT * FROM import_base WHERE vault = ?1 ORDER BY secs DESC, nanos DESC";
        self.all(sql, [vault], import_row)
    }
}

impl Transaction<'_> {
    /// Adds a row, or replaces the one with the same directory and place.
    pub fn set_import(&self, vault: &Id, import: &ImportRow) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO import_base
            (vault, host, place, root, version, secs, nanos)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = (
            vault,
            &import.host,
            &import.place,
            import.root.as_bytes(),
            signed(import.version),
            import.time.secs,
            import.time.nanos,
        );
        self.change(sql, values)?;
        Ok(())
    }

    /// Gives a fork the imports of its source up to the newest version with the forked `root`. They count as imports of
    /// the fork's `version`.
    pub fn copy_imports(&self, from: &Id, to: &Id, version: u64, root: ObjectId) -> Result<()> {
        let sql = "INSERT INTO import_base (vault, host, place, root, version, secs, nanos)
            SELECT ?2, host, place, root, ?3, secs, nanos FROM import_base
            WHERE vault = ?1 AND version <= (
                SELECT coalesce(max(number), 0) FROM version WHERE vault = ?1 AND root = ?4
            )";
        self.change(sql, (from, to, signed(version), root.as_bytes()))?;
        Ok(())
    }
}

fn import_row(row: &Row<'_>) -> rusqlite::Result<ImportRow> {
    Ok(ImportRow {
        host: row.get("host")?,
        place: row.get("place")?,
        root: object(row, "root")?,
        version: count(row, "version")?,
        time: stamp(row)?,
    })
}
