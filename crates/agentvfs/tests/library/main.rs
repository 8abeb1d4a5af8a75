//! The library as a program sees it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says what it leaves out")]

mod asynchronous;
mod common;
mod faces;
mod programs;
mod requests;
