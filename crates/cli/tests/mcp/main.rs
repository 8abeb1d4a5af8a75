//! `avfs mcp` as its clients meet it: by hand, line by line, and with the official SDKs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod clients;
mod core;
mod kinds;
mod modes;
mod ports;
mod raw;

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");
