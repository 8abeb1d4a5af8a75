//! Connections to the database: ordinary ones, and those of a home in which nothing can be written.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::Result;

/// How long somebody waits for a lock of the database.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Statements that a connection keeps ready.
const STATEMENTS: usize = 64;

/// A connection that may read and write. It makes the log and its index where they are missing.
pub fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// A connection that makes, changes and locks no file, for while nobody writes. It sees what the log holds: the
/// index of the log is in memory, because its file could not be made.
pub fn connect_frozen(path: &Path) -> Result<Connection> {
    let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match std::fs::metadata(log_of(path)) {
        Ok(log) if log.len() > 0 => {
            // Without locks, as a lock cannot be had on a file that is open for reading alone.
            let connection = Connection::open_with_flags_and_vfs(path, read_only, c"unix-none")?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            // With this the index of the log is in memory.
            connection.pragma_update(None, "locking_mode", "exclusive")?;
            connection
        }
        // Nothing is in the log, and it is not to be made.
        _ => Connection::open_with_flags(immutable(path), read_only | OpenFlags::SQLITE_OPEN_URI)?,
    };
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Where SQLite keeps the log of a database.
pub fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// The database as a URI that has SQLite take it for a file that nobody can change.
fn immutable(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}
