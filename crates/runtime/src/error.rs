//! What can go wrong in a use case, and the closed list of kinds that every surface maps.

use avfs_vault::{RootId, VaultPath};

/// The one list of error kinds; exit codes, HTTP statuses and errnos are tables over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    NotFound,
    AlreadyExists,
    Invalid,
    Denied,
    NeedsApproval,
    Conflict,
    Quota,
    TimedOut,
    Unavailable,
    Corrupt,
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
        ErrorKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A use case that did not happen, and why.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Vault(#[from] avfs_vault::Error),
    #[error(transparent)]
    Store(#[from] avfs_store::Error),
    #[error(transparent)]
    View(#[from] avfs_view::Error),
    #[error(transparent)]
    Sandbox(#[from] avfs_sandbox::Error),
    #[error(transparent)]
    Transfer(#[from] crate::TransferError),
    #[error("no vault is selected")]
    NoCurrentVault,
    #[error("{path} is lent by the host, read-only")]
    LentPath { path: VaultPath },
    #[error("{path} belongs to the sandbox and is not part of the vault")]
    SandboxPath { path: VaultPath },
    #[error("{path} already exists")]
    PathExists { path: VaultPath },
    #[error("directory {path} is not empty")]
    NotEmpty { path: VaultPath },
    #[error("cannot move {from} into itself ({to})")]
    MoveIntoItself { from: VaultPath, to: VaultPath },
    #[error("{running} command(s) are running in vault {vault}")]
    Busy { vault: String, running: usize },
    #[error("version {number} of vault {vault} does not exist")]
    VersionNotFound { vault: String, number: u64 },
    #[error("the head of vault {vault} moved from {expected} while this was being done")]
    HeadMoved { vault: String, expected: RootId },
    #[error("invalid {what}: {reason}")]
    Invalid { what: &'static str, reason: String },
    #[error("{home} is in use by another daemon")]
    HomeInUse { home: String },
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
