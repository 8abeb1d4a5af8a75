//! The errors of this crate.

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
    /// And there is no keeper to start another one.
    #[error("the scanner has died")]
    ScannerLost,
    #[error("the scanner died {times} times during one request")]
    ScannerFails { times: u32 },
    #[error("the view writer died during a change")]
    ViewOpLost,
    #[error("the scanner sent a malformed answer: {0}")]
    BadAnswer(&'static str),
    #[error("{what}: {found}{at}, but at most {most} can be committed", at = at(path))]
    TooMuch {
        what: TooMuch,
        most: u64,
        found: u64,
        /// In the form of the listing, without a leading slash.
        path: Option<Vec<u8>>,
    },
    #[error("the commit of the layer was cancelled")]
    Stopped,
    #[error("a directory of the layer is redirected to {origin}, which its base does not have")]
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
    /// Whether the parent of a new entry is not a directory.
    pub(crate) fn is_without_place(&self) -> bool {
        use avfs_vault::Error as V;
        matches!(
            self,
            Error::Vault(V::NotADirectory { .. } | V::PathNotFound { .. })
        )
    }
}
