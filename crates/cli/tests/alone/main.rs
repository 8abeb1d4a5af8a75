//! Tests that need their user, or this process, for themselves: they run one at a time, and no other program's beside them.
//!
//! Belongs here: whatever counts the allocations of this process, and whatever lives under a limit that the kernel holds all processes
//! of a user to (descriptors that are under way between them are counted so).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod descriptors;
mod leak;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");

/// Held by each test from its first line to its last.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
