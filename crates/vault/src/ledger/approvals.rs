//! Approvals: what somebody asked for, what was answered, and that each answer is used once.
//!
//! An approval belongs to one vault, one state of it and one request. Every step is one transaction with its journal
//! entry.

use avfs_store::Durability;
use avfs_store::ledger::{ApprovalRow, Attempts, Rows, SpeculationRow, Transaction};
use serde_json::{Value, json};

use super::journal;
use super::rows::{parsed, values};
use super::vaults::{by_id, event};
use crate::{
    ApprovalId, ApprovalState, Error, ExecId, JournalEvent, NewJournalEntry, Principal, Result,
    RootId, Time, Unfit, VaultId, Vaults,
};

/// Guesses at the passphrase before there is a pause, and how many seconds it lasts.
pub const MOST_ATTEMPTS: i64 = 5;
const PAUSE: i64 = 60;

/// Requests of one vault that may wait at the same time.
pub const MOST_PENDING: usize = 16;
/// What is over is forgotten after this long; the journal keeps it.
const FORGET_AFTER: i64 = 24 * 3600;

/// A request that somebody must answer, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    pub id: ApprovalId,
    pub vault: VaultId,
    /// The exec that asked.
    pub exec: ExecId,
    /// The state of the vault that it is for: until it is approved, the one that it was asked for in.
    pub root: RootId,
    pub version: u64,
    /// The hash of all that must be the same when it is used, besides that state.
    pub binding: [u8; 32],
    /// What the approver is shown.
    pub request: Value,
    pub state: ApprovalState,
    pub asked: Time,
    /// In seconds since 1970.
    pub expires: i64,
}

/// A request, before it has an id.
#[derive(Clone, Debug)]
pub struct NewApproval {
    pub vault: VaultId,
    pub exec: ExecId,
    pub root: RootId,
    pub version: u64,
    pub binding: [u8; 32],
    pub request: Value,
    pub expires: i64,
    pub speculation: Option<Speculation>,
    pub by: Principal,
}

/// What a command did when it was tried before anybody approved it.
#[derive(Clone, Debug, PartialEq)]
pub struct Speculation {
    pub root: RootId,
    pub outcome: Value,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct ApprovalAnswer {
    pub verdict: ApprovalVerdict,
    /// Until when it can be used.
    pub expires: i64,
    /// How whoever answered has proven to be allowed to.
    pub proof: Value,
    pub by: Principal,
}

/// What whoever was asked has decided.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ApprovalVerdict {
    /// It may run, on this state of the vault, which was shown.
    Approve {
        root: RootId,
        version: u64,
    },
    Deny,
}

/// The use that somebody wants to make of an approval.
#[derive(Clone, Debug)]
pub struct ApprovalUse {
    pub vault: VaultId,
    pub binding: [u8; 32],
    pub exec: ExecId,
    pub by: Principal,
}

impl Approval {
    pub fn is_expired(&self) -> bool {
        Time::now().secs >= self.expires
    }
}

impl Vaults {
    /// Records a request. The same one of the same principal that still waits is not recorded twice.
    pub fn request_approval(&self, new: NewApproval) -> Result<Approval> {
        self.store().write(Durability::Full, |transaction| {
            forget(transaction)?;
            let waiting = waiting(transaction, new.vault)?;
            for same in waiting.iter().filter(|w| w.binding == new.binding) {
                if same.version == new.version
                    && new.speculation.is_none()
                    && journal::asked_by(transaction, same.exec)? == Some(new.by)
                {
                    return Ok(same.clone());
                }
            }
            if waiting.len() >= MOST_PENDING {
                let vault = by_id(transaction, new.vault)?.name;
                let pending = waiting.len();
                return Err(Error::TooManyApprovals { vault, pending });
            }
            let approval = insert(transaction, &new)?;
            let details = json!({ "approval": approval.id.to_string(), "request": new.request["summary"],
                "speculated": new.speculation.is_some() });
            journal::append(transaction, told(&approval, new.by, details))?;
            Ok(approval)
        })
    }

    pub fn approval(&self, id: ApprovalId) -> Result<Approval> {
        self.store().read(|rows| find(rows, id))
    }

    /// Newest first; of one vault or of all.
    pub fn approvals(&self, vault: Option<VaultId>) -> Result<Vec<Approval>> {
        let vault = vault.as_ref().map(VaultId::as_bytes);
        values(self.store().read(|rows| rows.approvals(vault))?)
    }

    pub fn speculation(&self, id: ApprovalId) -> Result<Option<Speculation>> {
        self.store().read(|rows| speculation(rows, id))
    }

    /// Answers a request that waits. It is approved only for the state that the vault is in at this moment.
    pub fn answer_approval(&self, id: ApprovalId, answer: ApprovalAnswer) -> Result<Approval> {
        self.store().write(Durability::Full, |transaction| {
            let mut approval = find(transaction, id)?;
            match approval.state {
                ApprovalState::Pending if approval.is_expired() => {
                    return Err(unfit(id, Unfit::Expired));
                }
                ApprovalState::Pending => {}
                ApprovalState::Denied => return Err(unfit(id, Unfit::Denied)),
                ApprovalState::Approved | ApprovalState::Used => {
                    return Err(Error::ApprovalAnswered { id });
                }
            }
            approval.state = match answer.verdict {
                ApprovalVerdict::Deny => ApprovalState::Denied,
                ApprovalVerdict::Approve { root, version } => {
                    let vault = by_id(transaction, approval.vault)?;
                    if (root, version) != (vault.head, vault.version) {
                        return Err(Error::ApprovalShownOtherwise { id });
                    }
                    if root != approval.root && speculation(transaction, id)?.is_some() {
                        return Err(unfit(id, Unfit::TriedOnOther));
                    }
                    (approval.root, approval.version) = (root, version);
                    ApprovalState::Approved
                }
            };
            approval.expires = answer.expires;
            transaction.update_approval(&(&approval).into())?;
            let details = json!({ "approval": id.to_string(), "proof": answer.proof,
                "expires": answer.expires, "request": approval.request["summary"],
                "root": approval.root.to_string(), "version": approval.version });
            let event = told(&approval, answer.by, details);
            journal::append(transaction, event)?;
            Ok(approval)
        })
    }

    /// Uses an approval up, if it is for just this.
    pub fn use_approval(&self, id: ApprovalId, using: &ApprovalUse) -> Result<Approval> {
        self.store().write(Durability::Full, |transaction| {
            let mut approval = find(transaction, id)?;
            let vault = by_id(transaction, using.vault)?;
            let reason = match approval.state {
                _ if approval.vault != using.vault => Some(Unfit::OtherVault),
                ApprovalState::Denied => Some(Unfit::Denied),
                ApprovalState::Used => Some(Unfit::Used),
                _ if approval.is_expired() => Some(Unfit::Expired),
                _ if approval.binding != using.binding => Some(Unfit::OtherRequest),
                ApprovalState::Pending => Some(Unfit::Pending),
                _ if (approval.root, approval.version) != (vault.head, vault.version) => {
                    Some(Unfit::VaultMoved)
                }
                ApprovalState::Approved => None,
            };
            if let Some(reason) = reason {
                return Err(unfit(id, reason));
            }
            approval.state = ApprovalState::Used;
            transaction.update_approval(&(&approval).into())?;
            let details = json!({ "approval": id.to_string() });
            let event = NewJournalEntry {
                exec: Some(using.exec),
                ..told(&approval, using.by, details)
            };
            journal::append(transaction, event)?;
            Ok(approval)
        })
    }

    /// The hash of the approver's passphrase, if one was set up.
    pub fn approver(&self) -> Result<Option<String>> {
        Ok(self.store().read(|rows| rows.approver())?)
    }

    /// Counts a guess at the passphrase, before anybody looks whether it is right. False if there were too many: then
    /// it must not be looked at.
    pub fn count_attempt(&self) -> Result<bool> {
        self.store().write(Durability::Full, |transaction| {
            let Attempts { count, last } = transaction.attempts()?;
            let now = Time::now().secs;
            let paused = count >= MOST_ATTEMPTS;
            // A clock that was set back makes the pause begin anew, and not last for ever.
            let (count, last, allowed) = match paused {
                true if last > now => (count, now, false),
                true if now - last < PAUSE => (count, last, false),
                true => (1, now, true),
                false => (count + 1, now, true),
            };
            transaction.set_attempts(Attempts { count, last })?;
            Ok(allowed)
        })
    }

    /// The passphrase was right: guesses count from nothing again.
    pub fn forget_attempts(&self) -> Result<()> {
        self.store().write(Durability::Full, |transaction| {
            let last = transaction.attempts()?.last;
            Ok(transaction.set_attempts(Attempts { count: 0, last })?)
        })
    }

    /// Sets the hash of the passphrase, if the one before is still `old`.
    pub fn set_approver(
        &self,
        old: Option<&str>,
        hash: &str,
        proof: Value,
        by: &Principal,
    ) -> Result<()> {
        self.store().write(Durability::Full, |transaction| {
            if transaction.approver()?.as_deref() != old {
                return Err(Error::ApproverChanged);
            }
            transaction.set_approver(hash)?;
            let event = NewJournalEntry {
                vault: None,
                exec: None,
                principal: *by,
                operation: JournalEvent::ApprovalSetup.into(),
                details: json!({ "proof": proof }),
            };
            journal::append(transaction, event)?;
            Ok(())
        })
    }
}

fn unfit(id: ApprovalId, reason: Unfit) -> Error {
    Error::ApprovalUnfit { id, reason }
}

/// That an approval has come into the state that it is in.
fn told(approval: &Approval, by: Principal, details: Value) -> NewJournalEntry {
    let what = match approval.state {
        ApprovalState::Pending => JournalEvent::ApprovalRequested,
        ApprovalState::Approved => JournalEvent::ApprovalApproved,
        ApprovalState::Denied => JournalEvent::ApprovalDenied,
        ApprovalState::Used => JournalEvent::ApprovalUsed,
    };
    NewJournalEntry {
        exec: Some(approval.exec),
        ..event(approval.vault, by, what, details)
    }
}

fn speculation(rows: &Rows<'_>, id: ApprovalId) -> Result<Option<Speculation>> {
    let found = rows.speculation(id.as_bytes())?;
    Ok(found.map(|row| Speculation {
        root: RootId::new(row.root),
        outcome: serde_json::from_str(&row.outcome).unwrap_or_default(),
        stdout: row.stdout,
        stderr: row.stderr,
    }))
}

fn insert(transaction: &Transaction<'_>, new: &NewApproval) -> Result<Approval> {
    let approval = Approval {
        id: ApprovalId::new(),
        vault: new.vault,
        exec: new.exec,
        root: new.root,
        version: new.version,
        binding: new.binding,
        request: new.request.clone(),
        state: ApprovalState::Pending,
        asked: Time::now(),
        expires: new.expires,
    };
    transaction.add_approval(&(&approval).into())?;
    if let Some(speculation) = &new.speculation {
        let row = SpeculationRow {
            root: speculation.root.object(),
            outcome: speculation.outcome.to_string(),
            stdout: speculation.stdout.clone(),
            stderr: speculation.stderr.clone(),
        };
        let (id, vault) = (approval.id.as_bytes(), approval.vault.as_bytes());
        transaction.add_speculation(id, vault, &row)?;
    }
    Ok(approval)
}

fn forget(transaction: &Transaction<'_>) -> Result<()> {
    let before = Time::now().secs - FORGET_AFTER;
    Ok(transaction.remove_approvals_before(before)?)
}

fn waiting(rows: &Rows<'_>, vault: VaultId) -> Result<Vec<Approval>> {
    let (pending, now) = (ApprovalState::Pending.as_str(), Time::now().secs);
    values(rows.approvals_in(vault.as_bytes(), pending, now)?)
}

fn find(rows: &Rows<'_>, id: ApprovalId) -> Result<Approval> {
    match rows.approval(id.as_bytes())? {
        Some(found) => found.try_into(),
        None => Err(Error::ApprovalNotFound { id }),
    }
}

impl TryFrom<ApprovalRow> for Approval {
    type Error = Error;

    fn try_from(row: ApprovalRow) -> Result<Approval> {
        Ok(Approval {
            id: ApprovalId::from_bytes(row.id),
            vault: VaultId::from_bytes(row.vault),
            exec: ExecId::from_bytes(row.exec),
            root: RootId::new(row.root),
            version: row.version,
            binding: row.binding,
            request: serde_json::from_str(&row.request).unwrap_or_default(),
            state: parsed(&row.state)?,
            asked: row.asked.into(),
            expires: row.expires,
        })
    }
}

impl From<&Approval> for ApprovalRow {
    fn from(approval: &Approval) -> ApprovalRow {
        ApprovalRow {
            id: *approval.id.as_bytes(),
            vault: *approval.vault.as_bytes(),
            exec: *approval.exec.as_bytes(),
            root: approval.root.object(),
            version: approval.version,
            binding: approval.binding,
            request: approval.request.to_string(),
            state: approval.state.to_string(),
            asked: approval.asked.into(),
            expires: approval.expires,
        }
    }
}
