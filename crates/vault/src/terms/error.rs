//! What can go wrong with vaults and the trees in them.

use super::ids::RootId;
use super::names::{ApprovalId, CheckpointName, VaultId, VaultName};
use super::path::VaultPath;
use super::reasons::{QuotaLimit, Unfit};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no vault '{name}'")]
    VaultNotFound { name: VaultName },
    #[error("there is no vault with id {id}")]
    VaultIdNotFound { id: VaultId },
    #[error("there is already a vault '{name}'")]
    VaultExists { name: VaultName },
    #[error("there is no deleted vault '{name}' to bring back")]
    DeletedVaultNotFound { name: VaultName },
    #[error("there is no checkpoint '{name}' in this vault")]
    CheckpointNotFound { name: CheckpointName },
    #[error("there is already a checkpoint '{name}' in this vault")]
    CheckpointExists { name: CheckpointName },
    #[error("checkpoint '{name}' was asked for and is not dropped automatically")]
    CheckpointNotAutomatic { name: CheckpointName },
    #[error("forks began with checkpoint '{name}': {}", listed(forks))]
    CheckpointHasForks {
        name: CheckpointName,
        forks: Vec<VaultName>,
    },
    #[error("vault '{vault}' has no version {number}")]
    VersionNotFound { vault: VaultName, number: u64 },
    #[error("{path}: no such file or directory")]
    PathNotFound { path: VaultPath },
    #[error("{path}: not a directory")]
    NotADirectory { path: VaultPath },
    #[error("{path}: is a directory")]
    IsADirectory { path: VaultPath },
    #[error("{path}: not a regular file")]
    NotAFile { path: VaultPath },
    #[error("{path}: already exists")]
    AlreadyExists { path: VaultPath },
    #[error("{path}: too many levels of symbolic links")]
    SymlinkLoop { path: VaultPath },
    #[error("{path}: the vault's top directory cannot be {action}")]
    TopDirectory {
        path: VaultPath,
        action: &'static str,
    },
    #[error("invalid path '{text}': {reason}")]
    InvalidPath { text: String, reason: &'static str },
    #[error("invalid {what} name '{text}': {reason}")]
    InvalidName {
        what: &'static str,
        text: String,
        reason: &'static str,
    },
    #[error("invalid search {query:?}: {reason}")]
    InvalidQuery { query: String, reason: String },
    #[error("invalid {what} '{text}'")]
    InvalidText { what: &'static str, text: String },
    #[error("the vault has moved on: expected root {expected}, found {actual}")]
    Conflict { expected: RootId, actual: RootId },
    #[error(
        "vault '{vault}' may hold {most} {limit}; this would be {wanted}{}",
        at(path)
    )]
    QuotaExceeded {
        vault: VaultName,
        limit: QuotaLimit,
        most: u64,
        wanted: u64,
        /// The file that is too large by itself.
        path: Option<VaultPath>,
    },
    #[error("the rules of vault '{vault}' were changed by somebody else meanwhile")]
    PolicyChanged { vault: VaultName },
    #[error("there is no request for approval {id}")]
    ApprovalNotFound { id: ApprovalId },
    #[error("approval {id} was answered already")]
    ApprovalAnswered { id: ApprovalId },
    #[error("approval {id} cannot be used: {}", reason.as_str())]
    ApprovalUnfit { id: ApprovalId, reason: Unfit },
    #[error("the vault has changed since request {id} was shown")]
    ApprovalShownOtherwise { id: ApprovalId },
    #[error("somebody else has just set another passphrase")]
    ApproverChanged,
    #[error("{pending} requests of vault '{vault}' are waiting for approval, and that is enough")]
    TooManyApprovals { vault: VaultName, pending: usize },
    #[error("object {id} went with a gc while this was under way")]
    Swept { id: avfs_store::ObjectId },
    #[error("corrupt: {what}")]
    Corrupt { what: String },
    #[error("cannot read the content to store: {0}")]
    Read(#[source] std::io::Error),
    #[error("more than {most} bytes of a file at once")]
    TooMuchAtOnce { most: u64 },
    #[error("cannot write the content out: {0}")]
    Write(#[source] std::io::Error),
    #[error(transparent)]
    Store(#[from] avfs_store::Error),
}

impl Error {
    /// Whether there is no room left on the disk of the home.
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Store(error) if error.is_full())
    }

    /// Whether something stored is gone, or is not what it was.
    pub fn is_damage(&self) -> bool {
        match self {
            Error::Corrupt { .. } => true,
            Error::Store(error) => error.is_damage(),
            _ => false,
        }
    }
}

impl avfs_store::Failure for Error {
    fn of_store(&mut self) -> Option<&mut avfs_store::Error> {
        match self {
            Error::Store(error) => Some(error),
            _ => None,
        }
    }
}

fn at(path: &Option<VaultPath>) -> String {
    path.as_ref()
        .map_or(String::new(), |path| format!(" at {path}"))
}

/// How many names an error tells.
const NAMES_MAX: usize = 10;

fn listed(names: &[VaultName]) -> String {
    let shown: Vec<&str> = names
        .iter()
        .take(NAMES_MAX)
        .map(VaultName::as_str)
        .collect();
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
