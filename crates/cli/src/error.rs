//! The errors of verbs, and how they are reported.

use avfs_runtime::ErrorKind;
use std::io;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Api(#[from] avfs_api::Error),
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// Standard output was closed by its reader.
    #[error("standard output is closed")]
    OutputClosed,
    #[error("{text}")]
    Invalid { text: String, hint: Option<String> },
    #[error("{text}")]
    Unavailable { text: String, hint: Option<String> },
}

impl Error {
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }

    /// From writing to standard output or error.
    pub fn output(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Error::OutputClosed,
            _ => Error::Io {
                what: "cannot write the output".into(),
                source: error,
            },
        }
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Api(error) => error.kind(),
            Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                ErrorKind::NotFound
            }
            Error::Io { .. } | Error::OutputClosed | Error::Unavailable { .. } => {
                ErrorKind::Unavailable
            }
            Error::Invalid { .. } => ErrorKind::Invalid,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Api(error) => error.hint(),
            Error::Io { .. } | Error::OutputClosed => None,
            Error::Invalid { hint, .. } | Error::Unavailable { hint, .. } => hint.clone(),
        }
    }

    pub fn path(&self) -> Option<&str> {
        match self {
            Error::Api(error) => error.path(),
            _ => None,
        }
    }

    /// The message, with the causes that it does not include itself.
    pub fn message(&self) -> String {
        let mut message = self.to_string();
        let mut cause = match self {
            Error::Api(error) => std::error::Error::source(error),
            _ => None,
        };
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        message
    }
}
