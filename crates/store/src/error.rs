//! What can go wrong with stored bytes.

use std::path::PathBuf;

use crate::{ObjectId, reserve};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("object {id} is not in the store")]
    Missing { id: ObjectId },
    #[error("object {id} is corrupt: {reason}")]
    Corrupt { id: ObjectId, reason: String },
    #[error("'{text}' is not an object id (64 hexadecimal digits)")]
    InvalidId { text: String },
    #[error("cannot {action} {path}: {source}")]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the disk is full")]
    Full,
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
    #[error("database: {0}")]
    Database(#[from] rusqlite::Error),
}

impl Error {
    /// Whether there is no room left on the disk.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Full => true,
            Error::Io { source, .. } => reserve::is_full(source),
            Error::Database(rusqlite::Error::SqliteFailure(failure, _)) => {
                // The index of the log could not be made longer, which only a full disk prevents.
                failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE
                    || failure.code == rusqlite::ErrorCode::DiskFull
            }
            _ => false,
        }
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
