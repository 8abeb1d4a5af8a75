//! Changes to the credentials of a home. The surface that checks credentials stores them; the journal records changes.

use avfs_vault::{JournalEvent, NewJournalEntry, PrincipalName};
use serde_json::Value;

use crate::Result;
use crate::session::Session;

/// A change to a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialChange {
    Create,
    Rotate,
    Revoke,
}

impl CredentialChange {
    fn event(self) -> JournalEvent {
        match self {
            CredentialChange::Create => JournalEvent::KeyCreate,
            CredentialChange::Rotate => JournalEvent::KeyRotate,
            CredentialChange::Revoke => JournalEvent::KeyRevoke,
        }
    }
}

impl Session {
    /// Refuses callers that may not use credentials.
    pub fn govern_credentials(&self) -> Result<()> {
        self.govern("credentials")
    }

    /// Journals a change to the credential of this name. `details` contain no secret.
    pub fn record_credential(
        &self,
        change: CredentialChange,
        name: &PrincipalName,
        mut details: Value,
    ) -> Result<()> {
        self.govern_credentials()?;
        details["key"] = name.as_str().into();
        self.inner.vaults.record(NewJournalEntry {
            vault: None,
            exec: None,
            principal: self.principal(),
            operation: change.event().into(),
            details,
        })?;
        Ok(())
    }
}
