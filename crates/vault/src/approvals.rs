//! Approvals: what somebody asked for, what was answered, and that each answer is used once.
//!
//! An approval belongs to one vault, one state of it and one request. Every step is one transaction with its journal
//! entry.

use avfs_store::Durability;
use avfs_store::rusqlite::{self, OptionalExtension, Row, Transaction};
use serde_json::{Value, json};

use crate::schema::{count, root, text, time};
use crate::vaults::{by_id, event};
use crate::{
    ApprovalId, ApprovalState, Error, ExecId, NewJournalEntry, Principal, Result, RootId, Time,
    VaultId, Vaults, journal,
};

pub const TABLES: &str = "
    CREATE TABLE approval (
        id BLOB PRIMARY KEY NOT NULL,
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        exec BLOB NOT NULL,
        base BLOB NOT NULL,
        version INTEGER NOT NULL,
        binding BLOB NOT NULL,
        request TEXT NOT NULL,
        state TEXT NOT NULL,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        expires INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX approval_vault ON approval (vault, state);
    CREATE TABLE speculation (
        approval BLOB PRIMARY KEY NOT NULL REFERENCES approval (id) ON DELETE CASCADE,
        vault BLOB NOT NULL,
        root BLOB NOT NULL,
        outcome TEXT NOT NULL,
        stdout BLOB NOT NULL,
        stderr BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE approver (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        passphrase TEXT NOT NULL
    );
";

/// Guesses at the passphrase since the last right one.
pub const ATTEMPTS_TABLE: &str = "
    CREATE TABLE approver_attempts (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        count INTEGER NOT NULL,
        last INTEGER NOT NULL
    );
    INSERT INTO approver_attempts (one, count, last) VALUES (1, 0, 0);
";

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

/// Why an approval cannot be used.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    Pending,
    Denied,
    Used,
    Expired,
    OtherVault,
    OtherRequest,
    VaultMoved,
    TriedOnOther,
}

impl Unfit {
    pub fn as_str(self) -> &'static str {
        match self {
            Unfit::Pending => "nobody has answered it yet",
            Unfit::Denied => "it was denied",
            Unfit::Used => "it was used already",
            Unfit::Expired => "it has expired",
            Unfit::OtherVault => "it is for another vault",
            Unfit::OtherRequest => {
                "it is for another command, directory, environment, network, limit or other option"
            }
            Unfit::VaultMoved => "the vault has changed since it was approved",
            Unfit::TriedOnOther => "the vault has changed since the command was tried",
        }
    }
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
            journal::append(transaction, told(&approval, new.by, "requested", details))?;
            Ok(approval)
        })
    }

    pub fn approval(&self, id: ApprovalId) -> Result<Approval> {
        self.store().read(|connection| find(connection, id))
    }

    /// Newest first; of one vault or of all.
    pub fn approvals(&self, vault: Option<VaultId>) -> Result<Vec<Approval>> {
        self.store().read(|connection| {
            let sql = "SELECT * FROM approval WHERE ?1 IS NULL OR vault = ?1 ORDER BY id DESC";
            let mut select = connection.prepare_cached(sql)?;
            let rows = select.query_map([vault.map(|id| *id.as_bytes())], approval_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn speculation(&self, id: ApprovalId) -> Result<Option<Speculation>> {
        self.store().read(|connection| speculation(connection, id))
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
            update(transaction, &approval)?;
            let details = json!({ "approval": id.to_string(), "proof": answer.proof,
                "expires": answer.expires, "request": approval.request["summary"],
                "root": approval.root.to_string(), "version": approval.version });
            let event = told(&approval, answer.by, approval.state.as_str(), details);
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
            update(transaction, &approval)?;
            let details = json!({ "approval": id.to_string() });
            let event = NewJournalEntry {
                exec: Some(using.exec),
                ..told(&approval, using.by, "used", details)
            };
            journal::append(transaction, event)?;
            Ok(approval)
        })
    }

    /// The hash of the approver's passphrase, if one was set up.
    pub fn approver(&self) -> Result<Option<String>> {
        self.store().read(approver)
    }

    /// Counts a guess at the passphrase, before anybody looks whether it is right. False if there were too many: then
    /// it must not be looked at.
    pub fn count_attempt(&self) -> Result<bool> {
        self.store().write(Durability::Full, |transaction| {
            let sql = "SELECT count, last FROM approver_attempts";
            let (count, last): (i64, i64) =
                transaction.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let now = Time::now().secs;
            let paused = count >= MOST_ATTEMPTS;
            // A clock that was set back makes the pause begin anew, and not last for ever.
            let (count, last, allowed) = match paused {
                true if last > now => (count, now, false),
                true if now - last < PAUSE => (count, last, false),
                true => (1, now, true),
                false => (count + 1, now, true),
            };
            let put = "UPDATE approver_attempts SET count = ?1, last = ?2";
            transaction.execute(put, (count, last))?;
            Ok(allowed)
        })
    }

    /// The passphrase was right: guesses count from nothing again.
    pub fn forget_attempts(&self) -> Result<()> {
        self.store().write(Durability::Full, |transaction| {
            transaction.execute("UPDATE approver_attempts SET count = 0", [])?;
            Ok(())
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
            if approver(transaction)?.as_deref() != old {
                return Err(Error::ApproverChanged);
            }
            let put = "INSERT OR REPLACE INTO approver (one, passphrase) VALUES (1, ?1)";
            transaction.execute(put, [hash])?;
            let event = NewJournalEntry {
                vault: None,
                exec: None,
                principal: *by,
                operation: "approval.setup".into(),
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

fn told(approval: &Approval, by: Principal, what: &str, details: Value) -> NewJournalEntry {
    NewJournalEntry {
        exec: Some(approval.exec),
        ..event(approval.vault, by, &format!("approval.{what}"), details)
    }
}

fn approver(connection: &rusqlite::Connection) -> Result<Option<String>> {
    let sql = "SELECT passphrase FROM approver";
    Ok(connection.query_row(sql, [], |row| row.get(0)).optional()?)
}

fn speculation(connection: &rusqlite::Connection, id: ApprovalId) -> Result<Option<Speculation>> {
    let sql = "SELECT * FROM speculation WHERE approval = ?1";
    let mut select = connection.prepare_cached(sql)?;
    let found = select.query_row([id.as_bytes()], |row| {
        let outcome: String = row.get("outcome")?;
        Ok(Speculation {
            root: root(row, "root")?,
            outcome: serde_json::from_str(&outcome).unwrap_or_default(),
            stdout: row.get("stdout")?,
            stderr: row.get("stderr")?,
        })
    });
    Ok(found.optional()?)
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
    let sql = "INSERT INTO approval
        (id, vault, exec, base, version, binding, request, state, secs, nanos, expires)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    transaction.prepare_cached(sql)?.execute((
        approval.id.as_bytes(),
        approval.vault.as_bytes(),
        approval.exec.as_bytes(),
        approval.root.object().as_bytes(),
        approval.version as i64,
        approval.binding,
        approval.request.to_string(),
        approval.state.as_str(),
        approval.asked.secs,
        approval.asked.nanos,
        approval.expires,
    ))?;
    if let Some(speculation) = &new.speculation {
        let sql = "INSERT INTO speculation (approval, vault, root, outcome, stdout, stderr)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        transaction.execute(
            sql,
            (
                approval.id.as_bytes(),
                approval.vault.as_bytes(),
                speculation.root.object().as_bytes(),
                speculation.outcome.to_string(),
                &speculation.stdout,
                &speculation.stderr,
            ),
        )?;
    }
    Ok(approval)
}

fn update(transaction: &Transaction<'_>, approval: &Approval) -> Result<()> {
    let sql = "UPDATE approval SET state = ?2, expires = ?3, base = ?4, version = ?5 WHERE id = ?1";
    let base = approval.root.object();
    let values = (
        approval.id.as_bytes(),
        approval.state.as_str(),
        approval.expires,
        base.as_bytes(),
        approval.version as i64,
    );
    transaction.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn forget(transaction: &Transaction<'_>) -> Result<()> {
    let sql = "DELETE FROM approval WHERE expires < ?1";
    transaction.execute(sql, [Time::now().secs - FORGET_AFTER])?;
    Ok(())
}

fn waiting(transaction: &Transaction<'_>, vault: VaultId) -> Result<Vec<Approval>> {
    let sql = "SELECT * FROM approval WHERE vault = ?1 AND state = 'pending' AND expires > ?2";
    let mut select = transaction.prepare_cached(sql)?;
    let rows = select.query_map((vault.as_bytes(), Time::now().secs), approval_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn find(connection: &rusqlite::Connection, id: ApprovalId) -> Result<Approval> {
    let sql = "SELECT * FROM approval WHERE id = ?1";
    let mut select = connection.prepare_cached(sql)?;
    let found = select.query_row([id.as_bytes()], approval_row).optional()?;
    found.ok_or(Error::ApprovalNotFound { id })
}

fn approval_row(row: &Row<'_>) -> rusqlite::Result<Approval> {
    let request: String = row.get("request")?;
    Ok(Approval {
        id: ApprovalId::from_bytes(row.get("id")?),
        vault: VaultId::from_bytes(row.get("vault")?),
        exec: ExecId::from_bytes(row.get("exec")?),
        root: root(row, "base")?,
        version: count(row, "version")?,
        binding: row.get("binding")?,
        request: serde_json::from_str(&request).unwrap_or_default(),
        state: text(row, "state")?,
        asked: time(row)?,
        expires: row.get("expires")?,
    })
}
