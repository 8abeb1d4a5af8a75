//! Who may approve: another user of the machine, or the owner with the passphrase.
//!
//! A guess is counted, on disk, before anybody looks whether it is right: neither many at a time nor another daemon gives
//! more of them.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use avfs_vault::{JournalEvent, NewJournalEntry, Principal, PrincipalName};
use serde_json::{Value, json};

use crate::runtime::Runtime;
use crate::session::Session;
use crate::{Error, Result};

const SHORTEST_PASSPHRASE: usize = 8;

/// What shows that somebody may approve.
#[derive(Debug, Clone)]
pub enum Proof {
    /// The kernel says that another user asks, whom the agent cannot be.
    OtherUser { uid: u32 },
    /// The owner's passphrase, typed at a terminal.
    Passphrase { text: String },
    /// A credential that was made for approving, by somebody who may approve.
    Key { name: PrincipalName },
    /// Nothing.
    None,
}

impl Runtime {
    /// Whether a passphrase was set up.
    pub fn approval_is_set_up(&self) -> Result<bool> {
        Ok(self.inner.vaults.approver()?.is_some())
    }
}

impl Session {
    /// Refuses callers that may not approve.
    pub fn check_approver(&self, proof: &Proof) -> Result<()> {
        self.govern("approving")?;
        self.prove(proof).map(drop)
    }

    /// Sets the passphrase; whoever changes one must know the old one, or be another user.
    pub fn approval_setup(&self, new: &str, proof: &Proof) -> Result<()> {
        self.govern("the passphrase")?;
        if new.chars().count() < SHORTEST_PASSPHRASE {
            return Err(Error::Invalid {
                what: "passphrase",
                reason: format!("it needs at least {SHORTEST_PASSPHRASE} characters"),
            });
        }
        let old = self.inner.vaults.approver()?;
        let proof = match old {
            Some(_) => self.prove(proof)?,
            None => json!({ "kind": "first" }),
        };
        let hash = Argon2::default().hash_password(new.as_bytes());
        let hash = hash.map_err(|error| Error::Invalid {
            what: "passphrase",
            reason: error.to_string(),
        })?;
        let vaults = &self.inner.vaults;
        let (hash, by) = (hash.to_string(), self.principal());
        Ok(vaults.set_approver(old.as_deref(), &hash, proof, &by)?)
    }
}

impl Runtime {
    /// What the journal says about a proof that holds.
    pub(crate) fn prove(&self, proof: &Proof) -> Result<Value> {
        let refused = |why, hint| Error::NotApprover { why, hint };
        let text = match proof {
            Proof::OtherUser { uid } => return Ok(json!({ "kind": "uid", "uid": uid })),
            Proof::Key { name } => return Ok(json!({ "kind": "key", "name": name.as_str() })),
            Proof::Passphrase { text } => Some(text),
            Proof::None => None,
        };
        let known = self.inner.vaults.approver()?.ok_or_else(|| {
            refused(
                "no approver is set up on this machine",
                "run `avfs approval setup` in a terminal of your own",
            )
        })?;
        let text = text.ok_or_else(|| {
            refused(
                "the passphrase is needed, typed at a terminal",
                "run `avfs approval approve ID` in a terminal of your own",
            )
        })?;
        let vaults = &self.inner.vaults;
        if !vaults.count_attempt()? {
            return Err(refused(
                "there were too many wrong passphrases",
                "wait a minute, and try again",
            ));
        }
        let known = PasswordHash::new(&known).map_err(|error| Error::Invalid {
            what: "stored passphrase",
            reason: error.to_string(),
        })?;
        match Argon2::default().verify_password(text.as_bytes(), &known) {
            Ok(()) => {
                vaults.forget_attempts()?;
                Ok(json!({ "kind": "passphrase" }))
            }
            Err(_) => {
                vaults.record(NewJournalEntry {
                    vault: None,
                    exec: None,
                    principal: Principal::SYSTEM,
                    operation: JournalEvent::ApprovalWrongPassphrase.into(),
                    details: json!({}),
                })?;
                Err(refused("the passphrase is wrong", "try again"))
            }
        }
    }
}
