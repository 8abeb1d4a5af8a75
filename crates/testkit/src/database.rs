//! The database of a home, read and changed behind the program's back.

use std::path::Path;

use rusqlite::Connection;

fn open(home: &Path) -> Connection {
    Connection::open(home.join("store.db")).expect("a home has a database")
}

/// Runs SQL statements. A store may have the home open meanwhile.
pub fn change_database(home: &Path, sql: &str) {
    open(home).execute_batch(sql).expect(sql);
}

/// The number that a SQL query returns.
pub fn ask_database(home: &Path, sql: &str) -> i64 {
    let number = open(home).query_row(sql, [], |row| row.get(0));
    number.expect(sql)
}
