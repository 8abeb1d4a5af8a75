//! What a workspace is: trees, edits, diff, checkpoints, forks, history, journal.

mod approvals;
mod build;
mod check;
mod checkpoints;
mod codec;
mod content;
mod copy;
mod damaged;
mod delta;
mod diff;
mod edit;
mod error;
mod fsck;
mod gc;
mod history;
mod holds;
mod imports;
mod journal;
mod lifetime;
mod lineage;
mod links;
mod mend;
mod model;
mod names;
mod node;
mod parts;
mod path;
mod policy;
mod principal;
mod prune;
mod quota;
mod reach;
mod reader;
mod rebuild;
mod renames;
mod rows;
mod settings;
mod similar;
mod trees;
mod usage;
mod vaults;
mod versions;
mod walk;
mod words;
mod writer;
mod xattrs;

pub use approvals::{
    Approval, ApprovalAnswer, ApprovalUse, ApprovalVerdict, MOST_PENDING, NewApproval, Speculation,
    Unfit,
};
pub use checkpoints::CheckpointLabel;
pub use damaged::Readable;
pub use diff::{Change, ChangeKind};
pub use edit::Edit;
pub use error::{Error, Result};
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
pub use model::{Content, Entry, Kind, LinkId, Meta, Root, RootId, Time, TreeId};
pub use names::{ApprovalId, CheckpointName, Description, ExecId, VaultId, VaultName};
pub use path::VaultPath;
pub use principal::{Principal, PrincipalKind, PrincipalName};
pub use prune::{Keep, Pruned};
pub use quota::{Beside, QuotaLimit};
pub use reader::{ContentReader, Piece, Pieces};
pub use rebuild::{Rebuilt, Recovered, RecoveredVault};
pub use renames::pair_renames;
pub use trees::Trees;
pub use usage::{HomeUsage, VaultUsage};
pub use vaults::Vaults;
pub use versions::PathVersion;
pub use walk::{Step, Visit};
pub use words::{WordIndex, WordMatch};
pub use writer::ContentWriter;
pub use xattrs::XattrMap;
