//! What can go wrong with secrets. No text here has a value.

use std::path::PathBuf;

use super::ErrorKind;

/// A secret that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("there is no secret {name}")]
    NotFound { name: String },
    #[error("there is no place for the key of secrets outside of the home")]
    NoPlace,
    #[error("the key of secrets, {path}, cannot be used: {why}", path = path.display())]
    Key { path: PathBuf, why: &'static str },
    #[error("the value of secret {name} was sealed with another key, or is damaged")]
    Sealed { name: String },
    #[error(
        "the secrets of this home cannot be read: another version wrote them, or they are damaged"
    )]
    Stored,
}

impl SecretError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            SecretError::NotFound { .. } => ErrorKind::NotFound,
            SecretError::NoPlace | SecretError::Key { .. } | SecretError::Sealed { .. } => {
                ErrorKind::Unavailable
            }
            SecretError::Stored => ErrorKind::Corrupt,
        }
    }

    pub(super) fn hint(&self) -> Option<String> {
        Some(match self {
            SecretError::NotFound { .. } => "`avfs secret list` shows the secrets".into(),
            SecretError::NoPlace => {
                "set HOME or XDG_CONFIG_HOME to a directory that is not within AVFS_HOME".into()
            }
            SecretError::Key { .. } => {
                "bring the key back from where the home was; else remove the secrets with `avfs secret rm`, and set them again"
                    .into()
            }
            SecretError::Sealed { name } => {
                format!("set it again with `avfs secret set {name}`, or remove it with `avfs secret rm {name}`")
            }
            SecretError::Stored => return None,
        })
    }
}
