//! The tables of the store: the index of objects, and what is known of packs.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, Row};

use super::{Rows, Transaction, limited, signed, total};
use crate::engine::RecordLocation;
use crate::{Error, ObjectId, Result};

const FORMAT: i64 = 1;
/// How many tables there are.
const TABLES: u32 = 5;
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS object (
        id BLOB PRIMARY KEY NOT NULL,
        pack INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        stored INTEGER NOT NULL,
        size INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS damaged (id BLOB PRIMARY KEY NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS last_pack (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        pack INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS foreign_pack (pack INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS store (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        format INTEGER NOT NULL,
        objects INTEGER NOT NULL,
        bytes INTEGER NOT NULL
    );
";

/// One row of the index: where an object's record lies. Pack 0 means a loose file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectRow {
    pub pack: u32,
    pub offset: u64,
    pub stored: u64,
    pub size: u64,
}

impl ObjectRow {
    pub fn place(&self) -> RecordLocation {
        RecordLocation {
            pack: self.pack,
            offset: self.offset,
        }
    }
}

/// How many objects there are, and how many bytes they take after compression.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub objects: u64,
    pub bytes: u64,
}

impl Rows<'_> {
    pub(crate) fn object(&self, id: ObjectId) -> Result<Option<ObjectRow>> {
        let sql = "SELECT pack, offset, stored, size, id FROM object WHERE id = ?1";
        let found = self.one(sql, [id.as_bytes()], object_row)?;
        Ok(found.map(|(_, row)| row))
    }

    /// In the order of their ids, from behind `after`.
    pub(crate) fn objects_after(
        &self,
        after: Option<ObjectId>,
        limit: usize,
    ) -> Result<Vec<(ObjectId, ObjectRow)>> {
        let sql = "SELECT pack, offset, stored, size, id FROM object
            WHERE id > ?1 ORDER BY id LIMIT ?2";
        let after: &[u8] = after.as_ref().map_or(&[], |id| id.as_bytes());
        self.all(sql, (after, limited(limit)), object_row)
    }

    /// The objects of a pack, in the order of their places.
    pub(crate) fn objects_in(&self, pack: u32) -> Result<Vec<(ObjectId, ObjectRow)>> {
        let sql = "SELECT pack, offset, stored, size, id FROM object
            WHERE pack = ?1 ORDER BY offset";
        self.all(sql, [pack], object_row)
    }

    pub(crate) fn count_objects_in(&self, pack: u32) -> Result<u64> {
        let sql = "SELECT count(*) FROM object WHERE pack = ?1";
        self.value(sql, [pack], total)
    }

    /// Where those of `ids` lie that are in the index.
    pub(crate) fn places(&self, ids: &[ObjectId]) -> Result<Vec<(ObjectId, RecordLocation)>> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            // One statement for any number of ids: every other text is another statement that the connection keeps.
            let row = self.object(*id)?;
            found.extend(row.map(|row| (*id, row.place())));
        }
        Ok(found)
    }

    /// For each pack the bytes of its objects, with `header` bytes more for each of them.
    pub(crate) fn live_bytes(&self, header: u64) -> Result<HashMap<u32, u64>> {
        let sql = "SELECT pack, sum(stored) + count(*) * ?1 FROM object GROUP BY pack";
        self.all(sql, [signed(header)], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
        })
    }

    /// The newest pack that has objects, and where the last of them ends without its header.
    pub(crate) fn last_object(&self) -> Result<Option<RecordLocation>> {
        let sql = "SELECT pack, max(offset + stored) FROM object
            WHERE pack = (SELECT max(pack) FROM object) GROUP BY pack";
        self.one(sql, [], |row| {
            Ok(RecordLocation {
                pack: row.get(0)?,
                offset: row.get::<_, i64>(1)? as u64,
            })
        })
    }

    /// As they are kept beside the rows.
    pub(crate) fn totals(&self) -> Result<Totals> {
        self.value("SELECT objects, bytes FROM store", [], totals_row)
    }

    /// Objects known to be damaged.
    pub(crate) fn damaged<C: FromIterator<ObjectId>>(&self, limit: usize) -> Result<C> {
        if !self.has_table("damaged")? {
            return Ok(C::from_iter([]));
        }
        let sql = "SELECT id FROM damaged LIMIT ?1";
        self.all(sql, [limited(limit)], |row| {
            Ok(ObjectId::from_bytes(row.get(0)?))
        })
    }

    /// The newest pack that this database has written to, if it has noted that.
    pub(crate) fn last_pack(&self) -> Result<Option<u32>> {
        if !self.has_table("last_pack")? {
            return Ok(None);
        }
        self.one("SELECT pack FROM last_pack", [], |row| row.get(0))
    }

    /// Packs that another database has written.
    pub(crate) fn foreign_packs(&self) -> Result<Vec<u32>> {
        if !self.has_table("foreign_pack")? {
            return Ok(Vec::new());
        }
        self.all("SELECT pack FROM foreign_pack", [], |row| row.get(0))
    }

    /// What SQLite finds wrong with the database, and whether the totals are those of the rows.
    pub(super) fn check(&self) -> Result<Vec<String>> {
        let mut check = self.connection.prepare("PRAGMA integrity_check(20)")?;
        let lines = check.query_map([], |row| row.get::<_, String>(0))?;
        let mut problems = lines.collect::<rusqlite::Result<Vec<_>>>()?;
        problems.retain(|line| line != "ok");
        let sql = "SELECT count(*), coalesce(sum(stored), 0) FROM object";
        let (found, noted) = (self.value(sql, [], totals_row)?, self.totals()?);
        if found != noted {
            problems.push(format!(
                "the index has {} objects of {} bytes, its totals say {} of {}",
                found.objects, found.bytes, noted.objects, noted.bytes
            ));
        }
        Ok(problems)
    }

    /// A database that may only be read can be of an earlier program, which did not know all tables.
    fn has_table(&self, name: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
        self.exists(sql, [name])
    }
}

impl Transaction<'_> {
    /// Adds rows in the order of the index, which is what makes thousands of them cheap.
    /// Gives how many were new.
    pub(crate) fn add_objects(&self, rows: &mut [(ObjectId, ObjectRow)]) -> Result<u64> {
        if rows.is_empty() {
            return Ok(0);
        }
        rows.sort_unstable_by_key(|(id, _)| *id);
        let (mut objects, mut bytes) = (0_i64, 0_i64);
        let sql = "INSERT OR IGNORE INTO object (id, pack, offset, stored, size)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut insert = self.connection.prepare_cached(sql)?;
        // Stored twice at once, or anew because it was damaged: the younger record is the one that leases know.
        let sql = "SELECT stored FROM object WHERE id = ?1";
        let mut known = self.connection.prepare_cached(sql)?;
        let sql = "UPDATE object SET pack = ?2, offset = ?3, stored = ?4, size = ?5 WHERE id = ?1";
        let mut update = self.connection.prepare_cached(sql)?;
        let newest = rows.iter().map(|(_, row)| row.pack).max().unwrap_or(0);
        self.own_packs(newest)?;
        for (id, row) in rows.iter() {
            let (offset, stored) = (signed(row.offset), signed(row.stored));
            let values = (id.as_bytes(), row.pack, offset, stored, signed(row.size));
            if insert.execute(values)? == 1 {
                objects += 1;
                bytes += stored;
            } else {
                let before: i64 = known.query_row([id.as_bytes()], |row| row.get(0))?;
                bytes += stored - before;
                update.execute(values)?;
            }
        }
        self.add_totals(objects, bytes)?;
        Ok(objects as u64)
    }

    /// Gives how many that were, and their bytes.
    pub(crate) fn remove_objects(&self, ids: &[ObjectId]) -> Result<Totals> {
        let mut removed = Totals::default();
        let sql = "DELETE FROM object WHERE id = ?1 RETURNING stored";
        let mut delete = self.connection.prepare_cached(sql)?;
        for id in ids {
            removed.bytes += delete.query_row([id.as_bytes()], total)?;
            removed.objects += 1;
        }
        self.add_totals(-signed(removed.objects), -signed(removed.bytes))?;
        Ok(removed)
    }

    /// Gives objects another place, unless they have moved from the one that is known.
    pub(crate) fn move_objects(
        &self,
        moved: &[(ObjectId, RecordLocation, RecordLocation)],
    ) -> Result<()> {
        let sql = "UPDATE object SET pack = ?4, offset = ?5
            WHERE id = ?1 AND pack = ?2 AND offset = ?3";
        let mut update = self.connection.prepare_cached(sql)?;
        for (id, from, to) in moved {
            let (old, new) = (signed(from.offset), signed(to.offset));
            update.execute((id.as_bytes(), from.pack, old, to.pack, new))?;
        }
        self.touch()
    }

    /// Writes something, so that the commit syncs all that was written before it.
    pub(crate) fn touch(&self) -> Result<()> {
        self.add_totals(0, 0)
    }

    fn add_totals(&self, objects: i64, bytes: i64) -> Result<()> {
        let sql = "UPDATE store SET objects = objects + ?1, bytes = bytes + ?2";
        self.change(sql, (objects, bytes))?;
        Ok(())
    }

    /// Notes that this database's store has written to packs up to `pack`.
    pub(crate) fn own_packs(&self, pack: u32) -> Result<()> {
        let sql = "UPDATE last_pack SET pack = ?1 WHERE pack < ?1";
        self.change(sql, [pack])?;
        Ok(())
    }

    /// Notes which pack is the newest of this database, if nothing is noted yet.
    pub(crate) fn begin_packs(&self, pack: u32) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO last_pack (one, pack) VALUES (1, ?1)";
        self.change(sql, [pack])?;
        Ok(())
    }

    pub(crate) fn add_foreign_pack(&self, pack: u32) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO foreign_pack (pack) VALUES (?1)";
        self.change(sql, [pack])?;
        Ok(())
    }

    /// All packs are those of this database from now on.
    pub(crate) fn adopt_foreign_packs(&self) -> Result<()> {
        self.change("DELETE FROM foreign_pack", [])?;
        Ok(())
    }

    pub(crate) fn add_damaged(&self, id: ObjectId) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO damaged (id) VALUES (?1)";
        self.change(sql, [id.as_bytes()])?;
        Ok(())
    }

    pub(crate) fn remove_damaged(&self, id: ObjectId) -> Result<()> {
        self.change("DELETE FROM damaged WHERE id = ?1", [id.as_bytes()])?;
        Ok(())
    }
}

fn object_row(row: &Row<'_>) -> rusqlite::Result<(ObjectId, ObjectRow)> {
    let count = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)? as u64);
    let found = ObjectRow {
        pack: row.get(0)?,
        offset: count(1)?,
        stored: count(2)?,
        size: count(3)?,
    };
    Ok((ObjectId::from_bytes(row.get(4)?), found))
}

fn totals_row(row: &Row<'_>) -> rusqlite::Result<Totals> {
    Ok(Totals {
        objects: row.get::<_, i64>(0)? as u64,
        bytes: row.get::<_, i64>(1)? as u64,
    })
}

/// Makes what is missing; where nothing is, nothing is written.
pub(super) fn prepare_schema(connection: &Connection, path: &Path) -> Result<()> {
    let sql = "SELECT count(*) FROM sqlite_master
        WHERE name IN ('object', 'damaged', 'last_pack', 'foreign_pack', 'store')";
    let tables: u32 = connection.query_row(sql, [], |row| row.get(0))?;
    if tables < TABLES {
        let transaction = connection.unchecked_transaction()?;
        transaction.execute_batch(SCHEMA)?;
        let sql = "INSERT OR IGNORE INTO store (one, format, objects, bytes) VALUES (1, ?1, 0, 0)";
        transaction.execute(sql, [FORMAT])?;
        transaction.commit()?;
    }
    check_format(connection, path)
}

pub(super) fn check_format(connection: &Connection, path: &Path) -> Result<()> {
    let found = connection.query_row("SELECT format FROM store", [], |row| row.get(0))?;
    match found == FORMAT {
        true => Ok(()),
        false => Err(Error::UnknownFormat {
            path: path.to_owned(),
            found,
            known: FORMAT,
        }),
    }
}
