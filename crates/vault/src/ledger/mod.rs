//! What is kept about vaults: heads, versions, checkpoints, the journal, settings, limits, and what may be removed.

mod approvals;
mod checkpoints;
mod damaged;
mod fsck;
mod gc;
mod history;
mod holds;
mod imports;
mod journal;
mod lifetime;
mod lineage;
mod mend;
mod operation;
mod policy;
mod prune;
mod quota;
mod rebuild;
mod rows;
mod settings;
mod sightings;
mod usage;
mod vaults;
mod versions;

pub use approvals::{
    Approval, ApprovalAnswer, ApprovalUse, ApprovalVerdict, MOST_PENDING, NewApproval, Speculation,
};
pub use checkpoints::CheckpointLabel;
pub use fsck::{Damage, FsckReport, Sighting};
pub use gc::{GcMode, GcOptions, GcReport, RootCounts};
pub use history::{
    ApprovalState, Cause, Checkpoint, CheckpointOrigin, DeletedVault, Lineage, NewVersion, Quota,
    Restored, Vault, Version,
};
pub use holds::Hold;
pub use imports::{ImportBase, ImportSource};
pub use journal::{
    JournalCheck, JournalEntry, JournalFilter, JournalOrder, JournalProblem, NewJournalEntry,
};
pub use lineage::{AfterFork, Ancestor, ForkPoint};
pub use mend::Mending;
pub use operation::{JournalEvent, Operation, RecordedOperation};
pub use prune::{Keep, Pruned};
pub use quota::Beside;
pub use rebuild::{Rebuilt, Recovered, RecoveredVault};
pub use usage::{HomeUsage, VaultUsage};
pub use vaults::Vaults;
pub use versions::PathVersion;
