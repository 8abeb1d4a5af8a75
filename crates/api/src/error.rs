//! The errors between a client and the daemon.

use crate::wire::Problem;
use avfs_runtime::ErrorKind;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The daemon answered with an error.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    #[error("no daemon listens on {}", socket.display())]
    NoDaemon { socket: PathBuf },
    #[error("the daemon did not answer: {what}")]
    Broken { what: String },
    /// There was no answer, and the request was certainly not done: it can be repeated.
    #[error("the daemon did not answer: {what}")]
    Unheard { what: String },
    #[error("the daemon sent an invalid answer: {what}")]
    Nonsense { what: String },
    #[error(
        "the daemon is version {daemon}, this program is version {client}, and the daemon is busy"
    )]
    OtherVersion { daemon: String, client: String },
    #[error("the daemon could not be started: {reason}")]
    NotStarted {
        reason: String,
        hint: Option<String>,
    },
    #[error("another daemon owns {}", home.display())]
    HomeTaken { home: PathBuf },
    #[error("the clock of this machine is before 1970")]
    Clock,
    #[error("{} cannot be the path of a home: {reason}", home.display())]
    UnfitHome { home: PathBuf, reason: String },
    #[error("{} was moved, replaced or removed while its daemon ran", home.display())]
    HomeLost { home: PathBuf },
    #[error("{} cannot be trusted: {reason}", path.display())]
    Untrusted { path: PathBuf, reason: &'static str },
    #[error("cannot {what} {}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("{address} can be reached from other machines, which could read every key on its way")]
    Plaintext { address: SocketAddr },
    #[error("nobody could be served over the network: there is no key")]
    NoCredential,
    #[error("{reason}")]
    Credentials { reason: String },
    #[error("tokens cannot be checked: {reason}")]
    Issuer { reason: String },
    #[error("{} cannot be used for TLS: {reason}", path.display())]
    Certificate { path: PathBuf, reason: String },
    #[error("cannot set up the daemon's event loop")]
    Setup(#[source] io::Error),
    #[error("{0}")]
    Runtime(#[from] avfs_runtime::Error),
    #[error("interrupted")]
    Interrupted,
    #[error("cannot write the received data")]
    Output(#[source] io::Error),
    /// A value that somebody set means nothing.
    #[error("{text}")]
    Setting { text: String, hint: Option<String> },
    #[error("there is no home directory")]
    NoHomeDirectory,
}

impl Error {
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Error::File { source, .. } if is_full(source))
    }

    /// The kind of this error, which all surfaces share.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Refused(problem) => ErrorKind::parse(&problem.kind).unwrap_or(ErrorKind::Bug),
            Error::NoDaemon { .. }
            | Error::Broken { .. }
            | Error::Unheard { .. }
            | Error::NotStarted { .. }
            | Error::Clock
            | Error::HomeLost { .. } => ErrorKind::Unavailable,
            Error::Nonsense { .. } => ErrorKind::Bug,
            Error::OtherVersion { .. } | Error::HomeTaken { .. } => ErrorKind::Conflict,
            Error::Untrusted { .. } | Error::Plaintext { .. } => ErrorKind::Denied,
            Error::UnfitHome { .. }
            | Error::Setting { .. }
            | Error::NoCredential
            | Error::Issuer { .. }
            | Error::Certificate { .. } => ErrorKind::Invalid,
            Error::Credentials { .. } => ErrorKind::Corrupt,
            Error::NoHomeDirectory
            | Error::File { .. }
            | Error::Listen { .. }
            | Error::Setup(_)
            | Error::Interrupted
            | Error::Output(_) => ErrorKind::Unavailable,
            Error::Runtime(error) => error.kind(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Refused(problem) => problem.hint.clone(),
            Error::NoDaemon { .. } => Some("run `avfs daemon status`".into()),
            Error::OtherVersion { .. } => {
                Some("run `avfs daemon stop` when its commands have ended".into())
            }
            Error::Untrusted { path, .. } => Some(format!(
                "remove {} and run the command again",
                path.display()
            )),
            Error::Runtime(error) => error.hint(),
            Error::Setting { hint, .. } => hint.clone(),
            Error::NoHomeDirectory => Some("set HOME or AVFS_HOME".into()),
            Error::NotStarted { hint, .. } if hint.is_some() => hint.clone(),
            Error::Broken { .. } | Error::Unheard { .. } | Error::NotStarted { .. } => {
                Some("run `avfs doctor`".into())
            }
            Error::Clock => Some("set the clock".into()),
            Error::UnfitHome { .. } => Some("set AVFS_HOME to another path".into()),
            Error::NoCredential => {
                Some("make one: `avfs key create NAME --scope read,write,exec`".into())
            }
            Error::Plaintext { .. } => Some(
                "use --tls-cert and --tls-key, or listen on 127.0.0.1; --insecure-plaintext allows it".into(),
            ),
            Error::Credentials { .. } => {
                Some("put a good copy of keys.json back, or remove it and make new keys".into())
            }
            Error::HomeLost { .. } => {
                Some("run the command again: this daemon ends once nothing runs in it".into())
            }
            Error::Nonsense { .. }
            | Error::HomeTaken { .. }
            | Error::File { .. }
            | Error::Listen { .. }
            | Error::Issuer { .. }
            | Error::Certificate { .. }
            | Error::Setup(_)
            | Error::Interrupted
            | Error::Output(_) => None,
        }
    }

    /// The vault path concerned, if there is one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Error::Refused(problem) => problem.path.as_deref(),
            _ => None,
        }
    }
}

/// Whether the disk is full.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}
