//! The closed list of kinds that every surface maps, and the kinds of the errors of the crates below.

use serde::{Deserialize, Serialize};

use super::approvals::unfit_kind;
use super::disk::io_kind;

/// The one list of error kinds; exit codes, HTTP statuses and errnos are tables over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorKind {
    /// What was named is not there.
    NotFound,
    /// What was to be made is there already.
    AlreadyExists,
    /// The request makes no sense.
    Invalid,
    /// It may not be done, or not by this caller.
    Denied,
    /// Somebody has to approve it first.
    NeedsApproval,
    /// Something else is in the way: a running command, another change, another version.
    Conflict,
    /// A quota, or the disk, has no room for it.
    Quota,
    /// It took too long.
    TimedOut,
    /// What it needs is not there at the moment: the daemon, a helper, something of the host.
    Unavailable,
    /// Stored data is damaged.
    Corrupt,
    /// A fault of agentvfs.
    Bug,
}

impl ErrorKind {
    /// Every kind, for tables and tests.
    pub const ALL: [ErrorKind; 11] = [
        ErrorKind::NotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::Invalid,
        ErrorKind::Denied,
        ErrorKind::NeedsApproval,
        ErrorKind::Conflict,
        ErrorKind::Quota,
        ErrorKind::TimedOut,
        ErrorKind::Unavailable,
        ErrorKind::Corrupt,
        ErrorKind::Bug,
    ];

    /// The name that crosses every wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "NotFound",
            ErrorKind::AlreadyExists => "AlreadyExists",
            ErrorKind::Invalid => "Invalid",
            ErrorKind::Denied => "Denied",
            ErrorKind::NeedsApproval => "NeedsApproval",
            ErrorKind::Conflict => "Conflict",
            ErrorKind::Quota => "Quota",
            ErrorKind::TimedOut => "TimedOut",
            ErrorKind::Unavailable => "Unavailable",
            ErrorKind::Corrupt => "Corrupt",
            ErrorKind::Bug => "Bug",
        }
    }

    /// The kind with this name.
    pub fn parse(text: &str) -> Option<ErrorKind> {
        ErrorKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

pub(super) fn vault_kind(error: &avfs_vault::Error) -> ErrorKind {
    use avfs_vault::Error as Vault;
    match error {
        Vault::VaultNotFound { .. }
        | Vault::VaultIdNotFound { .. }
        | Vault::DeletedVaultNotFound { .. }
        | Vault::CheckpointNotFound { .. }
        | Vault::VersionNotFound { .. }
        | Vault::ApprovalNotFound { .. }
        | Vault::PathNotFound { .. } => ErrorKind::NotFound,
        Vault::VaultExists { .. }
        | Vault::CheckpointExists { .. }
        | Vault::AlreadyExists { .. } => ErrorKind::AlreadyExists,
        Vault::Conflict { .. }
        | Vault::CheckpointHasForks { .. }
        | Vault::Swept { .. }
        | Vault::PolicyChanged { .. }
        | Vault::ApprovalShownOtherwise { .. }
        | Vault::ApproverChanged
        | Vault::ApprovalAnswered { .. } => ErrorKind::Conflict,
        Vault::ApprovalUnfit { reason, .. } => unfit_kind(*reason),
        Vault::TooManyApprovals { .. } => ErrorKind::Quota,
        Vault::QuotaExceeded { .. } => ErrorKind::Quota,
        Vault::Corrupt { .. } => ErrorKind::Corrupt,
        Vault::Read(source) | Vault::Write(source) => io_kind(source),
        Vault::Store(error) => store_kind(error),
        Vault::CheckpointNotAutomatic { .. }
        | Vault::NotADirectory { .. }
        | Vault::IsADirectory { .. }
        | Vault::NotAFile { .. }
        | Vault::SymlinkLoop { .. }
        | Vault::TopDirectory { .. }
        | Vault::InvalidPath { .. }
        | Vault::InvalidName { .. }
        | Vault::InvalidQuery { .. }
        | Vault::TooMuchAtOnce { .. }
        | Vault::InvalidText { .. } => ErrorKind::Invalid,
    }
}

pub(super) fn transfer_kind(error: &avfs_transfer::Error) -> ErrorKind {
    use avfs_transfer::Error as Transfer;
    match error {
        Transfer::Host { source, .. } => io_kind(source),
        Transfer::NotEmpty { .. } | Transfer::Exists { .. } => ErrorKind::AlreadyExists,
        Transfer::NeverImported { .. } | Transfer::NoDirectory => ErrorKind::NotFound,
        Transfer::NotBeneath { .. } => ErrorKind::Denied,
        Transfer::HostChanged { .. } => ErrorKind::Conflict,
        Transfer::RunsByItself { .. } => ErrorKind::Denied,
        Transfer::Archive { .. }
        | Transfer::Revision { .. }
        | Transfer::Untold { .. }
        | Transfer::Pattern { .. }
        | Transfer::NoGitignores
        | Transfer::NotASource { .. } => ErrorKind::Invalid,
        Transfer::NoGit { .. } | Transfer::Cancelled => ErrorKind::Unavailable,
        Transfer::Vault(error) => vault_kind(error),
    }
}

pub(super) fn store_kind(error: &avfs_store::Error) -> ErrorKind {
    use avfs_store::Error as Store;
    match error {
        Store::Missing { .. } | Store::Corrupt { .. } | Store::DatabaseLost { .. } => {
            ErrorKind::Corrupt
        }
        Store::InvalidId(_) | Store::InvalidQuery { .. } => ErrorKind::Invalid,
        Store::Full | Store::NoRoom(_) => ErrorKind::Quota,
        Store::Io { source, .. } => match io_kind(source) {
            // A file of ours that is missing is damage, not somebody's wrong name.
            ErrorKind::NotFound | ErrorKind::AlreadyExists | ErrorKind::Invalid => {
                ErrorKind::Corrupt
            }
            kind => kind,
        },
        Store::SyncFailed
        | Store::ReadOnly { .. }
        | Store::UnknownFormat { .. }
        | Store::UnknownSchema { .. }
        | Store::OldSqlite { .. } => ErrorKind::Unavailable,
        Store::Database(_) if error.is_full() => ErrorKind::Quota,
        Store::Database(_) if error.is_without_database() => ErrorKind::Corrupt,
        Store::Database(_) => ErrorKind::Unavailable,
    }
}
