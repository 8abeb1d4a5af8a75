//! What entries of the journal tell of: a closed set for what is written, and what older or newer programs wrote.

use std::fmt;
use std::str::FromStr;

use crate::terms::closed::words;
use crate::{Cause, Error, Result};

words!(
    /// Something that was done or refused, other than moving a head. The words are part of the stored format: one that was
    /// written once is never changed, which is why there are two ways to put them together.
    JournalEvent, "operation", {
        VaultCreate = "vault.create",
        VaultFork = "vault.fork",
        VaultRename = "vault.rename",
        VaultDelete = "vault.delete",
        VaultUndelete = "vault.undelete",
        /// A deleted vault was removed for good.
        VaultForget = "vault.forget",
        CheckpointSave = "checkpoint.save",
        CheckpointDelete = "checkpoint.delete",
        /// A checkpoint that nobody asked for was removed.
        CheckpointDrop = "checkpoint.drop",
        Settings = "settings",
        /// Settings that new vaults begin with.
        Defaults = "defaults",
        Quota = "quota",
        Prune = "prune",
        Gc = "gc",
        Repair = "repair",
        Rebuild = "rebuild",
        PolicySet = "policy.set",
        PolicyWrite = "policy.write",
        /// A file of rules is not what it was.
        PolicyChanged = "policy.changed",
        ApprovalSetup = "approval.setup",
        ApprovalRequested = "approval.requested",
        ApprovalApproved = "approval.approved",
        ApprovalDenied = "approval.denied",
        ApprovalUsed = "approval.used",
        ApprovalRefused = "approval.refused",
        ApprovalWrongPassphrase = "approval.wrong_passphrase",
        ExecRequested = "exec_requested",
        ExecRefused = "exec_refused",
        /// A command waits for approval.
        ExecWaits = "exec_waits",
        /// A command ran, and what it wrote could not be committed.
        ExecUncommitted = "exec_uncommitted",
        /// What a command tried to reach on the network.
        ExecNetwork = "exec_network",
        UncommittedDiscarded = "uncommitted_discarded",
        /// What a dead daemon left could not be taken in.
        RecoveryFailed = "recovery_failed",
        JobStart = "job.start",
        JobStdin = "job.stdin",
        JobKill = "job.kill",
        JobEnd = "job.end",
        /// A job ended with the daemon that ran it.
        JobLost = "job.lost",
        Mount = "mount",
        Unmount = "unmount",
        /// A port of the host leads into the vault's sandboxes.
        PortForward = "port.forward",
        PortRemove = "port.remove",
        ExportChanges = "export_changes",
        TransferSet = "transfer.set",
        KeyCreate = "key.create",
        KeyRotate = "key.rotate",
        KeyRevoke = "key.revoke",
        SecretSet = "secret.set",
        SecretRemove = "secret.rm",
    }
);

/// What an entry is written for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Event(JournalEvent),
    /// A head moved, or a command or verb ended without moving it.
    Head(Cause),
}

/// What an entry tells of, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedOperation {
    Known(Operation),
    /// A word of a program that is older or newer than this one.
    Unknown(String),
}

impl Operation {
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Event(event) => event.as_str(),
            Operation::Head(cause) => cause.as_str(),
        }
    }
}

impl From<JournalEvent> for Operation {
    fn from(event: JournalEvent) -> Operation {
        Operation::Event(event)
    }
}

impl From<Cause> for Operation {
    fn from(cause: Cause) -> Operation {
        Operation::Head(cause)
    }
}

impl FromStr for Operation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Operation> {
        match text.parse() {
            Ok(cause) => Ok(Operation::Head(cause)),
            Err(_) => text.parse().map(Operation::Event),
        }
    }
}

impl RecordedOperation {
    pub fn as_str(&self) -> &str {
        match self {
            RecordedOperation::Known(operation) => operation.as_str(),
            RecordedOperation::Unknown(word) => word,
        }
    }
}

impl From<String> for RecordedOperation {
    fn from(word: String) -> RecordedOperation {
        match word.parse() {
            Ok(known) => RecordedOperation::Known(known),
            Err(_) => RecordedOperation::Unknown(word),
        }
    }
}

impl fmt::Display for RecordedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_operation_has_a_word_of_its_own_and_is_read_back() {
        let actions = JournalEvent::ALL
            .iter()
            .map(|event| Operation::from(*event));
        let causes = Cause::ALL.iter().map(|cause| Operation::from(*cause));
        let mut words = HashSet::new();
        for operation in actions.chain(causes) {
            assert!(words.insert(operation.as_str()), "{operation:?}");
            let read = RecordedOperation::from(operation.as_str().to_owned());
            assert_eq!(read, RecordedOperation::Known(operation));
        }
    }

    #[test]
    fn a_word_that_nobody_knows_stays_as_it_is() {
        for word in ["", "vault.teleport", "exec.denied", "Exec", "vault.create "] {
            let read = RecordedOperation::from(word.to_owned());
            assert_eq!(read, RecordedOperation::Unknown(word.to_owned()));
            assert_eq!(read.to_string(), word);
        }
    }
}
