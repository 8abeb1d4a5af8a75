//! Objects known to be damaged: they are not reused, so that good bytes repair them.
//!
//! Whoever reads one finds out. The next transaction writes it down, so that a later process knows too.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction};

use crate::{ObjectId, Result};

/// Beyond this many, damage is found again by whoever reads it.
const KNOWN_MAX: usize = 1 << 16;

#[derive(Default)]
pub(crate) struct Damaged {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: HashSet<ObjectId>,
    /// Those that the database does not know of yet.
    unwritten: HashSet<ObjectId>,
}

impl Damaged {
    /// What earlier processes have found.
    pub fn load(connection: &Connection) -> Result<Damaged> {
        let mut select = connection.prepare("SELECT id FROM damaged LIMIT ?1")?;
        let rows = select.query_map([KNOWN_MAX as i64], |row| row.get(0))?;
        let ids = rows.map(|id| id.map(ObjectId::from_bytes));
        let state = State {
            known: ids.collect::<Result<_, _>>()?,
            unwritten: HashSet::new(),
        };
        Ok(Damaged {
            state: Mutex::new(state),
        })
    }

    pub fn note(&self, id: ObjectId) {
        let mut state = self.state();
        if state.known.len() < KNOWN_MAX && state.known.insert(id) {
            state.unwritten.insert(id);
        }
    }

    pub fn contains(&self, id: ObjectId) -> bool {
        self.state().known.contains(&id)
    }

    /// Writes down what was found, and takes out what this transaction has stored anew. Gives what is written now.
    pub fn save(
        &self,
        transaction: &Transaction<'_>,
        repaired: &HashSet<ObjectId>,
    ) -> rusqlite::Result<Vec<ObjectId>> {
        let state = self.state();
        if state.known.is_empty() {
            return Ok(Vec::new());
        }
        for id in &state.unwritten {
            let sql = "INSERT OR IGNORE INTO damaged (id) VALUES (?1)";
            transaction.prepare_cached(sql)?.execute([id.as_bytes()])?;
        }
        for id in repaired.intersection(&state.known) {
            let sql = "DELETE FROM damaged WHERE id = ?1";
            transaction.prepare_cached(sql)?.execute([id.as_bytes()])?;
        }
        Ok(state.unwritten.iter().copied().collect())
    }

    /// The transaction that saved has been committed.
    pub fn saved(&self, written: &[ObjectId], repaired: &HashSet<ObjectId>) {
        let mut state = self.state();
        if state.known.is_empty() {
            return;
        }
        for id in written {
            state.unwritten.remove(id);
        }
        state.known.retain(|id| !repaired.contains(id));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a single step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
