//! What to do next when something about an approval was refused.

use avfs_vault::{Error as VaultError, Unfit};

use super::{Error, ErrorKind};

impl Error {
    pub(crate) fn approval_hint(&self) -> Option<String> {
        Some(match self {
            Error::RunsAlone { .. } => {
                "until it ends nothing else may change the vault or run in it: wait, or work in a fork".into()
            }
            Error::MovedWhileTried { .. } => "try again when nothing else changes the vault".into(),
            Error::NotApprover { hint, .. } => (*hint).into(),
            Error::CannotBind { .. } => {
                "put what it needs into the vault: it can have no input and no terminal".into()
            }
            _ => return None,
        })
    }
}

pub(crate) fn approval_hint(error: &VaultError) -> Option<String> {
    Some(match error {
        VaultError::ApprovalUnfit { .. } => {
            "run the command again without --approval to ask once more".into()
        }
        VaultError::ApprovalShownOtherwise { .. } => {
            "look at it again with `avfs approval show`, and approve what is shown then".into()
        }
        VaultError::ApproverChanged => "begin again: `avfs approval setup`".into(),
        VaultError::TooManyApprovals { .. } => {
            "wait until the owner has answered some: `avfs approval list` shows them".into()
        }
        _ => return None,
    })
}

pub(crate) fn unfit_kind(reason: Unfit) -> ErrorKind {
    match reason {
        Unfit::Pending => ErrorKind::NeedsApproval,
        Unfit::VaultMoved | Unfit::TriedOnOther => ErrorKind::Conflict,
        Unfit::Denied | Unfit::Used | Unfit::Expired | Unfit::OtherVault | Unfit::OtherRequest => {
            ErrorKind::Denied
        }
    }
}
