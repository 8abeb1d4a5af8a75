//! SQLite: the index of objects, transactions, read connections, and the timer that syncs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior};

use crate::engine::Place;
use crate::{Durability, Error, ObjectId, Result, StoreStats};

/// Older ones may corrupt a WAL that several connections share.
const SQLITE_REQUIRED: (i32, &str) = (3_051_003, "3.51.3");
const FORMAT: i64 = 1;
const IDLE_READERS: usize = 4;
/// What was committed without a sync is on the disk after about this long.
const SYNC_DELAY: Duration = Duration::from_secs(2);
/// How long somebody waits for a lock of the database.
const PATIENCE: Duration = Duration::from_secs(10);
/// Only when the timer does not keep up does a commit move the log itself.
const LOG_PAGES: u32 = 8192;

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

pub struct Database {
    path: PathBuf,
    writer: Mutex<Writer>,
    readers: Mutex<Vec<Connection>>,
    timer: Timer,
    /// A sync of the log or of the database has failed; shared with the timer.
    sync_failed: Arc<AtomicBool>,
}

struct Writer {
    connection: Connection,
    durability: Durability,
}

impl Database {
    pub fn open(path: PathBuf) -> Result<Database> {
        if rusqlite::version_number() < SQLITE_REQUIRED.0 {
            let found = rusqlite::version().to_owned();
            return Err(Error::OldSqlite {
                found,
                required: SQLITE_REQUIRED.1,
            });
        }
        let writer = Writer::open(&path)?;
        prepare_schema(&writer.connection, &path)?;
        let sync_failed = Arc::new(AtomicBool::new(false));
        let timer = Timer::start(&path, sync_failed.clone())?;
        Ok(Database {
            path,
            writer: Mutex::new(writer),
            readers: Mutex::new(Vec::new()),
            timer,
            sync_failed,
        })
    }

    /// Holds back all other writers until `f` is done and committed, or has failed.
    pub fn write<T, E: From<Error>>(
        &self,
        durability: Durability,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut writer = self.writer();
        self.heal(&mut writer)?;
        writer.set_durability(durability)?;
        let begun = Transaction::new(&mut writer.connection, TransactionBehavior::Immediate);
        let transaction = begun.map_err(Error::from)?;
        let value = f(&transaction)?;
        if let Err(error) = transaction.commit() {
            if is_sync_failure(&error) {
                self.sync_failed.store(true, Ordering::Release);
            }
            return Err(Error::from(error).into());
        }
        drop(writer);
        self.timer.committed();
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
        f: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = self.readers().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect(&self.path)?,
        };
        let result = f(&connection);
        let mut readers = self.readers();
        if readers.len() < IDLE_READERS {
            readers.push(connection);
        }
        result
    }

    /// Gives back the memory that only speed needs, and the disk space of the log.
    pub fn rest(&self) -> Result<()> {
        self.readers().clear();
        let writer = self.writer();
        empty_log(&writer.connection)?;
        Ok(writer.connection.release_memory()?)
    }

    pub fn find(&self, id: ObjectId) -> Result<Option<Row>> {
        self.read(|connection| {
            let sql = "SELECT pack, offset, stored, size, id FROM object WHERE id = ?1";
            let mut select = connection.prepare_cached(sql)?;
            let row = select.query_row([id.as_bytes()], index_row).optional()?;
            Ok(row.map(|(_, row)| row))
        })
    }

    pub fn stats(&self) -> Result<StoreStats> {
        self.read(|connection| {
            let sql = "SELECT objects, bytes FROM store";
            let counts: (i64, i64) =
                connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(StoreStats {
                objects: counts.0 as u64,
                bytes_stored: counts.1 as u64,
            })
        })
    }

    pub fn check(&self) -> Result<Vec<String>> {
        self.read(|connection| {
            let snapshot = connection.unchecked_transaction()?;
            let mut check = snapshot.prepare("PRAGMA integrity_check(20)")?;
            let lines = check.query_map([], |row| row.get::<_, String>(0))?;
            let mut problems = lines.collect::<rusqlite::Result<Vec<_>>>()?;
            problems.retain(|line| line != "ok");
            let sql = "SELECT count(*), coalesce(sum(stored), 0) FROM object";
            let pair = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            let found = snapshot.query_row(sql, [], pair)?;
            let noted = snapshot.query_row("SELECT objects, bytes FROM store", [], pair)?;
            if found != noted {
                problems.push(format!(
                    "the index has {} objects of {} bytes, its totals say {} of {}",
                    found.0, found.1, noted.0, noted.1
                ));
            }
            Ok(problems)
        })
    }

    /// Gives free pages back to the disk, and empties the log.
    pub fn vacuum(&self) -> Result<()> {
        let writer = self.writer();
        writer.connection.execute_batch("VACUUM")?;
        empty_log(&writer.connection)
    }

    /// The database and its log.
    pub fn database_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for suffix in ["", "-wal"] {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            match std::fs::metadata(&path) {
                Ok(meta) => bytes += meta.len(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("measure", path)(error)),
            }
        }
        Ok(bytes)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        // A transaction that panicked has been rolled back by its drop.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn prepare_schema(connection: &Connection, path: &Path) -> Result<()> {
    connection.execute_batch(SCHEMA)?;
    let sql = "INSERT OR IGNORE INTO store (one, format, objects, bytes) VALUES (1, ?1, 0, 0)";
    connection.execute(sql, [FORMAT])?;
    let found = connection.query_row("SELECT format FROM store", [], |row| row.get(0))?;
    if found != FORMAT {
        return Err(Error::UnknownFormat {
            path: path.to_owned(),
            found,
            known: FORMAT,
        });
    }
    Ok(())
}

/// Moves the log into the database, with the syncs this takes, off the path of any commit.
struct Timer {
    shared: Arc<(Mutex<TimerState>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum TimerState {
    Idle,
    Committed,
    Stopped,
}

impl Timer {
    fn start(path: &Path, sync_failed: Arc<AtomicBool>) -> Result<Timer> {
        let connection = connect(path)?;
        let shared = Arc::new((Mutex::new(TimerState::Idle), Condvar::new()));
        let theirs = shared.clone();
        let run = move || run_timer(&connection, &theirs, &sync_failed);
        let thread = std::thread::Builder::new()
            .name("avfs-sync".to_owned())
            .spawn(run);
        let thread = Some(thread.map_err(Error::io("start the sync timer of", path))?);
        Ok(Timer { shared, thread })
    }

    fn committed(&self) {
        self.set(TimerState::Committed);
    }

    fn set(&self, state: TimerState) {
        let (lock, changed) = &*self.shared;
        let previous = {
            let mut held = lock.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *held, state)
        };
        if previous != state {
            changed.notify_one();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.set(TimerState::Stopped);
        if let Some(thread) = self.thread.take() {
            // A timer that panicked has nothing left to tell.
            let _ = thread.join();
        }
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

/// Whether the kernel failed to put something on the disk that was written before.
fn is_sync_failure(error: &rusqlite::Error) -> bool {
    let code = match error {
        rusqlite::Error::SqliteFailure(failure, _) => failure.extended_code,
        _ => return false,
    };
    [
        rusqlite::ffi::SQLITE_IOERR_FSYNC,
        rusqlite::ffi::SQLITE_IOERR_DIR_FSYNC,
    ]
    .contains(&code)
}

fn run_timer(
    connection: &Connection,
    shared: &(Mutex<TimerState>, Condvar),
    sync_failed: &AtomicBool,
) {
    let (lock, changed) = shared;
    let mut state = lock.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        state = changed
            .wait_while(state, |state| *state == TimerState::Idle)
            .unwrap_or_else(PoisonError::into_inner);
        let stopping = |state: &mut TimerState| *state != TimerState::Stopped;
        (state, _) = changed
            .wait_timeout_while(state, SYNC_DELAY, stopping)
            .unwrap_or_else(PoisonError::into_inner);
        if *state == TimerState::Stopped {
            return;
        }
        *state = TimerState::Idle;
        drop(state);
        let moved = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        state = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if moved.as_ref().is_err_and(is_sync_failure) {
            sync_failed.store(true, Ordering::Release);
        }
        let busy = Some(ErrorCode::DatabaseBusy);
        let again = moved.is_err_and(|error| error.sqlite_error_code() == busy);
        if again && *state == TimerState::Idle {
            *state = TimerState::Committed;
        }
    }
}
