//! Care of vaults: gc, fsck, quotas, pruning.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod fsck;
mod gc;
mod limits;
mod storm;
