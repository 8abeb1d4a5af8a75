//! Requests for approval, what tried commands did, and the approver's passphrase.

use rusqlite::Row;

use super::{Id, Rows, Stamp, Transaction, count, object, signed, stamp};
use crate::{ObjectId, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    pub id: Id,
    pub vault: Id,
    pub exec: Id,
    /// The root that it is for, and its version.
    pub root: ObjectId,
    pub version: u64,
    pub binding: [u8; 32],
    pub request: String,
    pub state: String,
    pub asked: Stamp,
    /// In seconds since 1970.
    pub expires: i64,
}

/// What a command did that was tried before it was approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeculationRow {
    pub root: ObjectId,
    pub outcome: String,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Wrong passphrases since the last right one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Attempts {
    pub count: i64,
    /// When the last of them was tried, in seconds since 1970.
    pub last: i64,
}

impl Rows<'_> {
    pub fn approval(&self, id: &Id) -> Result<Option<ApprovalRow>> {
        self.one("SELECT * FROM approval WHERE id = ?1", [id], approval_row)
    }

    /// Newest first; of one vault or of all.
    pub fn approvals(&self, vault: Option<&Id>) -> Result<Vec<ApprovalRow>> {
        let sql = "SELECT * FROM approval WHERE ?1 IS NULL OR vault = ?1 ORDER BY id DESC";
        self.all(sql, [vault], approval_row)
    }

    /// Those of a vault that are in this state and expire after `now`.
    pub fn approvals_in(&self, vault: &Id, state: &str, now: i64) -> Result<Vec<ApprovalRow>> {
        let sql = "SELECT * FROM approval WHERE vault = ?1 AND state = ?2 AND expires > ?3";
        self.all(sql, (vault, state, now), approval_row)
    }

    pub fn speculation(&self, approval: &Id) -> Result<Option<SpeculationRow>> {
        let sql = "SELECT * FROM speculation WHERE approval = ?1";
        self.one(sql, [approval], |row| {
            Ok(SpeculationRow {
                root: object(row, "root")?,
                outcome: row.get("outcome")?,
                stdout: row.get("stdout")?,
                stderr: row.get("stderr")?,
            })
        })
    }

    /// The hash of the approver's passphrase, if there is one.
    pub fn approver(&self) -> Result<Option<String>> {
        self.one("SELECT passphrase FROM approver", [], |row| row.get(0))
    }

    pub fn attempts(&self) -> Result<Attempts> {
        let sql = "SELECT count, last FROM approver_attempts";
        self.value(sql, [], |row| {
            Ok(Attempts {
                count: row.get(0)?,
                last: row.get(1)?,
            })
        })
    }
}

impl Transaction<'_> {
    pub fn add_approval(&self, approval: &ApprovalRow) -> Result<()> {
        let sql = "INSERT INTO approval
            (id, vault, exec, base, version, binding, request, state, secs, nanos, expires)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        let values = (
            approval.id,
            approval.vault,
            approval.exec,
            approval.root.as_bytes(),
            signed(approval.version),
            approval.binding,
            &approval.request,
            &approval.state,
            approval.asked.secs,
            approval.asked.nanos,
            approval.expires,
        );
        self.change(sql, values)?;
        Ok(())
    }

    pub fn add_speculation(&self, approval: &Id, vault: &Id, tried: &SpeculationRow) -> Result<()> {
        let sql = "INSERT INTO speculation (approval, vault, root, outcome, stdout, stderr)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = (
            approval,
            vault,
            tried.root.as_bytes(),
            &tried.outcome,
            &tried.stdout,
            &tried.stderr,
        );
        self.change(sql, values)?;
        Ok(())
    }

    /// Writes state, expiry, root and version anew.
    pub fn update_approval(&self, approval: &ApprovalRow) -> Result<()> {
        let sql = "UPDATE approval SET state = ?2, expires = ?3, base = ?4, version = ?5
            WHERE id = ?1";
        let values = (
            approval.id,
            &approval.state,
            approval.expires,
            approval.root.as_bytes(),
            signed(approval.version),
        );
        self.change(sql, values)?;
        Ok(())
    }

    /// Removes those that have expired before `time`.
    pub fn remove_approvals_before(&self, time: i64) -> Result<()> {
        self.change("DELETE FROM approval WHERE expires < ?1", [time])?;
        Ok(())
    }

    pub fn set_approver(&self, hash: &str) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO approver (one, passphrase) VALUES (1, ?1)";
        self.change(sql, [hash])?;
        Ok(())
    }

    pub fn set_attempts(&self, attempts: Attempts) -> Result<()> {
        let sql = "UPDATE approver_attempts SET count = ?1, last = ?2";
        self.change(sql, (attempts.count, attempts.last))?;
        Ok(())
    }
}

fn approval_row(row: &Row<'_>) -> rusqlite::Result<ApprovalRow> {
    Ok(ApprovalRow {
        id: row.get("id")?,
        vault: row.get("vault")?,
        exec: row.get("exec")?,
        root: object(row, "base")?,
        version: count(row, "version")?,
        binding: row.get("binding")?,
        request: row.get("request")?,
        state: row.get("state")?,
        asked: stamp(row)?,
        expires: row.get("expires")?,
    })
}
