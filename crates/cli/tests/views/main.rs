//! Views: what a command or a mount shows of a vault, and that what is reported and stored is what was done there.
//!
//! Belongs here: whatever compares a view with something that shares no code with it (POSIX, a scan, the host's own
//! files), and vaults that are changed while they are in use.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bases;
mod forks;
mod holes;
mod live;
mod posix;
mod truth;

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");
