//! What can go wrong between a tree and a directory.

use std::path::PathBuf;

use crate::TooMuch;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Vault(#[from] avfs_vault::Error),
    #[error("serving the lens: {0}")]
    Lens(#[source] std::io::Error),
    #[error("serving the view: {0}")]
    View(#[source] std::io::Error),
    #[error("layer {path}: {source}", path = path.display())]
    Layer {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("layer {path}: {reason}", path = path.display())]
    BadLayer { path: PathBuf, reason: &'static str },
    #[error("layer {path} is still in use by another process", path = path.display())]
    LayerInUse { path: PathBuf },
    #[error("reading the layer: {what}: {source}")]
    Scan {
        what: String,
        source: std::io::Error,
    },
    /// And no keeper is there to start another one.
    #[error("the process that reads layers is gone")]
    ScannerLost,
    #[error("the process that reads layers died {times} times over one request")]
    ScannerFails { times: u32 },
    #[error("the process that changes a view died in the middle of a change")]
    ViewOpLost,
    #[error("the process that reads layers sent a malformed answer: {0}")]
    BadAnswer(&'static str),
    #[error("{what}: {found}{at}, but no more than {most} are taken in", at = at(path))]
    TooMuch {
        what: TooMuch,
        most: u64,
        found: u64,
        /// As the listing has it, without a leading slash.
        path: Option<Vec<u8>>,
    },
    #[error("taking in what the layer holds was stopped")]
    Stopped,
    #[error("a directory of the layer came from {origin}, which its base does not have")]
    LostRedirect { origin: String },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

fn at(path: &Option<Vec<u8>>) -> String {
    match path {
        Some(path) => format!(" in /{}", String::from_utf8_lossy(path)),
        None => String::new(),
    }
}

impl Error {
    /// Whether something was to be put where there is no directory for it.
    pub(crate) fn is_without_place(&self) -> bool {
        use avfs_vault::Error as V;
        matches!(
            self,
            Error::Vault(V::NotADirectory { .. } | V::PathNotFound { .. })
        )
    }
}
