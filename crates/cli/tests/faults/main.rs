//! Faults: processes killed at any moment, full and read-only disks, damaged files. Nothing acknowledged is lost, and there
//! is a way out.
//!
//! Belongs here: whatever breaks something on purpose, and the maintenance of a home (gc, fsck, repair).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod full;
mod interrupted;
mod killed;
mod maintenance;

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");
