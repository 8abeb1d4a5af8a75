//! What can go wrong: one type, with a kind to match on and a hint to show.

use std::fmt;

#[doc(inline)]
pub use avfs_runtime::ErrorKind;

/// What a method gives back.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done.
///
/// [`Error::kind`] is one of a closed list that all surfaces of agentvfs share. [`Error::hint`] says one thing to do about
/// it, where there is one.
///
/// A command that fails is no error: see [`crate::CommandResult`].
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    path: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            message: message.into(),
            hint: None,
            path: None,
            source: None,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn because(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        self.source = Some(source.into());
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// One thing to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The path in the vault that it is about, where there is one.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

impl From<avfs_api::Error> for Error {
    fn from(error: avfs_api::Error) -> Error {
        use avfs_api::Error as Api;
        let hint = match &error {
            Api::OtherVersion { .. } => Some(format!(
                "stop it with `avfs daemon stop`, and have avfs {} installed",
                crate::VERSION
            )),
            Api::HomeTaken { .. } => {
                Some("stop that daemon with `avfs daemon stop`, or connect to it".into())
            }
            error => error.hint(),
        };
        let message = match &error {
            Api::OtherVersion { daemon, client } => {
                format!("the daemon is version {daemon}, this library is {client}")
            }
            Api::HomeTaken { home } => {
                format!("a daemon or another program has {} open", home.display())
            }
            error => error.to_string(),
        };
        Error {
            kind: error.kind(),
            message,
            hint,
            path: error.path().map(str::to_owned),
            source: Some(Box::new(error)),
        }
    }
}
