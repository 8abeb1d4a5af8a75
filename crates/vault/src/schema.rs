//! The tables of vaults, and how rows become values.

use std::str::FromStr;

use avfs_store::rusqlite::{self, Connection, Row, Transaction, types::Type, types::ValueRef};
use avfs_store::{Durability, ObjectId, Store};

use crate::{Error, Result, RootId, Time, approvals, imports, policy, settings};

/// Every step from nothing to the present schema; the number of steps taken is stored.
const STEPS: &[&str] = &[
    TABLES,
    DELETED_AND_QUOTA,
    imports::TABLE,
    settings::TABLE,
    policy::TABLE,
    approvals::TABLES,
    "ALTER TABLE checkpoint ADD COLUMN description TEXT",
    HOLES,
    approvals::ATTEMPTS_TABLE,
    MAKERS,
    settings::HOME_TABLE,
];
const VERSION: i64 = STEPS.len() as i64;

const TABLES: &str = "
    CREATE TABLE vault (
        id BLOB PRIMARY KEY NOT NULL,
        name TEXT NOT NULL UNIQUE,
        head BLOB NOT NULL,
        version INTEGER NOT NULL,
        parent BLOB,
        parent_name TEXT,
        parent_root BLOB,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE current (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        vault BLOB REFERENCES vault (id) ON DELETE SET NULL
    );
    CREATE TABLE version (
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        root BLOB NOT NULL,
        principal TEXT NOT NULL,
        exec BLOB,
        cause TEXT NOT NULL,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        PRIMARY KEY (vault, number)
    ) WITHOUT ROWID;
    CREATE TABLE checkpoint (
        made INTEGER PRIMARY KEY,
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        root BLOB NOT NULL,
        origin TEXT NOT NULL,
        principal TEXT NOT NULL,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        UNIQUE (vault, name)
    );
    CREATE TABLE journal (
        seq INTEGER PRIMARY KEY,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        vault BLOB,
        exec BLOB,
        principal TEXT NOT NULL,
        operation TEXT NOT NULL,
        details TEXT NOT NULL,
        prev BLOB NOT NULL,
        hash BLOB NOT NULL
    );
    CREATE INDEX journal_vault ON journal (vault, seq);
    CREATE INDEX journal_exec ON journal (exec, seq) WHERE exec IS NOT NULL;
    CREATE TABLE journal_head (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        seq INTEGER NOT NULL,
        hash BLOB NOT NULL
    );
    INSERT INTO journal_head (one, seq, hash) VALUES (1, 0, zeroblob(32));
";

/// A deleted vault keeps its row under a name that no vault can have, and its own one beside it.
const DELETED_AND_QUOTA: &str = "
    ALTER TABLE vault ADD COLUMN deleted_name TEXT;
    ALTER TABLE vault ADD COLUMN deleted_secs INTEGER;
    ALTER TABLE vault ADD COLUMN deleted_nanos INTEGER;
    ALTER TABLE vault ADD COLUMN max_bytes INTEGER;
    ALTER TABLE vault ADD COLUMN max_files INTEGER;
    ALTER TABLE vault ADD COLUMN max_file_bytes INTEGER;
    CREATE INDEX vault_parent ON vault (parent) WHERE parent IS NOT NULL;
";

/// Files may have holes: part lists of version 2, which an earlier program would take for damage.
const HOLES: &str = "";
/// What was made before anybody wrote down by whom is the owner's. `current` is the owner's choice, `current_of` that
/// of others.
const MAKERS: &str = "
    ALTER TABLE vault ADD COLUMN made_by TEXT NOT NULL DEFAULT 'owner';
    CREATE TABLE current_of (
        principal TEXT PRIMARY KEY NOT NULL,
        vault BLOB REFERENCES vault (id) ON DELETE SET NULL
    ) WITHOUT ROWID;
";

/// Every root that a row names: (vault, what it is, root, which one in words). A column that holds roots and is not here
/// would let gc take what it names; a test looks for such.
pub const ROOTS: &str = "
    SELECT id, 'head', head, 'head' FROM vault
    UNION ALL SELECT id, 'beginning', parent_root, 'beginning' FROM vault
        WHERE parent_root IS NOT NULL
    UNION ALL SELECT vault, 'version', root, 'v' || number FROM version
    UNION ALL SELECT vault, 'checkpoint', root, 'checkpoint ' || name FROM checkpoint
    UNION ALL SELECT vault, 'import', root, 'import' FROM import_base
    UNION ALL SELECT vault, 'speculation', root, 'speculation' FROM speculation
";

/// Brings the tables to the newest schema.
pub fn migrate(store: &Store) -> Result<()> {
    let found = store.read(user_version)?;
    if found == VERSION {
        return Ok(());
    }
    store.write(Durability::Full, |transaction: &Transaction<'_>| {
        let found = user_version(transaction)?;
        let taken = usize::try_from(found).ok();
        let steps = taken.and_then(|taken| STEPS.get(taken..));
        let steps = steps.ok_or(Error::UnknownSchema {
            found,
            known: VERSION,
        })?;
        for step in steps {
            transaction.execute_batch(step)?;
        }
        Ok(transaction.pragma_update(None, "user_version", VERSION)?)
    })
}

fn user_version(connection: &Connection) -> Result<i64> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// A column that holds the text of some type.
pub fn text<T: FromStr<Err = Error>>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error: Error| {
        let index = row.as_ref().column_index(column).unwrap_or_default();
        rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error))
    })
}

/// The same for a column that may be empty.
pub fn optional_text<T: FromStr<Err = Error>>(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<Option<T>> {
    let is_absent = row.get_ref(column)? == ValueRef::Null;
    (!is_absent).then(|| text(row, column)).transpose()
}

pub fn root(row: &Row<'_>, column: &str) -> rusqlite::Result<RootId> {
    Ok(RootId::new(ObjectId::from_bytes(row.get(column)?)))
}

pub fn time(row: &Row<'_>) -> rusqlite::Result<Time> {
    Ok(Time {
        secs: row.get("secs")?,
        nanos: row.get("nanos")?,
    })
}

/// A time whose columns may be null, both or none.
pub fn optional_time(row: &Row<'_>, prefix: &str) -> rusqlite::Result<Option<Time>> {
    let secs: Option<i64> = row.get(&*format!("{prefix}_secs"))?;
    let nanos: Option<u32> = row.get(&*format!("{prefix}_nanos"))?;
    Ok(secs.zip(nanos).map(|(secs, nanos)| Time { secs, nanos }))
}

pub fn optional_count(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|count| count as u64))
}

/// SQLite's integers are signed; counts never come near the sign.
pub fn count(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_roots_is_known_to_gc() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        migrate(&store).unwrap();
        let sql = "SELECT tables.name, columns.name FROM sqlite_master AS tables
            JOIN pragma_table_info(tables.name) AS columns
            WHERE tables.type = 'table' AND columns.name IN ('head', 'root', 'parent_root')
            ORDER BY 1, 2";
        let found: Vec<(String, String)> = store
            .read(|connection| {
                let mut select = connection.prepare(sql)?;
                let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok::<_, Error>(rows.collect::<rusqlite::Result<_>>()?)
            })
            .unwrap();
        assert!(found.len() >= 4);
        for (table, column) in found {
            let is_in = |part: &str| {
                part.contains(&format!(", {column},"))
                    && part.split_whitespace().any(|word| word == table)
            };
            let known = ROOTS.split("UNION ALL").any(is_in);
            assert!(known, "{column} of {table} is not among the roots of gc");
        }
    }
}
