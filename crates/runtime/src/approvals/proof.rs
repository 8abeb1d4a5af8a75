//! Who may approve: another user of the machine, or the owner with the passphrase.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use serde_json::{Value, json};

use crate::runtime::{Runtime, lock};
use crate::session::Session;
use crate::{Error, Result};

/// Wrong passphrases before there is a pause, and how long it is.
const MOST_WRONG: u32 = 5;
const PAUSE: Duration = Duration::from_secs(60);
const SHORTEST_PASSPHRASE: usize = 8;

/// What shows that somebody may approve.
#[derive(Debug, Clone)]
pub enum Proof {
    /// The kernel says that another user asks, whom the agent cannot be.
    OtherUser { uid: u32 },
    /// The owner's passphrase, typed at a terminal.
    Passphrase { text: String },
    /// Nothing.
    None,
}

/// Wrong passphrases of late.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<(u32, Option<Instant>)>);

impl Attempts {
    fn check(&self) -> Result<()> {
        let mut wrong = lock(&self.0);
        match *wrong {
            (MOST_WRONG.., Some(last)) if last.elapsed() < PAUSE => Err(Error::NotApprover {
                why: "there were too many wrong passphrases",
                hint: "wait a minute, and try again",
            }),
            (MOST_WRONG.., _) => {
                *wrong = (0, None);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn wrong(&self) {
        let mut wrong = lock(&self.0);
        *wrong = (wrong.0 + 1, Some(Instant::now()));
    }

    fn right(&self) {
        *lock(&self.0) = (0, None);
    }
}

impl Runtime {
    /// Whether a passphrase was set up.
    pub fn approval_is_set_up(&self) -> Result<bool> {
        Ok(self.inner.vaults.approver()?.is_some())
    }
}

impl Session {
    /// Sets the passphrase; whoever changes one must know the old one, or be another user.
    pub fn approval_setup(&self, new: &str, proof: &Proof) -> Result<()> {
        self.govern("the passphrase")?;
        if new.chars().count() < SHORTEST_PASSPHRASE {
            return Err(Error::Invalid {
                what: "passphrase",
                reason: format!("it needs at least {SHORTEST_PASSPHRASE} characters"),
            });
        }
        let proof = match self.inner.vaults.approver()? {
            Some(_) => self.prove(proof)?,
            None => json!({ "kind": "first" }),
        };
        let hash = Argon2::default().hash_password(new.as_bytes());
        let hash = hash.map_err(|error| Error::Invalid {
            what: "passphrase",
            reason: error.to_string(),
        })?;
        Ok(self
            .inner
            .vaults
            .set_approver(&hash.to_string(), proof, &self.principal())?)
    }
}

impl Runtime {
    /// What the journal says about a proof that holds.
    pub(crate) fn prove(&self, proof: &Proof) -> Result<Value> {
        let refused = |why, hint| Error::NotApprover { why, hint };
        let text = match proof {
            Proof::OtherUser { uid } => return Ok(json!({ "kind": "uid", "uid": uid })),
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
        self.inner.attempts.check()?;
        let known = PasswordHash::new(&known).map_err(|error| Error::Invalid {
            what: "stored passphrase",
            reason: error.to_string(),
        })?;
        match Argon2::default().verify_password(text.as_bytes(), &known) {
            Ok(()) => {
                self.inner.attempts.right();
                Ok(json!({ "kind": "passphrase" }))
            }
            Err(_) => {
                self.inner.attempts.wrong();
                Err(refused("the passphrase is wrong", "try again"))
            }
        }
    }
}
