//! The tables of the store: the index of objects, and what is known of packs.

use std::path::Path;

use rusqlite::{Connection, Transaction};

use crate::engine::Place;
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
pub struct Row {
    pub pack: u32,
    pub offset: u64,
    pub stored: u64,
    pub size: u64,
}

impl Row {
    pub fn place(&self) -> Place {
        Place {
            pack: self.pack,
            offset: self.offset,
        }
    }
}

/// Adds rows in the order of the index, which is what makes thousands of them cheap.
/// Returns how many were new.
pub fn insert(transaction: &Transaction<'_>, rows: &mut [(ObjectId, Row)]) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    rows.sort_unstable_by_key(|(id, _)| *id);
    // SQLite's integers are signed; no length comes near the sign.
    let (mut objects, mut bytes) = (0_i64, 0_i64);
    let sql = "INSERT OR IGNORE INTO object (id, pack, offset, stored, size)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = transaction.prepare_cached(sql)?;
    // Stored twice at once, or anew because it was damaged: the younger record is the one that leases know.
    let sql = "SELECT stored FROM object WHERE id = ?1";
    let mut known = transaction.prepare_cached(sql)?;
    let sql = "UPDATE object SET pack = ?2, offset = ?3, stored = ?4, size = ?5 WHERE id = ?1";
    let mut update = transaction.prepare_cached(sql)?;
    let newest = rows.iter().map(|(_, row)| row.pack).max().unwrap_or(0);
    own_packs(transaction, newest)?;
    for (id, row) in rows.iter() {
        let (offset, stored, size) = (row.offset as i64, row.stored as i64, row.size as i64);
        let values = (id.as_bytes(), row.pack, offset, stored, size);
        if insert.execute(values)? == 1 {
            objects += 1;
            bytes += stored;
        } else {
            let before: i64 = known.query_row([id.as_bytes()], |row| row.get(0))?;
            bytes += stored - before;
            update.execute(values)?;
        }
    }
    add_totals(transaction, (objects, bytes))?;
    Ok(objects as u64)
}

/// Notes that this database's store has written to packs up to `pack`.
pub fn own_packs(transaction: &Transaction<'_>, pack: u32) -> Result<()> {
    let sql = "UPDATE last_pack SET pack = ?1 WHERE pack < ?1";
    transaction.prepare_cached(sql)?.execute([pack])?;
    Ok(())
}

pub fn add_totals(transaction: &Transaction<'_>, (objects, bytes): (i64, i64)) -> Result<()> {
    let sql = "UPDATE store SET objects = objects + ?1, bytes = bytes + ?2";
    transaction.prepare_cached(sql)?.execute((objects, bytes))?;
    Ok(())
}

pub fn index_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(ObjectId, Row)> {
    let count = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)? as u64);
    let found = Row {
        pack: row.get(0)?,
        offset: count(1)?,
        stored: count(2)?,
        size: count(3)?,
    };
    Ok((ObjectId::from_bytes(row.get(4)?), found))
}

/// Makes what is missing; where nothing is, nothing is written.
pub fn prepare_schema(connection: &Connection, path: &Path) -> Result<()> {
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

pub fn check_format(connection: &Connection, path: &Path) -> Result<()> {
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
