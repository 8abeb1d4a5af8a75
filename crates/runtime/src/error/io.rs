//! Errors of the operating system.

use super::ErrorKind;

pub(crate) fn io_kind(error: &std::io::Error) -> ErrorKind {
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
