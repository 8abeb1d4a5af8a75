//! Rows and transactions: the index of objects, vaults, and all that belongs to them. No other part of the program
//! contains SQL.
//!
//! A reader gets [`Rows`], a writer a [`Transaction`]. Both have one method per question or change, and take and give
//! plain values: what a name or a principal may look like is the caller's business. Nothing here waits for anything but
//! the database, ids are made by the caller, and a head moves only by compare-and-swap, so that rows can later be kept by
//! a database on another machine.

mod approvals;
mod checkpoints;
mod connect;
mod database;
mod imports;
mod index;
mod journal;
mod policies;
mod roots;
mod schema;
mod settings;
mod timer;
mod vaults;
mod versions;

use std::ops::Deref;

use rusqlite::{Connection, OptionalExtension, Params, Row};

use crate::{ObjectId, Result};

pub use approvals::{ApprovalRow, Attempts, SpeculationRow};
pub use checkpoints::CheckpointRow;
pub(crate) use database::Database;
pub use database::Frozen;
pub use imports::ImportRow;
pub(crate) use index::ObjectRow;
pub use journal::{Beginning, JournalHead, JournalQuery, JournalRow};
pub use roots::{RootKind, RootRow};
pub use vaults::{ParentRow, QuotaRow, VaultRow};
pub use versions::VersionRow;

/// The id of a vault, an exec or an approval. Whoever makes the row makes the id.
pub type Id = [u8; 16];

/// A time as it is stored: seconds since 1970, and nanoseconds of the next one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    pub secs: i64,
    pub nanos: u32,
}

/// What has happened when a transaction is committed.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Durability {
    /// Survives kill -9 of this process; a power cut may lose it.
    Relaxed,
    /// On the disk when the call returns, with everything before it.
    Full,
}

/// Reads rows. Inside a transaction it sees what that has changed.
pub struct Rows<'a> {
    connection: &'a Connection,
}

/// Changes rows, all or none of them. It can read, too.
pub struct Transaction<'a> {
    rows: Rows<'a>,
}

impl<'a> Deref for Transaction<'a> {
    type Target = Rows<'a>;

    fn deref(&self) -> &Rows<'a> {
        &self.rows
    }
}

impl Rows<'_> {
    /// Runs `f` on one state of the database, whatever others commit meanwhile. Not for use inside a transaction, which
    /// sees one state anyway.
    pub fn snapshot<T, E: From<crate::Error>>(
        &self,
        f: impl FnOnce(&Rows<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let snapshot = self.connection.unchecked_transaction();
        let snapshot = snapshot.map_err(crate::Error::from)?;
        f(&Rows {
            connection: &snapshot,
        })
    }

    fn one<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_row(values, read).optional()?)
    }

    /// For questions that always have an answer, such as a count.
    fn value<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_row(values, read)?)
    }

    fn all<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C> {
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map(values, read)?;
        Ok(rows.collect::<rusqlite::Result<C>>()?)
    }

    fn exists(&self, sql: &str, values: impl Params) -> Result<bool> {
        Ok(self.connection.prepare_cached(sql)?.exists(values)?)
    }
}

impl Transaction<'_> {
    /// Gives how many rows were changed.
    fn change(&self, sql: &str, values: impl Params) -> Result<usize> {
        Ok(self.connection.prepare_cached(sql)?.execute(values)?)
    }
}

/// SQLite's integers are signed. No count comes near the sign, and a limit beyond it is none.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn count(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

fn optional_count(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|count| count as u64))
}

/// The only column of a row that counts something.
fn total(row: &Row<'_>) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(0)? as u64)
}

/// A row of an id and a count.
fn id_and_count(row: &Row<'_>) -> rusqlite::Result<(Id, u64)> {
    Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
}

/// A row of two texts.
fn key_and_value(row: &Row<'_>) -> rusqlite::Result<(String, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn object(row: &Row<'_>, column: &str) -> rusqlite::Result<ObjectId> {
    Ok(ObjectId::from_bytes(row.get(column)?))
}

fn stamp(row: &Row<'_>) -> rusqlite::Result<Stamp> {
    Ok(Stamp {
        secs: row.get("secs")?,
        nanos: row.get("nanos")?,
    })
}
