//! Objects known to be damaged: they are not reused, so that good bytes repair them.
//!
//! Whoever reads one finds out. The next transaction writes it down, so that a later process knows too.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ledger::{Rows, Transaction};
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
    /// Those that the database still has as damaged, and that were read whole since.
    whole: HashSet<ObjectId>,
}

impl Damaged {
    /// What earlier processes have found.
    pub fn load(rows: &Rows<'_>) -> Result<Damaged> {
        let state = State {
            known: rows.damaged(KNOWN_MAX)?,
            ..State::default()
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

    /// It was read after all: a disk may fail for a while.
    pub fn is_whole(&self, id: ObjectId) {
        let mut state = self.state();
        if state.known.remove(&id) && !state.unwritten.remove(&id) {
            state.whole.insert(id);
        }
    }

    pub fn contains(&self, id: ObjectId) -> bool {
        self.state().known.contains(&id)
    }

    pub fn known(&self) -> HashSet<ObjectId> {
        self.state().known.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.state().known.is_empty()
    }

    /// Writes down what was found, and takes out what this transaction has stored anew. Gives what is written now.
    pub fn save(
        &self,
        transaction: &Transaction<'_>,
        repaired: &HashSet<ObjectId>,
    ) -> Result<Vec<ObjectId>> {
        let state = self.state();
        if state.known.is_empty() && state.whole.is_empty() {
            return Ok(Vec::new());
        }
        for id in &state.unwritten {
            transaction.add_damaged(*id)?;
        }
        for id in repaired.intersection(&state.known).chain(&state.whole) {
            transaction.remove_damaged(*id)?;
        }
        let written = state.unwritten.iter().chain(&state.whole);
        Ok(written.copied().collect())
    }

    /// The transaction that saved has been committed.
    pub fn saved(&self, written: &[ObjectId], repaired: &HashSet<ObjectId>) {
        let mut state = self.state();
        for id in written {
            state.unwritten.remove(id);
            state.whole.remove(id);
        }
        if !state.known.is_empty() {
            state.known.retain(|id| !repaired.contains(id));
        }
    }

    /// Takes out objects that this transaction lets go of.
    pub fn drop_rows(&self, transaction: &Transaction<'_>, gone: &[ObjectId]) -> Result<()> {
        let state = self.state();
        for id in gone.iter().filter(|id| state.known.contains(id)) {
            transaction.remove_damaged(*id)?;
        }
        Ok(())
    }

    /// That transaction has been committed.
    pub fn dropped(&self, gone: &[ObjectId]) {
        let mut state = self.state();
        if state.known.is_empty() {
            return;
        }
        for id in gone {
            state.known.remove(id);
            state.unwritten.remove(id);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a single step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
