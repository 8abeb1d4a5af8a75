//! The journal: an append-only, hash-chained record of all that happened.

use crate::{ExecId, Principal, Time, VaultId};

/// One line of the journal. `hash` covers everything else, and the next entry's `prev` is it.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    pub seq: u64,
    pub time: Time,
    pub vault: Option<VaultId>,
    pub exec: Option<ExecId>,
    pub principal: Principal,
    pub operation: String,
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
    pub operation: String,
    pub details: serde_json::Value,
}

/// Which entries to read; the default is all, oldest first.
#[derive(Clone, Debug, Default)]
pub struct JournalFilter {
    pub vault: Option<VaultId>,
    pub exec: Option<ExecId>,
    pub operation: Option<String>,
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
    /// The entry does not match its own hash.
    Edited,
    /// The entry does not follow the one before it.
    OutOfOrder,
    /// The entry with this number is gone.
    Removed,
}
