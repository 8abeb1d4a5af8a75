//! The journal: an append-only, hash-chained record of all that happened.

use avfs_store::rusqlite::types::Value;
use avfs_store::rusqlite::{
    self, Connection, OptionalExtension, Row, Transaction, params_from_iter,
};
use avfs_store::{Durability, WayOut};

use crate::schema::{count, text, time};
use crate::{Error, ExecId, Principal, Result, Time, VaultId, VaultPath, Vaults};

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
        self.store().read(|connection| asked_by(connection, exec))
    }

    pub fn journal(&self, filter: &JournalFilter) -> Result<Vec<JournalEntry>> {
        let (mut sql, mut values) = conditions(filter);
        sql.push_str(match filter.order {
            JournalOrder::OldestFirst => " ORDER BY seq",
            JournalOrder::NewestFirst => " ORDER BY seq DESC",
        });
        if let Some(limit) = filter.limit {
            values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
            sql.push_str(&format!(" LIMIT ?{}", values.len()));
        }
        let rows = self.store().read(|connection| {
            let mut select = connection.prepare_cached(&sql)?;
            let rows = select.query_map(params_from_iter(values), stored_entry)?;
            Ok::<_, Error>(rows.collect::<rusqlite::Result<Vec<_>>>()?)
        })?;
        rows.into_iter().map(StoredEntry::open).collect()
    }

    /// Finds an entry that was edited, removed or moved. It cannot find a journal that was
    /// rewritten as a whole by someone who knows the format: for that, keep the head elsewhere.
    pub fn verify_journal(&self) -> Result<JournalCheck> {
        self.store().read(|connection| {
            // One snapshot, so that entries appended meanwhile are seen whole or not at all.
            let snapshot = connection.unchecked_transaction()?;
            let head: (i64, [u8; 32]) =
                snapshot.query_row("SELECT seq, hash FROM journal_head", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            let mut select = snapshot.prepare_cached("SELECT * FROM journal ORDER BY seq")?;
            let mut rows = select.query([])?;
            let (mut entries, mut prev) = (0, [0; 32]);
            while let Some(row) = rows.next()? {
                let broken = |seq, problem| Ok(JournalCheck::Broken { seq, problem });
                let Ok(entry) = stored_entry(row) else {
                    return broken(entries + 1, JournalProblem::Edited);
                };
                if entry.seq != entries + 1 {
                    return broken(entries + 1, JournalProblem::Removed);
                }
                if entry.prev != prev {
                    return broken(entry.seq, JournalProblem::OutOfOrder);
                }
                if entry.hash != entry.compute_hash() {
                    return broken(entry.seq, JournalProblem::Edited);
                }
                (entries, prev) = (entry.seq, entry.hash);
            }
            let problem = match entries.cmp(&(head.0 as u64)) {
                std::cmp::Ordering::Less => Some((entries + 1, JournalProblem::Removed)),
                std::cmp::Ordering::Greater => Some((entries, JournalProblem::OutOfOrder)),
                std::cmp::Ordering::Equal if prev != head.1 => {
                    Some((entries, JournalProblem::Edited))
                }
                std::cmp::Ordering::Equal => None,
            };
            Ok(match problem {
                Some((seq, problem)) => JournalCheck::Broken { seq, problem },
                None => JournalCheck::Intact {
                    entries,
                    head: prev,
                },
            })
        })
    }
}

/// The part of a query that comes before the order, and its values.
fn conditions(filter: &JournalFilter) -> (String, Vec<Value>) {
    let mut sql = "SELECT * FROM journal WHERE true".to_owned();
    let mut values: Vec<Value> = Vec::new();
    // In a condition, `?` stands for the value, `?+` for a second one.
    let mut restrict = |condition: &str, given: Vec<Value>| {
        let first = values.len() + 1;
        values.extend(given);
        let condition = condition.replace("?+", &format!("?{}", first + 1));
        let condition = condition.replace("? ", &format!("?{first} "));
        sql.push_str(&format!(" AND ({condition})"));
    };
    if let Some(id) = filter.vault {
        restrict("vault = ? ", vec![Value::Blob(id.as_bytes().to_vec())]);
    }
    if let Some(id) = filter.exec {
        restrict("exec = ? ", vec![Value::Blob(id.as_bytes().to_vec())]);
    }
    if let Some(principal) = filter.principal {
        let exact = principal.to_string();
        match principal.name() {
            Some(_) => restrict("principal = ? ", vec![Value::Text(exact)]),
            None => {
                let named = format!("{exact}:");
                let condition = "principal = ? OR substr(principal, 1, length(?+)) = ?+";
                restrict(condition, vec![Value::Text(exact), Value::Text(named)]);
            }
        }
    }
    if let Some(decision) = &filter.decision {
        let condition = "json_valid(details) AND json_extract(details, '$.decision') = ? ";
        restrict(condition, vec![Value::Text(decision.clone())]);
    }
    if let Some(operation) = &filter.operation {
        let kind = format!("{operation}.");
        let condition = "operation = ? OR substr(operation, 1, length(?+)) = ?+";
        let given = vec![Value::Text(operation.clone()), Value::Text(kind)];
        restrict(condition, given);
    }
    if let Some(path) = &filter.path {
        let beneath = match path.is_root() {
            true => "/".to_owned(),
            false => format!("{path}/"),
        };
        let condition = "json_valid(details) AND EXISTS (
            SELECT 1 FROM json_each(json_array(json_extract(details, '$.path')))
                WHERE value = ? OR substr(value, 1, length(?+)) = ?+
            UNION ALL SELECT 1 FROM json_each(details, '$.paths')
                WHERE value = ? OR substr(value, 1, length(?+)) = ?+)";
        restrict(
            condition,
            vec![Value::Text(path.to_string()), Value::Text(beneath)],
        );
    }
    let moment = |time: Time| vec![time.secs.into(), i64::from(time.nanos).into()];
    if let Some(since) = filter.since {
        restrict("(secs, nanos) >= (? , ?+)", moment(since));
    }
    if let Some(until) = filter.until {
        restrict("(secs, nanos) <= (? , ?+)", moment(until));
    }
    if let Some(seq) = filter.after {
        restrict("seq > ? ", vec![Value::Integer(seq as i64)]);
    }
    (sql, values)
}

/// Who asked for an exec: its first entry is the request.
pub fn asked_by(connection: &Connection, exec: ExecId) -> Result<Option<Principal>> {
    let sql = "SELECT principal FROM journal WHERE exec = ?1 ORDER BY seq LIMIT 1";
    let mut select = connection.prepare_cached(sql)?;
    let found = select.query_row([exec.as_bytes()], |row| text(row, "principal"));
    Ok(found.optional()?)
}

/// Adds an entry inside the transaction that does what it tells of.
pub fn append(transaction: &Transaction<'_>, event: NewJournalEntry) -> Result<JournalEntry> {
    let head = "SELECT seq, hash FROM journal_head";
    let (seq, prev): (i64, [u8; 32]) = transaction
        .prepare_cached(head)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or_else(|| Error::Corrupt {
            what: "the journal has no head".to_owned(),
        })?;
    let mut entry = StoredEntry {
        seq: seq as u64 + 1,
        time: Time::now(),
        vault: event.vault.map(|id| *id.as_bytes()),
        exec: event.exec.map(|id| *id.as_bytes()),
        principal: event.principal,
        operation: event.operation,
        details: event.details.to_string(),
        prev,
        hash: [0; 32],
    };
    entry.hash = entry.compute_hash();
    let insert = "INSERT INTO journal
        (seq, secs, nanos, vault, exec, principal, operation, details, prev, hash)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    transaction.prepare_cached(insert)?.execute((
        entry.seq as i64,
        entry.time.secs,
        entry.time.nanos,
        entry.vault,
        entry.exec,
        entry.principal.to_string(),
        &entry.operation,
        &entry.details,
        entry.prev,
        entry.hash,
    ))?;
    let advance = "UPDATE journal_head SET seq = ?1, hash = ?2";
    transaction
        .prepare_cached(advance)?
        .execute((entry.seq as i64, entry.hash))?;
    entry.open()
}

/// An entry with its details as the text that is hashed.
struct StoredEntry {
    seq: u64,
    time: Time,
    vault: Option<[u8; 16]>,
    exec: Option<[u8; 16]>,
    principal: Principal,
    operation: String,
    details: String,
    prev: [u8; 32],
    hash: [u8; 32],
}

impl StoredEntry {
    fn compute_hash(&self) -> [u8; 32] {
        let fields = (
            self.seq,
            (self.time.secs, self.time.nanos),
            self.vault,
            self.exec,
            self.principal.to_string(),
            &self.operation,
            &self.details,
        );
        let bytes = postcard::to_extend(&fields, self.prev.to_vec())
            .expect("these types serialise into memory without fail");
        *blake3::hash(&bytes).as_bytes()
    }

    fn open(self) -> Result<JournalEntry> {
        let corrupt = |_| Error::Corrupt {
            what: format!("details of journal entry {}", self.seq),
        };
        Ok(JournalEntry {
            seq: self.seq,
            time: self.time,
            vault: self.vault.map(VaultId::from_bytes),
            exec: self.exec.map(ExecId::from_bytes),
            principal: self.principal,
            details: serde_json::from_str(&self.details).map_err(corrupt)?,
            operation: self.operation,
            prev: self.prev,
            hash: self.hash,
        })
    }
}

fn stored_entry(row: &Row<'_>) -> rusqlite::Result<StoredEntry> {
    Ok(StoredEntry {
        seq: count(row, "seq")?,
        time: time(row)?,
        vault: row.get("vault")?,
        exec: row.get("exec")?,
        principal: text(row, "principal")?,
        operation: row.get("operation")?,
        details: row.get("details")?,
        prev: row.get("prev")?,
        hash: row.get("hash")?,
    })
}
