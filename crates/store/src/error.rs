//! What can go wrong with stored bytes.

use std::path::PathBuf;

use crate::{InvalidId, ObjectId, Room};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("object {id} is not in the store")]
    Missing { id: ObjectId },
    #[error("object {id} is corrupt: {reason}")]
    Corrupt { id: ObjectId, reason: String },
    #[error(transparent)]
    InvalidId(#[from] InvalidId),
    #[error("cannot {action} {path}: {source}")]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the disk is full")]
    Full,
    #[error(transparent)]
    NoRoom(#[from] Shortage),
    #[error("{home} can only be read", home = home.display())]
    ReadOnly { home: PathBuf },
    #[error(
        "a sync of the disk failed, so nothing of this was stored; writing goes on by itself once the disk takes it"
    )]
    SyncFailed,
    #[error("{home} has packs of objects, but its database store.db is gone")]
    DatabaseLost { home: PathBuf },
    #[error("the store at {path} has format {found}, this program knows {known}")]
    UnknownFormat {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("SQLite {found} is older than {required}, which is needed for a safe WAL")]
    OldSqlite {
        found: String,
        required: &'static str,
    },
    #[error("the rows were written by schema {found}, this program knows {known}")]
    UnknownSchema { found: i64, known: i64 },
    #[error("the search is not understood: {reason}")]
    InvalidQuery { reason: String },
    #[error("database: {0}")]
    Database(DatabaseError),
}

/// What SQLite reports.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DatabaseError(rusqlite::Error);

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        Error::Database(DatabaseError(error))
    }
}

/// Whether a file operation failed because there is no room: on the disk, or in a quota of it.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// What a disk says of bytes that it cannot give back: EIO, EBADMSG, EUCLEAN.
const UNREADABLE: [i32; 3] = [5, 74, 117];

impl Error {
    /// Whether an object that must be there is not, or is not what it was.
    pub fn is_damage(&self) -> bool {
        match self {
            Error::Missing { .. } | Error::Corrupt { .. } => true,
            Error::Io {
                action: "read",
                source,
                ..
            } => (source.raw_os_error()).is_some_and(|code| UNREADABLE.contains(&code)),
            _ => false,
        }
    }

    /// Whether there is no database that could be read, so that only a rebuild helps.
    pub fn is_without_database(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            Error::DatabaseLost { .. } => true,
            Error::Database(DatabaseError(error)) => {
                matches!(
                    error.sqlite_error_code(),
                    Some(DatabaseCorrupt | NotADatabase)
                )
            }
            _ => false,
        }
    }

    /// Whether there is no room left on the disk.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Full | Error::NoRoom(_) => true,
            Error::Io { source, .. } => is_full(source),
            Error::Database(DatabaseError(rusqlite::Error::SqliteFailure(failure, _))) => {
                // The index of the log could not be made longer, which only a full disk prevents.
                failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE
                    || failure.code == rusqlite::ErrorCode::DiskFull
            }
            _ => false,
        }
    }

    /// Whether SQLite could not write and does not say why: a user's quota may be used up.
    pub(crate) fn is_failed_write(&self) -> bool {
        let written = rusqlite::ffi::SQLITE_IOERR_WRITE;
        matches!(self, Error::Database(DatabaseError(rusqlite::Error::SqliteFailure(failure, _)))
            if failure.extended_code == written)
    }

    /// For `map_err`: names what was being done to which file.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }
}

/// How much room is missing on the disk of a home.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no room on the disk of {home}: {}, and {} more are needed{}",
    free(.room), size(.missing), reserved(.reserve)
)]
pub struct Shortage {
    pub home: PathBuf,
    pub room: Room,
    /// At least.
    pub missing: u64,
    /// What of that is for the reserve.
    pub reserve: u64,
}

fn free(room: &Room) -> String {
    match room.files {
        0 => format!("{} are free, but no more files", size(&room.bytes)),
        _ => format!("{} are free", size(&room.bytes)),
    }
}

fn reserved(reserve: &u64) -> String {
    match reserve {
        0 => String::new(),
        reserve => format!(", {} of it to make the reserve whole again", size(reserve)),
    }
}

/// Bytes for people.
fn size(bytes: &u64) -> String {
    let (mut value, mut unit) = (*bytes as f64, "bytes");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    match unit {
        "bytes" => format!("{bytes} bytes"),
        unit => format!("{value:.1} {unit}"),
    }
}

/// An error of a transaction, which may be the store's own.
pub trait Failure: From<Error> {
    fn of_store(&mut self) -> Option<&mut Error>;
}

impl Failure for Error {
    fn of_store(&mut self) -> Option<&mut Error> {
        Some(self)
    }
}
