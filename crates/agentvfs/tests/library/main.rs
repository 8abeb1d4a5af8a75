//! The library as a program sees it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says what it leaves out")]

mod asynchronous;
mod commands;
mod common;
mod faces;
mod programs;
mod requests;

/// How long is waited for what comes soon or never.
const LONG: std::time::Duration = std::time::Duration::from_secs(60);
