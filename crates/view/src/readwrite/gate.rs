//! A lock that all changes hold shared, and a commit holds exclusively.
//!
//! Changes that waited for a commit run before the next commit: frequent commits delay a writer, but do not starve it.

use std::sync::{Condvar, Mutex, MutexGuard};

#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// Running changes.
    passing: usize,
    /// Waiting changes.
    waiting: usize,
}

/// One running change.
pub struct Passing<'a> {
    gate: &'a Gate,
}

/// While this is held, no change runs and none starts.
pub struct Quiet<'a> {
    gate: &'a Gate,
}

impl Gate {
    /// Held during one change.
    pub fn pass(&self) -> Passing<'_> {
        let mut state = self.lock();
        if state.is_closed {
            state.waiting += 1;
            state = self.wait_while(state, |state| state.is_closed);
            state.waiting -= 1;
            self.moved.notify_all();
        }
        state.passing += 1;
        Passing { gate: self }
    }

    pub fn close(&self) -> Quiet<'_> {
        let mut state = self.lock();
        state = self.wait_while(state, |state| state.is_closed || state.waiting > 0);
        state.is_closed = true;
        drop(self.wait_while(state, |state| state.passing > 0));
        Quiet { gate: self }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        condition: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self.moved.wait_while(state, |state| condition(state));
        waited.expect("no holder of this lock panics")
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.passing -= 1;
        if state.passing == 0 && state.is_closed {
            self.gate.moved.notify_all();
        }
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        self.gate.lock().is_closed = false;
        self.gate.moved.notify_all();
    }
}
