//! Damaged objects, made whole by what is found elsewhere: a second record in some pack, or the same bytes on the host.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record;
use super::store::{Inner, Store};
use crate::engine::RecordLocation;
use crate::{ObjectId, Result};

/// Objects that are looked for.
pub(crate) struct Wanted {
    state: Mutex<State>,
}

struct State {
    wanted: HashSet<ObjectId>,
    taken: Vec<ObjectId>,
}

impl Wanted {
    /// Whether it was wanted until now.
    pub fn take(&self, id: ObjectId) -> bool {
        let mut state = self.state();
        let is_wanted = state.wanted.remove(&id);
        if is_wanted {
            state.taken.push(id);
        }
        is_wanted
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each of the two is changed in one step, and both are only hints.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// A handle of which `put` stores those of `wanted`, and nothing else: for bytes that may hold what is missing.
    pub fn mending(&self, wanted: HashSet<ObjectId>) -> Store {
        let state = State {
            wanted,
            taken: Vec::new(),
        };
        Store {
            inner: self.inner.clone(),
            mending: Some(Arc::new(Wanted {
                state: Mutex::new(state),
            })),
        }
    }

    /// Of a handle that mends: what was stored since this was last asked. It lasts when this returns.
    pub fn mended(&self) -> Result<Vec<ObjectId>> {
        let Some(mending) = &self.mending else {
            return Ok(Vec::new());
        };
        let taken = std::mem::take(&mut mending.state().taken);
        if !taken.is_empty() {
            self.flush()?;
        }
        Ok(taken)
    }

    /// Puts whole records of what is wanted, wherever they lie, through this handle.
    pub fn salvage(&self) -> Result<()> {
        let Some(mending) = &self.mending else {
            return Ok(());
        };
        let inner = &*self.inner;
        let wanted = mending.state().wanted.clone();
        for (pack, _) in inner.engine.packs()? {
            let bytes = inner.engine.pack(pack)?;
            for (_, object) in record::find(&bytes, &wanted) {
                self.put(&object)?;
            }
        }
        for (id, length) in inner.engine.kept()? {
            if !wanted.contains(&id) {
                continue;
            }
            let record = inner.engine.read(id, RecordLocation::LOOSE, length);
            if let Ok(Some(record)) = record
                && let Ok(object) = record::open_record(id, &record)
            {
                self.put(&object)?;
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Whether a pack holds a whole record of an object that is known to be damaged.
    pub fn may_repair(&self, pack: u32) -> Result<bool> {
        let damaged = self.damaged.known();
        if damaged.is_empty() {
            return Ok(false);
        }
        Ok(!record::find(&self.engine.pack(pack)?, &damaged).is_empty())
    }
}
