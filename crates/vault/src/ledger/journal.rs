//! The journal: an append-only, hash-chained record of all that happened.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use avfs_store::ledger::{Beginning, JournalHead, JournalQuery, JournalRow, Rows, Transaction};
use avfs_store::{Durability, WayOut};

use super::rows::{parsed, values};
use crate::{
    Error, ExecId, Operation, Principal, RecordedOperation, Result, Time, VaultId, VaultPath,
    Vaults,
};

/// One line of the journal. `hash` covers everything else, and the next entry's `prev` is it.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    pub seq: u64,
    pub time: Time,
    pub vault: Option<VaultId>,
    pub exec: Option<ExecId>,
    pub principal: Principal,
    pub operation: RecordedOperation,
    pub details: serde_json::Value,
    pub prev: [u8; 32],
    pub hash: [u8; 32],
}

/// What happened, before it has a place in the chain.
#[derive(Clone, Debug)]
pub struct NewJournalEntry {
    pub vault: Option<VaultId>,
    pub exec: Option<ExecId>,
    pub principal: Principal,
    pub operation: Operation,
    pub details: serde_json::Value,
}

/// Which entries to read; the default is all, oldest first.
#[derive(Clone, Debug, Default)]
pub struct JournalFilter {
    pub vault: Option<VaultId>,
    pub exec: Option<ExecId>,
    /// This one; one without a name stands for all of its kind.
    pub principal: Option<Principal>,
    /// Only entries that tell of this decision, such as `deny`.
    pub decision: Option<String>,
    /// This one, or all of a kind: `vault` is `vault.create`, `vault.fork`…
    pub operation: Option<String>,
    /// Only entries that name this path, or one beneath it.
    pub path: Option<VaultPath>,
    /// Only entries from then on.
    pub since: Option<Time>,
    /// Only entries up to then.
    pub until: Option<Time>,
    /// Only entries with a larger `seq`.
    pub after: Option<u64>,
    /// At most this many.
    pub limit: Option<usize>,
    pub order: JournalOrder,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum JournalOrder {
    #[default]
    OldestFirst,
    NewestFirst,
}

/// Whether the chain holds from the first entry to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalCheck {
    Intact { entries: u64, head: [u8; 32] },
    Broken { seq: u64, problem: JournalProblem },
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum JournalProblem {
    /// The entry is not what was written.
    Edited,
    /// The entry does not follow the one before it.
    OutOfOrder,
    /// The entry with this number is gone.
    Removed,
}

impl Vaults {
    /// Journals something that moves no head: a refusal, a request.
    pub fn record(&self, event: NewJournalEntry) -> Result<JournalEntry> {
        self.freeing(WayOut::Small, Durability::Relaxed, |transaction| {
            append(transaction, event.clone())
        })
    }

    /// Who asked for an exec; none when nobody knows of it.
    pub fn asked_by(&self, exec: ExecId) -> Result<Option<Principal>> {
        self.store().read(|rows| asked_by(rows, exec))
    }

    pub fn journal(&self, filter: &JournalFilter) -> Result<Vec<JournalEntry>> {
        let query = filter.query();
        values(self.store().read(|rows| rows.journal(&query))?)
    }

    /// Finds an entry that was edited, removed or moved. It cannot find a journal that was
    /// rewritten as a whole by someone who knows the format: for that, keep the head elsewhere.
    pub fn verify_journal(&self) -> Result<JournalCheck> {
        // One snapshot, so that entries appended meanwhile are seen whole or not at all.
        self.store().read(|rows| rows.snapshot(check_chain))
    }
}

/// The last entry that was found to follow the one before it.
struct Chain {
    entries: u64,
    hash: [u8; 32],
}

fn check_chain(rows: &Rows<'_>) -> Result<JournalCheck> {
    let head = journal_head(rows)?;
    let mut chain = Chain {
        entries: 0,
        hash: [0; 32],
    };
    let broken = rows.each_journal_row(|entry| match chain.follow(entry) {
        Ok(()) => ControlFlow::Continue(()),
        Err(broken) => ControlFlow::Break(broken),
    })?;
    Ok(match broken {
        ControlFlow::Break(broken) => broken,
        ControlFlow::Continue(()) => chain.end(head),
    })
}

impl Chain {
    fn follow(&mut self, entry: Option<JournalRow>) -> Result<(), JournalCheck> {
        let next = self.entries + 1;
        let broken = |seq, problem| Err(JournalCheck::Broken { seq, problem });
        let Some(entry) = entry else {
            return broken(next, JournalProblem::Edited);
        };
        if entry.seq != next {
            return broken(next, JournalProblem::Removed);
        }
        if entry.prev != self.hash {
            return broken(entry.seq, JournalProblem::OutOfOrder);
        }
        if entry.hash != hash(&entry) {
            return broken(entry.seq, JournalProblem::Edited);
        }
        (self.entries, self.hash) = (entry.seq, entry.hash);
        Ok(())
    }

    /// What is to be said when there are no more entries.
    fn end(self, head: JournalHead) -> JournalCheck {
        let Chain { entries, hash } = self;
        let (seq, problem) = match entries.cmp(&head.seq) {
            Ordering::Less => (entries + 1, JournalProblem::Removed),
            Ordering::Greater => (entries, JournalProblem::OutOfOrder),
            Ordering::Equal if hash != head.hash => (entries, JournalProblem::Edited),
            Ordering::Equal => {
                return JournalCheck::Intact {
                    entries,
                    head: hash,
                };
            }
        };
        JournalCheck::Broken { seq, problem }
    }
}

impl JournalFilter {
    fn query(&self) -> JournalQuery {
        // An unnamed principal stands for all of its kind, the named ones, too.
        let principal = self.principal.map(|principal| Beginning {
            exact: principal.to_string(),
            prefix: principal.name().is_none().then(|| format!("{principal}:")),
        });
        let operation = self.operation.as_ref().map(|operation| Beginning {
            exact: operation.clone(),
            prefix: Some(format!("{operation}.")),
        });
        let path = self.path.as_ref().map(|path| Beginning {
            exact: path.to_string(),
            prefix: Some(match path.is_root() {
                true => "/".to_owned(),
                false => format!("{path}/"),
            }),
        });
        JournalQuery {
            vault: self.vault.map(|id| *id.as_bytes()),
            exec: self.exec.map(|id| *id.as_bytes()),
            principal,
            operation,
            decision: self.decision.clone(),
            path,
            since: self.since.map(Time::into),
            until: self.until.map(Time::into),
            after: self.after,
            limit: self.limit,
            newest_first: self.order == JournalOrder::NewestFirst,
        }
    }
}

/// Who asked for an exec: its first entry is the request.
pub fn asked_by(rows: &Rows<'_>, exec: ExecId) -> Result<Option<Principal>> {
    let principal = rows.exec_principal(exec.as_bytes())?;
    principal.as_deref().map(parsed).transpose()
}

/// Adds an entry inside the transaction that does what it tells of.
pub fn append(transaction: &Transaction<'_>, event: NewJournalEntry) -> Result<JournalEntry> {
    let head = journal_head(transaction)?;
    let mut entry = JournalRow {
        seq: head.seq + 1,
        time: Time::now().into(),
        vault: event.vault.map(|id| *id.as_bytes()),
        exec: event.exec.map(|id| *id.as_bytes()),
        principal: event.principal.to_string(),
        operation: event.operation.as_str().to_owned(),
        details: event.details.to_string(),
        prev: head.hash,
        hash: [0; 32],
    };
    entry.hash = hash(&entry);
    transaction.append_journal(&entry)?;
    entry.try_into()
}

fn journal_head(rows: &Rows<'_>) -> Result<JournalHead> {
    rows.journal_head()?.ok_or_else(|| Error::Corrupt {
        what: "the journal has no head".to_owned(),
    })
}

/// The hash of all else that is in an entry. It is part of the stored format.
fn hash(entry: &JournalRow) -> [u8; 32] {
    let fields = (
        entry.seq,
        (entry.time.secs, entry.time.nanos),
        entry.vault,
        entry.exec,
        &entry.principal,
        &entry.operation,
        &entry.details,
    );
    let bytes = postcard::to_extend(&fields, entry.prev.to_vec())
        .expect("these types serialise into memory without fail");
    *blake3::hash(&bytes).as_bytes()
}

impl TryFrom<JournalRow> for JournalEntry {
    type Error = Error;

    fn try_from(row: JournalRow) -> Result<JournalEntry> {
        let corrupt = |_| Error::Corrupt {
            what: format!("details of journal entry {}", row.seq),
        };
        Ok(JournalEntry {
            seq: row.seq,
            time: row.time.into(),
            vault: row.vault.map(VaultId::from_bytes),
            exec: row.exec.map(ExecId::from_bytes),
            principal: parsed(&row.principal)?,
            details: serde_json::from_str(&row.details).map_err(corrupt)?,
            operation: row.operation.into(),
            prev: row.prev,
            hash: row.hash,
        })
    }
}
