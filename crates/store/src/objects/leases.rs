//! What a sweep must not take from under work that is under way.
//!
//! Whoever stores objects that nothing refers to yet holds a lease. While it is held, no sweep takes
//! an object that was stored, or asked for and found, since the lease began.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ObjectId;
use crate::engine::RecordLocation;

/// Beyond this many found objects no sweep takes anything until the leases have ended.
const REUSED_MAX: usize = 1 << 18;

/// Keeps what is stored and found from now on from being swept, until it is dropped.
pub struct Lease {
    leases: Arc<Leases>,
    number: u64,
}

#[derive(Default)]
pub struct Leases {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where the packs ended when each lease began.
    begun: BTreeMap<u64, RecordLocation>,
    next: u64,
    /// Objects that were asked for and found while some lease was held.
    reused: HashSet<ObjectId>,
    /// Objects on their way out: whoever wants to store one stores it anew.
    doomed: HashSet<ObjectId>,
    /// How many sweeps have ended.
    sweeps: u64,
}

impl Leases {
    pub fn begin(self: &Arc<Self>, end_of_packs: RecordLocation) -> Lease {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.begun.insert(number, end_of_packs);
        Lease {
            leases: self.clone(),
            number,
        }
    }

    /// The number of sweeps so far, or none when the object is on its way out.
    pub fn look(&self, id: ObjectId) -> Option<u64> {
        let state = self.lock();
        (!state.doomed.contains(&id)).then_some(state.sweeps)
    }

    /// Notes that the object was found after `seen` sweeps; false when one has come in between.
    pub fn reuse(&self, id: ObjectId, seen: u64) -> bool {
        let mut state = self.lock();
        if state.sweeps != seen || state.doomed.contains(&id) {
            return false;
        }
        if !state.begun.is_empty() && state.reused.len() < REUSED_MAX {
            state.reused.insert(id);
        }
        true
    }

    /// Of `dead`, those that may go; they are on their way out until `swept`.
    pub fn doom(&self, dead: &[(ObjectId, RecordLocation)], mark: RecordLocation) -> Vec<ObjectId> {
        let mut state = self.lock();
        if state.reused.len() >= REUSED_MAX {
            return Vec::new();
        }
        let oldest = state.begun.values().min().copied();
        let before = oldest.map_or(mark, |oldest| oldest.min(mark));
        // A file of its own has no place that tells its age.
        let is_old = |place: &RecordLocation| match place.is_loose() {
            true => oldest.is_none(),
            false => *place < before,
        };
        let free = dead.iter().filter(|(_, place)| is_old(place));
        let ids = free.map(|(id, _)| *id);
        let doomed: Vec<_> = ids.filter(|id| !state.reused.contains(id)).collect();
        state.doomed.extend(&doomed);
        doomed
    }

    /// The sweep is over, whether it came to anything or not.
    pub fn swept(&self) {
        let mut state = self.lock();
        state.doomed = HashSet::new();
        state.sweeps += 1;
    }

    /// Whether anything can have gone since the store was opened.
    pub fn any_sweep(&self) -> bool {
        self.lock().sweeps > 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is a single step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.leases.lock();
        state.begun.remove(&self.number);
        if state.begun.is_empty() {
            state.reused = HashSet::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> RecordLocation {
        RecordLocation { pack: 1, offset }
    }

    fn id(n: u64) -> ObjectId {
        ObjectId::of(&n.to_le_bytes())
    }

    #[test]
    fn only_what_is_older_than_the_mark_and_every_lease_goes() {
        let leases = Arc::new(Leases::default());
        let dead: Vec<_> = (0..10).map(|n| (id(n), at(n * 10))).collect();
        assert_eq!(leases.doom(&dead, at(50)).len(), 5);
        leases.swept();
        let early = leases.begin(at(20));
        let late = leases.begin(at(70));
        assert_eq!(leases.doom(&dead, at(90)).len(), 2);
        leases.swept();
        drop(early);
        assert_eq!(leases.doom(&dead, at(90)).len(), 7);
        leases.swept();
        drop(late);
    }

    #[test]
    fn what_was_found_stays_while_a_lease_is_held() {
        let leases = Arc::new(Leases::default());
        let dead = [(id(1), at(1)), (id(2), at(2))];
        let lease = leases.begin(at(100));
        let seen = leases.look(id(1)).unwrap();
        assert!(leases.reuse(id(1), seen));
        assert_eq!(leases.doom(&dead, at(100)), [id(2)]);
        assert_eq!(leases.look(id(2)), None, "it is on its way out");
        assert!(!leases.reuse(id(2), seen));
        leases.swept();
        assert!(!leases.reuse(id(2), seen), "a sweep came in between");
        drop(lease);
        assert_eq!(leases.doom(&dead, at(100)).len(), 2);
    }
}
