//! The journal's rows, and the question which of them.

use std::ops::ControlFlow;

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::{Id, Rows, Stamp, Transaction, count, signed, stamp};
use crate::Result;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRow {
    pub seq: u64,
    pub time: Stamp,
    pub vault: Option<Id>,
    pub exec: Option<Id>,
    pub principal: String,
    pub operation: String,
    /// JSON.
    pub details: String,
    pub prev: [u8; 32],
    pub hash: [u8; 32],
}

/// The last entry.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct JournalHead {
    pub seq: u64,
    pub hash: [u8; 32],
}

/// Text that is `exact`, or begins with `prefix` if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    pub exact: String,
    pub prefix: Option<String>,
}

/// Which entries to read. What is not set excludes none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalQuery {
    pub vault: Option<Id>,
    pub exec: Option<Id>,
    pub principal: Option<Beginning>,
    pub operation: Option<Beginning>,
    /// The member `decision` of the details.
    pub decision: Option<String>,
    /// The member `path` of the details, or one of `paths`.
    pub path: Option<Beginning>,
    pub since: Option<Stamp>,
    pub until: Option<Stamp>,
    /// Only entries with a larger `seq`.
    pub after: Option<u64>,
    pub limit: Option<usize>,
    pub newest_first: bool,
}

impl Rows<'_> {
    pub fn journal(&self, query: &JournalQuery) -> Result<Vec<JournalRow>> {
        let (sql, values) = select(query);
        self.all(&sql, params_from_iter(values), journal_row)
    }

    pub fn journal_head(&self) -> Result<Option<JournalHead>> {
        self.one("SELECT seq, hash FROM journal_head", [], |row| {
            Ok(JournalHead {
                seq: count(row, "seq")?,
                hash: row.get("hash")?,
            })
        })
    }

    /// Hands every entry to `f`, in the order of `seq`, until it breaks. One whose columns make no sense is `None`.
    pub fn each_journal_row<B>(
        &self,
        mut f: impl FnMut(Option<JournalRow>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let sql = "SELECT * FROM journal ORDER BY seq";
        let mut select = self.connection.prepare_cached(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            if let ControlFlow::Break(value) = f(journal_row(row).ok()) {
                return Ok(ControlFlow::Break(value));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The principal of the first entry of an exec.
    pub fn exec_principal(&self, exec: &Id) -> Result<Option<String>> {
        let sql = "SELECT principal FROM journal WHERE exec = ?1 ORDER BY seq LIMIT 1";
        self.one(sql, [exec], |row| row.get(0))
    }
}

impl Transaction<'_> {
    /// Adds an entry, which becomes the head.
    pub fn append_journal(&self, entry: &JournalRow) -> Result<()> {
        let sql = "INSERT INTO journal
            (seq, secs, nanos, vault, exec, principal, operation, details, prev, hash)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let values = (
            signed(entry.seq),
            entry.time.secs,
            entry.time.nanos,
            entry.vault,
            entry.exec,
            &entry.principal,
            &entry.operation,
            &entry.details,
            entry.prev,
            entry.hash,
        );
        self.change(sql, values)?;
        let sql = "UPDATE journal_head SET seq = ?1, hash = ?2";
        self.change(sql, (signed(entry.seq), entry.hash))?;
        Ok(())
    }
}

fn journal_row(row: &Row<'_>) -> rusqlite::Result<JournalRow> {
    Ok(JournalRow {
        seq: count(row, "seq")?,
        time: stamp(row)?,
        vault: row.get("vault")?,
        exec: row.get("exec")?,
        principal: row.get("principal")?,
        operation: row.get("operation")?,
        details: row.get("details")?,
        prev: row.get("prev")?,
        hash: row.get("hash")?,
    })
}

/// A SELECT under way: conditions are added one by one, each with its values.
struct Select {
    sql: String,
    values: Vec<Value>,
}

impl Select {
    /// In a condition, `? ` stands for the first of its values and `?+` for the second.
    fn restrict(&mut self, condition: &str, given: Vec<Value>) {
        let first = self.values.len() + 1;
        self.values.extend(given);
        let condition = condition.replace("?+", &format!("?{}", first + 1));
        let condition = condition.replace("? ", &format!("?{first} "));
        self.sql.push_str(&format!(" AND ({condition})"));
    }

    fn restrict_text(&mut self, column: &str, text: &Beginning) {
        let exact = Value::Text(text.exact.clone());
        match &text.prefix {
            None => self.restrict(&format!("{column} = ? "), vec![exact]),
            Some(prefix) => {
                let condition = format!("{column} = ? OR substr({column}, 1, length(?+)) = ?+");
                self.restrict(&condition, vec![exact, Value::Text(prefix.clone())]);
            }
        }
    }

    fn restrict_path(&mut self, path: &Beginning) {
        let condition = "json_valid(details) AND EXISTS (
            SELECT 1 FROM json_each(json_array(json_extract(details, '$.path')))
                WHERE value = ? OR substr(value, 1, length(?+)) = ?+
            UNION ALL SELECT 1 FROM json_each(details, '$.paths')
                WHERE value = ? OR substr(value, 1, length(?+)) = ?+)";
        let prefix = path.prefix.as_ref().unwrap_or(&path.exact);
        let values = [&path.exact, prefix].map(|text| Value::Text(text.clone()));
        self.restrict(condition, values.to_vec());
    }
}

fn select(query: &JournalQuery) -> (String, Vec<Value>) {
    let mut select = Select {
        sql: "SELECT * FROM journal WHERE true".to_owned(),
        values: Vec::new(),
    };
    if let Some(id) = query.vault {
        select.restrict("vault = ? ", vec![Value::Blob(id.to_vec())]);
    }
    if let Some(id) = query.exec {
        select.restrict("exec = ? ", vec![Value::Blob(id.to_vec())]);
    }
    if let Some(principal) = &query.principal {
        select.restrict_text("principal", principal);
    }
    if let Some(decision) = &query.decision {
        let condition = "json_valid(details) AND json_extract(details, '$.decision') = ? ";
        select.restrict(condition, vec![Value::Text(decision.clone())]);
    }
    if let Some(operation) = &query.operation {
        select.restrict_text("operation", operation);
    }
    if let Some(path) = &query.path {
        select.restrict_path(path);
    }
    let moment = |time: Stamp| vec![time.secs.into(), i64::from(time.nanos).into()];
    if let Some(since) = query.since {
        select.restrict("(secs, nanos) >= (? , ?+)", moment(since));
    }
    if let Some(until) = query.until {
        select.restrict("(secs, nanos) <= (? , ?+)", moment(until));
    }
    if let Some(seq) = query.after {
        select.restrict("seq > ? ", vec![Value::Integer(signed(seq))]);
    }
    let Select {
        mut sql,
        mut values,
    } = select;
    sql.push_str(match query.newest_first {
        false => " ORDER BY seq",
        true => " ORDER BY seq DESC",
    });
    if let Some(limit) = query.limit {
        values.push(Value::Integer(super::limited(limit)));
        sql.push_str(&format!(" LIMIT ?{}", values.len()));
    }
    (sql, values)
}
