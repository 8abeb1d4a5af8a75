//! The handlers: a typed request in, a typed answer or typed events out, without HTTP. A row of [`crate::table`] names the
//! handler, and a surface calls it with an [`Ask`], which only the gate in `caller.rs` makes.

pub(crate) mod app;
pub(crate) mod approvals;
pub(crate) mod caller;
mod calls;
pub(crate) mod care;
pub(crate) mod checkpoints;
pub(crate) mod content;
pub(crate) mod daemon;
mod envelope;
mod envelope_approval;
pub(crate) mod erased;
pub(crate) mod events;
pub(crate) mod exec;
mod exec_options;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod fsck;
pub(crate) mod git;
pub(crate) mod handler;
pub(crate) mod input;
mod items;
pub(crate) mod jobs;
pub(crate) mod journal;
pub(crate) mod keys;
pub(crate) mod labels;
pub(crate) mod lanes;
pub(crate) mod logs;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod modes;
pub(crate) mod mounts;
pub(crate) mod network;
mod page;
pub(crate) mod paths;
pub(crate) mod policy;
pub(crate) mod ports;
pub(crate) mod repeats;
pub(crate) mod retried;
pub(crate) mod search;
pub(crate) mod secrets;
pub(crate) mod traces;
pub(crate) mod transfer;
pub(crate) mod vaults;
pub(crate) mod versions;

use crate::wire::CURRENT;
use avfs_runtime::{IfBusy, Select};
use caller::Ask;
use failure::Failure;
use handler::Reply;

/// Parses a vault's name or id.
pub(crate) fn parse_vault(text: &str) -> Result<Select, Failure> {
    if text == CURRENT {
        return Ok(Select::Current);
    }
    parse(text)
}

/// Parses a name or path.
pub(crate) fn parse<T>(text: &str) -> Result<T, Failure>
where
    T: std::str::FromStr,
    avfs_runtime::Error: From<T::Err>,
{
    text.parse::<T>()
        .map_err(|error| Failure::from(avfs_runtime::Error::from(error)))
}

/// What `force` means for running commands.
fn if_busy(force: bool) -> IfBusy {
    if force { IfBusy::End } else { IfBusy::Refuse }
}
