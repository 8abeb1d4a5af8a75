//! Errors of a full disk, and of files of the host.

use std::path::Path;

use avfs_store::{Error as Store, Shortage};
use avfs_transfer::Error as TransferError;
use avfs_view::Error as View;

use super::{Error, ErrorKind};

pub(crate) const NO_ROOM: &str = "`avfs rm`, `avfs gc`, `avfs checkpoint restore --force` and `avfs vault delete --force` work \
     without room; `avfs stats` tells what takes it";

impl Error {
    pub(crate) fn shortage(&mut self) -> Option<&mut Shortage> {
        use avfs_vault::Error as Vault;
        match self {
            Error::Uncommitted { source, .. } => source.shortage(),
            Error::Vault(Vault::Store(Store::NoRoom(shortage)))
            | Error::Store(Store::NoRoom(shortage))
            | Error::View(View::Vault(Vault::Store(Store::NoRoom(shortage)))) => Some(shortage),
            _ => None,
        }
    }

    /// Whether this tells of a full disk, but not how much is missing.
    pub fn lacks_figures(&mut self) -> bool {
        self.is_full() && self.shortage().is_none()
    }

    /// Whether something could not be written down in the home, while files of the host were being written.
    pub(crate) fn is_note_without_room(&self, home: &Path) -> bool {
        match self {
            Error::Transfer(TransferError::Host { path, source, .. }) => {
                path.starts_with(home) && is_full(source)
            }
            _ => false,
        }
    }

    /// Whether there is no room on the disk of the home.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Error::Vault(error) | Error::View(View::Vault(error)) => error.is_full(),
            Error::Store(error) => error.is_full(),
            Error::View(View::Layer { source, .. } | View::Scan { source, .. })
            | Error::Io { source, .. } => is_full(source),
            Error::Uncommitted { source, .. } => source.is_full(),
            _ => false,
        }
    }
}

fn is_full(error: &std::io::Error) -> bool {
    io_kind(error) == ErrorKind::Quota && error.kind() != std::io::ErrorKind::FileTooLarge
}

pub(super) fn io_kind(error: &std::io::Error) -> ErrorKind {
    use std::io::ErrorKind as Io;
    match error.kind() {
        Io::NotFound => ErrorKind::NotFound,
        Io::AlreadyExists => ErrorKind::AlreadyExists,
        Io::PermissionDenied => ErrorKind::Denied,
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::Quota,
        Io::TimedOut => ErrorKind::TimedOut,
        Io::NotADirectory | Io::IsADirectory | Io::DirectoryNotEmpty | Io::InvalidInput => {
            ErrorKind::Invalid
        }
        _ => ErrorKind::Unavailable,
    }
}
