//! What a workspace is: trees, edits, diff, checkpoints, forks, history, journal.

mod ledger;
mod terms;
mod tree;

pub use ledger::{
    AfterFork, Ancestor, Approval, ApprovalAnswer, ApprovalState, ApprovalUse, ApprovalVerdict,
    Beside, Cause, Checkpoint, CheckpointLabel, CheckpointOrigin, Damage, DeletedVault, ForkPoint,
    FsckReport, GcMode, GcOptions, GcReport, Hold, HomeUsage, ImportBase, ImportSource,
    JournalCheck, JournalEntry, JournalEvent, JournalFilter, JournalOrder, JournalProblem, Keep,
    Lineage, MOST_PENDING, Mending, NewApproval, NewJournalEntry, NewVersion, Operation,
    PathVersion, Pruned, Quota, Rebuilt, RecordedOperation, Recovered, RecoveredVault, Restored,
    RootCounts, Sighting, Speculation, Vault, VaultUsage, Vaults, Version,
};
pub use terms::{
    ApprovalId, CheckpointName, Description, Error, ExecId, Principal, PrincipalKind,
    PrincipalName, QuotaLimit, Result, RootId, TreeId, Unfit, VaultId, VaultName, VaultPath,
};
pub use tree::{
    Change, ChangeKind, Content, ContentReader, ContentWriter, Edit, Entry, Kind, LinkId, Meta,
    Piece, Pieces, Readable, Root, Step, Time, Trees, Visit, WordIndex, WordMatch, XattrMap,
    pair_renames,
};
