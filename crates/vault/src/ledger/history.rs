//! What is kept about vaults: lineage, versions, checkpoints, who did it and why.

use crate::terms::closed::words;
use crate::{CheckpointName, Description, ExecId, Principal, RootId, Time, VaultId, VaultName};

/// A named, durable workspace, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vault {
    pub id: VaultId,
    pub name: VaultName,
    pub head: RootId,
    /// The number of the newest version; 1 is the creation.
    pub version: u64,
    pub parent: Option<Lineage>,
    pub created: Time,
    pub quota: Quota,
    /// Who created or forked it.
    pub made_by: Principal,
}

/// What a vault may grow to; nothing is a limit that is not set.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The sum of all file sizes.
    pub bytes: Option<u64>,
    /// Names that are no directories.
    pub files: Option<u64>,
    /// The size of any one file.
    pub file_bytes: Option<u64>,
}

/// A vault that was deleted and can still be had back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedVault {
    /// As it was, its name included.
    pub vault: Vault,
    pub deleted: Time,
}

/// What a fork was made from. The source may since have been renamed or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    pub vault: VaultId,
    pub name: VaultName,
    pub root: RootId,
}

/// What a new head says about itself.
#[derive(Clone, Debug)]
pub struct NewVersion {
    pub by: Principal,
    pub exec: Option<ExecId>,
    pub cause: Cause,
    /// Goes into the journal entry.
    pub details: serde_json::Value,
}

/// One head a vault has had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub number: u64,
    pub root: RootId,
    pub by: Principal,
    pub exec: Option<ExecId>,
    pub cause: Cause,
    pub time: Time,
}

/// A named root of a vault, kept until deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub name: CheckpointName,
    pub description: Option<Description>,
    pub root: RootId,
    pub origin: CheckpointOrigin,
    pub time: Time,
    pub by: Principal,
}

/// What `restore` did, and what undoes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub version: Version,
    pub undo: Checkpoint,
}

words!(
    /// Why a vault's head moved.
    Cause, "cause", {
        Create = "create",
        Fork = "fork",
        Write = "write",
        Mkdir = "mkdir",
        Remove = "remove",
        Move = "move",
        Copy = "copy",
        Link = "link",
        Mode = "mode",
        Touch = "touch",
        Edit = "edit",
        /// One path as it was in an older version.
        Checkout = "checkout",
        /// One path one step back.
        Revert = "revert",
        /// Tags and metadata.
        Label = "label",
        Import = "import",
        Exec = "exec",
        /// What was written in a view, taken in on demand.
        Commit = "commit",
        Restore = "restore",
        /// A layer found after a crash.
        Interrupted = "interrupted",
        /// A root that was found without a row that names it.
        Recovered = "recovered",
    }
);

words!(
    /// What became of a request for approval.
    ApprovalState, "approval state", {
        Pending = "pending",
        Approved = "approved",
        Denied = "denied",
        Used = "used",
    }
);

words!(
    /// Who wanted a checkpoint.
    CheckpointOrigin, "checkpoint origin", {
        Asked = "asked",
        /// A policy decision, before a command.
        Automatic = "automatic",
        /// What `restore` replaced.
        BeforeRestore = "before_restore",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_text_and_back() {
        for cause in Cause::ALL {
            assert_eq!(cause.to_string().parse::<Cause>().unwrap(), *cause);
        }
        for origin in CheckpointOrigin::ALL {
            assert_eq!(
                origin.to_string().parse::<CheckpointOrigin>().unwrap(),
                *origin
            );
        }
    }
}
