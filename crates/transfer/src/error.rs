//! What can go wrong between a tree and the host's files.

use std::path::PathBuf;

/// How many paths an error names.
const NAMED: usize = 20;

/// An import, export or apply that did not happen, and why.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
    #[error("git does not tell which files of {} it tracks: {reason}", repository.display())]
    Untold { repository: PathBuf, reason: String },
    #[error("cannot run git: {source}")]
    NoGit { source: std::io::Error },
    #[error("invalid pattern '{pattern}': {reason}")]
    Pattern { pattern: String, reason: String },
    #[error("invalid option: only directories have .gitignore files to heed")]
    NoGitignores,
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

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// For `map_err`: names what was being done to which host path.
    pub fn host<E: Into<std::io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Error {
        let path = path.into();
        move |source| Error::Host {
            action,
            path,
            source: source.into(),
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
