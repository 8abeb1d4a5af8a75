//! Limits: what the daemon takes of memory and disk, whatever is asked of it and for however long.
//!
//! Belongs here: whatever counts what a process of ours has, or makes it take as much as it may.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod deep;
mod large;
mod memory;
mod requests;
mod soak;

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");
