//! What can be wrong with a file of rules.

use super::decision::{Action, Decision};
use crate::programs::Categories;

/// Rules that cannot be used, and why. Nothing weaker takes their place.
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
    /// The file and line to mend.
    pub fn place(&self) -> (&str, usize) {
        match self {
            Error::Unreadable { file, line, .. }
            | Error::Unmatched { file, line, .. }
            | Error::Overmatched { file, line, .. } => (file, *line),
            Error::Unavailable { file, .. } => (file, 1),
        }
    }

    /// The answer to every request while the rules are like this.
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
