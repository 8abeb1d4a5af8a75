//! The database: one connection that writes, a few that read, and what is done when the disk is full or fails.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, TryLockError,
};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::connect::{PATIENCE, check_room_for_index, connect, connect_frozen, fill_index, log_of};
use super::index::{check_format, prepare_schema};
use super::timer::{Timer, is_sync_failure};
use super::{Durability, Rows, Transaction};
use crate::room::Room;
use crate::{Error, Result};

/// Older ones may corrupt a WAL that several connections share.
const SQLITE_REQUIRED: (i32, &str) = (3_051_003, "3.51.3");
const IDLE_READERS: usize = 4;
/// Only when the timer does not keep up does a commit move the log itself.
const LOG_PAGES: u32 = 8192;

pub struct Database {
    path: PathBuf,
    /// Held for reading by whoever uses a connection, and exchanged only while nobody does.
    access: RwLock<Access>,
    readers: Mutex<Vec<Connection>>,
    /// A sync of the log or of the database has failed; shared with the timer.
    sync_failed: Arc<AtomicBool>,
    /// The index of the log. The last field, so that it is closed after all connections.
    log_index: OnceLock<File>,
}

/// What can be done with the database.
enum Access {
    Writable(Writable),
    /// It is only read, and no file is made or locked for that.
    Frozen(Frozen),
}

struct Writable {
    writer: Mutex<Writer>,
    timer: Timer,
}

/// Why nothing can be written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// The disk had no room when the database was opened. Each write tries to open it again.
    Full,
    /// Whoever opened it wants to read alone.
    ReadOnly,
}

impl Frozen {
    fn error(self, path: &Path) -> Error {
        match self {
            Frozen::Full => Error::Full,
            Frozen::ReadOnly => Error::ReadOnly {
                home: path.parent().unwrap_or(path).to_owned(),
            },
        }
    }
}

struct Writer {
    connection: Connection,
    durability: Durability,
}

impl Database {
    pub fn open(path: PathBuf) -> Result<Database> {
        check_sqlite()?;
        let sync_failed = Arc::default();
        let log_index = OnceLock::new();
        let writable = Writable::open(&path, &sync_failed, &log_index)?;
        Ok(Database {
            path,
            access: RwLock::new(Access::Writable(writable)),
            readers: Mutex::default(),
            sync_failed,
            log_index,
        })
    }

    /// Opens a database that is there, and changes nothing.
    pub fn open_frozen(path: PathBuf, why: Frozen) -> Result<Database> {
        check_sqlite()?;
        let connection = connect_frozen(&path)?;
        check_format(&connection, &path)?;
        Ok(Database {
            path,
            access: RwLock::new(Access::Frozen(why)),
            readers: Mutex::new(vec![connection]),
            sync_failed: Arc::default(),
            log_index: OnceLock::new(),
        })
    }

    pub fn frozen(&self) -> Option<Frozen> {
        match &*self.access() {
            Access::Writable(_) => None,
            Access::Frozen(why) => Some(*why),
        }
    }

    /// Opens for writing what was opened without room. True if that happened just now.
    pub fn thaw(&self) -> Result<bool> {
        match self.frozen() {
            None => return Ok(false),
            Some(Frozen::Full) => {}
            Some(why) => return Err(why.error(&self.path)),
        }
        let deadline = Instant::now() + PATIENCE;
        let mut access = loop {
            // Never waited for in a way that holds readers back: one may be reading within a read.
            match self.access.try_write() {
                Ok(access) => break access,
                Err(TryLockError::Poisoned(access)) => break access.into_inner(),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => return Err(Error::Full),
            }
        };
        if matches!(*access, Access::Writable(_)) {
            return Ok(false);
        }
        // They lock nothing, so none may be open when somebody writes.
        self.readers().clear();
        let writable = Writable::open(&self.path, &self.sync_failed, &self.log_index)?;
        *access = Access::Writable(writable);
        Ok(true)
    }

    /// Holds back all other writers until `f` is done and committed, or has failed.
    pub fn write<T, E: From<Error>>(
        &self,
        durability: Durability,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let access = self.access();
        let Writable { writer, timer } = access.writable(&self.path)?;
        let mut writer = lock(writer);
        self.heal(&mut writer)?;
        writer.set_durability(durability)?;
        let immediate = TransactionBehavior::Immediate;
        let begun = rusqlite::Transaction::new(&mut writer.connection, immediate);
        let transaction = begun.map_err(Error::from)?;
        let rows = Rows {
            connection: &transaction,
        };
        let value = f(&Transaction { rows })?;
        if let Err(error) = transaction.commit() {
            if is_sync_failure(&error) {
                self.sync_failed.store(true, Ordering::Release);
            }
            return Err(Error::from(error).into());
        }
        drop(writer);
        timer.committed();
        Ok(value)
    }

    /// After a failed sync, pages that were thought to be on the disk may not be. A new connection writes all that the
    /// log holds into the database and syncs that, before anything else is written.
    fn heal(&self, writer: &mut Writer) -> Result<()> {
        if !self.sync_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.readers().clear();
        let fresh = Writer::open(&self.path)?;
        let busy = fresh
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                row.get::<_, bool>(0)
            });
        match busy {
            Ok(false) => {
                *writer = fresh;
                self.sync_failed.store(false, Ordering::Release);
                Ok(())
            }
            Ok(true) | Err(_) => Err(Error::SyncFailed),
        }
    }

    pub fn read<T, E: From<Error>>(
        &self,
        f: impl FnOnce(&Rows<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        // Kept to the end: connections of one kind are closed before those of the other are opened.
        let access = self.access();
        let idle = self.readers().pop();
        let connection = match (idle, &*access) {
            (Some(connection), _) => connection,
            (None, Access::Writable(_)) => connect(&self.path)?,
            (None, Access::Frozen(_)) => connect_frozen(&self.path)?,
        };
        let result = f(&Rows {
            connection: &connection,
        });
        let mut readers = self.readers();
        if readers.len() < IDLE_READERS {
            readers.push(connection);
        }
        result
    }

    /// Gives back the memory that only speed needs, and the disk space of the log.
    pub fn release_caches(&self) -> Result<()> {
        self.readers().clear();
        let access = self.access();
        let Access::Writable(Writable { writer, .. }) = &*access else {
            return Ok(());
        };
        let writer = lock(writer);
        empty_log(&writer.connection)?;
        writer.connection.flush_prepared_statement_cache();
        Ok(writer.connection.release_memory()?)
    }

    /// Moves what the log holds into the database, which gives back the room that the log takes.
    pub fn empty_log(&self) -> Result<()> {
        let access = self.access();
        let Writable { writer, .. } = access.writable(&self.path)?;
        empty_log(&lock(writer).connection)
    }

    /// Runs `f` while no transaction is under way; none where one is.
    pub fn between_transactions<T>(&self, f: impl FnOnce() -> T) -> Option<T> {
        let access = self.access();
        let Access::Writable(Writable { writer, .. }) = &*access else {
            return None;
        };
        let _writer = match writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(writer)) => writer.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(f())
    }

    /// Moves all of the log to where it belongs, so that the database is one file.
    pub fn settle(&self) -> Result<()> {
        self.readers().clear();
        let access = self.access();
        let Writable { writer, .. } = access.writable(&self.path)?;
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: bool = lock(writer)
            .connection
            .query_row(sql, [], |row| row.get(0))?;
        match busy {
            false => Ok(()),
            true => Err(Error::SyncFailed),
        }
    }

    /// What is wrong with the database, in words.
    pub fn check(&self) -> Result<Vec<String>> {
        self.read(|rows| rows.snapshot(|rows| rows.check()))
    }

    /// Gives free pages back to the disk, and empties the log.
    pub fn vacuum(&self) -> Result<()> {
        let access = self.access();
        let Writable { writer, .. } = access.writable(&self.path)?;
        let writer = lock(writer);
        writer.connection.execute_batch("VACUUM")?;
        empty_log(&writer.connection)
    }

    /// The database and its log.
    pub fn database_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for path in [self.path.clone(), log_of(&self.path)] {
            match std::fs::metadata(&path) {
                Ok(meta) => bytes += meta.len(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("measure", path)(error)),
            }
        }
        Ok(bytes)
    }

    fn access(&self) -> RwLockReadGuard<'_, Access> {
        // It is exchanged in one step.
        self.access.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Access {
    fn writable(&self, path: &Path) -> Result<&Writable> {
        match self {
            Access::Writable(writable) => Ok(writable),
            Access::Frozen(why) => Err(why.error(path)),
        }
    }
}

impl Writable {
    fn open(
        path: &Path,
        sync_failed: &Arc<AtomicBool>,
        log_index: &OnceLock<File>,
    ) -> Result<Writable> {
        let open = || {
            check_room_for_index(path)?;
            let writer = Writer::open(path)?;
            prepare_schema(&writer.connection, path)?;
            if let Some(index) = fill_index(path)? {
                // A database is opened for writing once.
                let _ = log_index.set(index);
            }
            Ok(Writable {
                writer: Mutex::new(writer),
                timer: Timer::start(path, sync_failed.clone())?,
            })
        };
        open().map_err(|error| match error {
            // SQLite does not say why it could not make its files.
            Error::Database(_) if Room::of(path.parent().unwrap_or(path)).is_none() => Error::Full,
            error => error,
        })
    }
}

fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    // A transaction that panicked has been rolled back by its drop.
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    fn open(path: &Path) -> Result<Writer> {
        let connection = connect(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
        connection.pragma_update(None, "cache_size", -8192)?;
        Ok(Writer {
            connection,
            durability: Durability::Relaxed,
        })
    }

    fn set_durability(&mut self, durability: Durability) -> Result<()> {
        if self.durability != durability {
            let synchronous = match durability {
                Durability::Relaxed => "normal",
                Durability::Full => "full",
            };
            self.connection
                .pragma_update(None, "synchronous", synchronous)?;
            self.durability = durability;
        }
        Ok(())
    }
}

fn check_sqlite() -> Result<()> {
    let (required, name) = SQLITE_REQUIRED;
    match rusqlite::version_number() < required {
        true => Err(Error::OldSqlite {
            found: rusqlite::version().to_owned(),
            required: name,
        }),
        false => Ok(()),
    }
}

/// Moves what the log holds to where it belongs, and cuts the log to nothing. A reader who still
/// needs it is not waited for, as writers would have to wait too: then it stays for the next time.
fn empty_log(connection: &Connection) -> Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(PATIENCE)?;
    match emptied {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
        emptied => Ok(emptied?),
    }
}
