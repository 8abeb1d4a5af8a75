//! What can go wrong between a vault and the host's files.

use std::path::PathBuf;

use rustix::io::Errno;

use crate::ErrorKind;
use crate::error::{io_kind, vault_kind};

/// How many paths an error names.
const NAMED: usize = 20;

/// What can go wrong between a vault and the host's filesystem.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("cannot {action} {}: {source}", path.display())]
    Host {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} is not empty", path.display())]
    NotEmpty { path: PathBuf },
    #[error("cannot take in {archive}: {reason}")]
    Archive { archive: String, reason: String },
    #[error("cannot read revision {revision} of {}: {reason}", repository.display())]
    Revision {
        revision: String,
        repository: PathBuf,
        reason: String,
    },
    #[error("cannot run git: {source}")]
    NoGit { source: std::io::Error },
    #[error("invalid pattern '{pattern}': {reason}")]
    Pattern { pattern: String, reason: String },
    #[error("{} is neither a directory nor a tar archive", path.display())]
    NotASource { path: PathBuf },
    #[error("{} already exists", path.display())]
    Exists { path: PathBuf },
    #[error("{} was never imported into this vault", path.display())]
    NeverImported { path: PathBuf },
    #[error("{} changed since its import, so nothing was written: {}", host_dir.display(), list(paths))]
    HostChanged {
        host_dir: PathBuf,
        /// Relative to the directory, each with what happened to it.
        paths: Vec<(String, &'static str)>,
    },
    #[error(
        "nothing was written, because git would use this by itself: {}",
        list(paths)
    )]
    RunsByItself {
        /// Relative to the directory, each with what becomes of it.
        paths: Vec<(String, &'static str)>,
    },
    #[error("there is no transfer directory")]
    NoDirectory,
    #[error("{} is not beneath the transfer directory alone", name.display())]
    NotBeneath { name: PathBuf },
    #[error("it was cancelled; nothing has changed")]
    Cancelled,
    #[error(transparent)]
    Vault(#[from] avfs_vault::Error),
}

impl TransferError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            TransferError::Host { source, .. } => io_kind(source),
            TransferError::NotEmpty { .. } | TransferError::Exists { .. } => {
                ErrorKind::AlreadyExists
            }
            TransferError::NeverImported { .. } | TransferError::NoDirectory => ErrorKind::NotFound,
            TransferError::NotBeneath { .. } => ErrorKind::Denied,
            TransferError::HostChanged { .. } => ErrorKind::Conflict,
            TransferError::RunsByItself { .. } => ErrorKind::Denied,
            TransferError::Archive { .. }
            | TransferError::Revision { .. }
            | TransferError::Pattern { .. }
            | TransferError::NotASource { .. } => ErrorKind::Invalid,
            TransferError::NoGit { .. } | TransferError::Cancelled => ErrorKind::Unavailable,
            TransferError::Vault(error) => vault_kind(error),
        }
    }

    /// The one thing to do next, where there is one.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            TransferError::NotEmpty { .. } => {
                "name a directory that is new or empty, or bring back only what changed with \
                 `avfs export --changed-only DIR`"
                    .into()
            }
            TransferError::NeverImported { path } => {
                format!(
                    "run `avfs export PATH {}` with a new directory",
                    path.display()
                )
            }
            TransferError::HostChanged { .. } => {
                "look at them; `avfs export PATH DIR` writes the vault's state to a new directory"
                    .into()
            }
            TransferError::RunsByItself { .. } => {
                "look at them in the vault; --allow-hooks writes them, too".into()
            }
            TransferError::NotASource { .. } => {
                "`avfs write PATH --from-file FILE` takes in a single file".into()
            }
            TransferError::NoDirectory => "the owner can set one: `avfs transfer set DIR`".into(),
            TransferError::NotBeneath { .. } => {
                "name something in it: no link, no `..`, no file with other names; to export, a single new name".into()
            }
            TransferError::NoGit { .. } => "install git, or import the work tree itself".into(),
            TransferError::Pattern { .. } => "patterns are those of .gitignore files".into(),
            _ => return None,
        })
    }

    /// For `map_err`: names what was being done to which host path.
    pub(crate) fn host(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(Errno) -> TransferError {
        let path = path.into();
        move |errno| TransferError::Host {
            action,
            path,
            source: errno.into(),
        }
    }
}

fn list(paths: &[(String, &'static str)]) -> String {
    let named = paths.iter().take(NAMED);
    let named: Vec<String> = named.map(|(path, why)| format!("{path} ({why})")).collect();
    let rest = paths.len().saturating_sub(NAMED);
    match rest {
        0 => named.join(", "),
        rest => format!("{}, and {rest} more", named.join(", ")),
    }
}
