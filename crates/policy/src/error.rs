//! What can be wrong with a file of rules.

/// Rules that cannot be used, and why. Nothing weaker takes their place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{file}:{line}: {reason}")]
    Unreadable {
        file: String,
        line: usize,
        reason: String,
    },
    #[error("{file}:{line}: the rule does not match its own example {example:?}")]
    Unmatched {
        file: String,
        line: usize,
        example: String,
    },
    #[error("{file}:{line}: the rule matches {example:?}, which its `no-match` says it does not")]
    Overmatched {
        file: String,
        line: usize,
        example: String,
    },
}

impl Error {
    /// The file and line to mend.
    pub fn place(&self) -> (&str, usize) {
        match self {
            Error::Unreadable { file, line, .. }
            | Error::Unmatched { file, line, .. }
            | Error::Overmatched { file, line, .. } => (file, *line),
        }
    }
}
