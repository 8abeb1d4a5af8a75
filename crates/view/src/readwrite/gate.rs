//! The gate that all changes pass, and that a commit closes.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

#[derive(Default)]
pub struct Gate {
    lock: RwLock<()>,
}

/// While this lives, no change is under way and none begins.
pub struct Quiet<'a> {
    _closed: RwLockWriteGuard<'a, ()>,
}

impl Gate {
    /// Held for as long as one change takes.
    pub fn pass(&self) -> RwLockReadGuard<'_, ()> {
        self.lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn close(&self) -> Quiet<'_> {
        let closed = self.lock.write().unwrap_or_else(PoisonError::into_inner);
        Quiet { _closed: closed }
    }
}
