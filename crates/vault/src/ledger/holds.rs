//! Roots that somebody works with although no vault may name them any more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::RootId;

/// Keeps a root, with all that it refers to, from being swept until it is dropped.
pub struct Hold {
    holds: Arc<Holds>,
    root: RootId,
}

#[derive(Default)]
pub struct Holds {
    counts: Mutex<BTreeMap<RootId, usize>>,
}

impl Holds {
    pub fn hold(self: &Arc<Self>, root: RootId) -> Hold {
        *self.lock().entry(root).or_default() += 1;
        Hold {
            holds: self.clone(),
            root,
        }
    }

    pub fn roots(&self) -> Vec<RootId> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RootId, usize>> {
        // Every change is a single step.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut counts = self.holds.lock();
        if let Some(count) = counts.get_mut(&self.root) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.root);
            }
        }
    }
}
