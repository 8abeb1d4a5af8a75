//! Errors in files of rules.

use super::decision::{Action, Decision};
use crate::programs::Categories;

/// Why a file of rules cannot be used. While it cannot, every request is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{file}:{line}: {reason}")]
    Unreadable {
        file: String,
        line: usize,
        reason: String,
    },
    #[error("{file}: {reason}")]
    Unavailable { file: String, reason: String },
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
    /// The file and the line of the error.
    pub fn place(&self) -> (&str, usize) {
        match self {
            Error::Unreadable { file, line, .. }
            | Error::Unmatched { file, line, .. }
            | Error::Overmatched { file, line, .. } => (file, *line),
            Error::Unavailable { file, .. } => (file, 1),
        }
    }

    /// The decision on every request while the rules cannot be used.
    pub fn decision(&self) -> Decision {
        let (file, line) = self.place();
        Decision {
            action: Action::Deny,
            categories: Categories::default(),
            reason: Some(format!(
                "the rules cannot be used, so nothing may run: {self}"
            )),
            rule: format!("{file}:{line}"),
            parts: Vec::new(),
            smallest_rule: None,
        }
    }
}
