//! Commands that wait for the owner, and the owner's answer.

use crate::avfs::Avfs;
use crate::error::Result;
use avfs_api::wire::{
    ApprovalApprove, ApprovalDeny, ApprovalDetails, ApprovalItem, ApprovalList, ApprovalListing,
    ApprovalSetup, ApprovalShow,
};
use std::time::Duration;

impl Avfs {
    /// Sets the passphrase with which the owner approves commands; `old` is the one that is set already.
    pub fn setup_approvals(&self, passphrase: &str, old: Option<&str>) -> Result<()> {
        self.ask(&ApprovalSetup {
            passphrase: passphrase.to_owned(),
            old: old.map(str::to_owned),
        })?;
        Ok(())
    }

    /// Commands that wait for approval.
    pub fn approvals(&self) -> Result<ApprovalListing> {
        self.ask(&ApprovalList::default())
    }

    /// Describes a request for approval: the command, its terms, and what it did when it was tried.
    pub fn approval(&self, id: &str) -> Result<ApprovalDetails> {
        self.ask(&ApprovalShow { id: id.to_owned() })
    }

    /// Approves what `shown` shows. If [`Avfs::approval`] would show something else by now, nothing is approved.
    ///
    /// The passphrase counts only from a program that has a controlling terminal, so that an agent cannot send it. A
    /// program of another user needs none. Else it is an error of kind `Denied`.
    ///
    /// `lifetime` is how long the approval can be used; left out, fifteen minutes.
    pub fn approve(
        &self,
        shown: &ApprovalDetails,
        passphrase: &str,
        lifetime: Option<Duration>,
    ) -> Result<ApprovalItem> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.ask(&ApprovalApprove {
            id: shown.approval.id.clone(),
            shown: shown.shown.clone(),
            passphrase: Some(passphrase.to_owned()),
            lifetime_ms: lifetime.map(millis),
        })
    }

    /// Refuses a command.
    pub fn deny(&self, id: &str) -> Result<ApprovalItem> {
        self.ask(&ApprovalDeny { id: id.to_owned() })
    }
}
