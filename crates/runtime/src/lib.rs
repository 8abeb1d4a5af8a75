//! Every use case, written once: what the surfaces offer is a method of [`Runtime`].
//!
//! `exec.rs` tells the story of a mediated command; `live.rs` keeps the views and sandboxes that
//! commands run in; the other files are one use case each. Nothing here knows a wire or a terminal.

mod back;
mod capture;
mod checkpoints;
mod diff;
mod engine;
mod error;
mod exec;
mod export;
mod files;
mod host;
mod import;
mod live;
mod progress;
mod recover;
mod report;
mod run;
mod runtime;
mod scratch;
mod transfer;
mod vaults;

pub use avfs_policy::{Action, Category, Decision, Part};
pub use avfs_sandbox::{Isolation, Usage};
pub use avfs_vault::{
    Cause, Change, ChangeKind, Checkpoint, CheckpointName, CheckpointOrigin, Entry, ExecId,
    JournalCheck, JournalEntry, JournalProblem, Kind, Lineage, Meta, Principal, RootId, Time,
    Vault, VaultId, VaultName, VaultPath, Version,
};
pub use back::{Back, BackAction, BackMode, BackReport};
pub use checkpoints::RestoredHead;
pub use diff::{Diff, DiffDetail, DiffPoint};
pub use error::{Error, ErrorKind, Result};
pub use exec::{ExecCommand, ExecRequest};
pub use export::ExportReport;
pub use files::{Depth, FileContent, Listed, Parents, WriteMode, Written};
pub use host::HostFacts;
pub use import::{Gitignores, ImportFilter, ImportReport, Skipped};
pub use progress::{Progress, Unwatched, Watcher};
pub use report::{Captured, ExecReport, ExecStatus, Timings};
pub use run::{OutputSink, Stream};
pub use runtime::{Activity, Config, Runtime, Select};
pub use transfer::{Import, ImportFrom, Imported, TransferError};
pub use vaults::{AfterFork, VaultInfo};
