//! Connections to the database: ordinary ones, and those of a home in which nothing can be written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::room::Room;
use crate::{Error, Result};

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

/// The first part of the index of the log, which is in memory that is shared through a file. It has room for all frames of a log that
/// is moved to the database in time.
const LOG_INDEX: u64 = 32 << 10;

/// An error where the disk has no room for the index of the log. SQLite makes sure of one block in every 4 KiB of the file. On file
/// systems with smaller blocks the others may be missing, and whoever touches one of them on a full disk is killed (SIGBUS).
pub fn check_room_for_index(path: &Path) -> Result<()> {
    match Room::of(path.parent().unwrap_or(path)).bytes < LOG_INDEX {
        true => Err(Error::Full),
        false => Ok(()),
    }
}

/// Has all blocks of the index of the log, once a connection has made its file. The answer must be kept until all connections are closed:
/// a process that closes a file loses its locks on it.
pub fn fill_index(path: &Path) -> Result<Option<File>> {
    let mut index = path.as_os_str().to_owned();
    index.push("-shm");
    let index = PathBuf::from(index);
    let failed = || Error::io("open", &index);
    let file = match OpenOptions::new().write(true).open(&index) {
        Ok(file) => file,
        // Nothing was read yet, or its index is in memory.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed()(error)),
    };
    match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, LOG_INDEX) {
        // Not every file system can.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(Some(file)),
        Err(Errno::NOSPC | Errno::DQUOT) => Err(Error::Full),
        Err(errno) => Err(failed()(errno.into())),
    }
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
