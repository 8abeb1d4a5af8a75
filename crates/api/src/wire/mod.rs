//! One request and one response type per operation; [`crate::table`] lists them all.
//!
//! All types are plain data with text. Names and paths are parsed by the handlers, not here. Bytes that are not UTF-8 are
//! sent lossily under their key and exactly under `<key>_b64`; a reader prefers the latter.

#![deny(missing_docs)]

mod approval;
mod base64;
mod call;
mod care;
mod changes;
mod checkpoint;
mod daemon;
mod diff;
mod envelope;
mod events;
mod exec;
mod exec_options;
mod exit_code;
mod files;
mod git;
mod host;
mod jobs;
mod journal;
mod keys;
mod labels;
mod mounts;
mod network;
mod paths;
mod policy;
mod ports;
mod problem;
mod retried;
mod schema_version;
mod search;
mod secrets;
mod size;
mod terminal;
mod transfer;
mod vault;
mod versions;
mod words;

pub use crate::table::{Class, Operation};
pub use approval::{
    ApprovalApprove, ApprovalDeny, ApprovalDetails, ApprovalItem, ApprovalList, ApprovalListing,
    ApprovalReady, ApprovalSetup, ApprovalShow, TriedItem,
};
pub use base64::{Base64, from_text, from_text_if_any, to_text};
pub use call::CallId;
pub use care::{
    Collected, DamageItem, DamagedVaultItem, Fsck, FsckFindings, Gc, Maintain, Maintained, Prune,
    PruneFindings, QuotaChanged, QuotaItem, QuotaSet, QuotaShow, RebuiltItem, RecoverableItem,
    RecoveredItem, RepairedItem, RootItem, SightingItem, Stats, StatsItem, VaultStatsItem,
};
pub use changes::{Changes, ExecChangesReport, IgnoredChanges, IgnoredItem};
pub use checkpoint::{
    CheckpointDelete, CheckpointDeleted, CheckpointDetailsItem, CheckpointInfo, CheckpointItem,
    CheckpointList, CheckpointListing, CheckpointRestore, CheckpointRestored, CheckpointSave,
};
pub use daemon::{Daemon, DaemonState, DaemonStop, DaemonStopping, MetricsRead};
pub use diff::{
    ChangeItem, ChangeWord, Diff, DiffLineItem, DiffReport, EntryItem, FileDiffItem, LineWord,
    TypeWord,
};
pub use envelope::{
    ByteCounts, CommandMode, DecisionItem, DecisionPart, Ending, Envelope, EnvelopeRequest,
    EnvelopeResult, ForkItem, LimitHit, LimitItem, OutputCounts, SkippedItem, SpeculationItem,
    StatusWord, TimeoutItem, TimingItem, UncommittedItem, UsageItem,
};
pub use events::{Events, EventsPage, EventsReady};
pub use exec::{
    Exec, ExecCancel, ExecCancelled, ExecEvent, ExecInput, ExecInputTaken, ExecResize, OutputChunk,
    StartedEvent, WaitingEvent,
};
pub use exec_options::{
    CheckpointAsk, DriverWord, ForkWord, FreezeItem, LimitsAsk, NetworkName, NetworkWord, Output,
    OutputPart, ProfileWord, StdinItem, StreamWord, TtyAsk, WindowItem,
};
pub use files::{
    Cat, EntryAttributes, FileBody, ListedEntry, Listing, Ls, MadeDirectory, Mkdir, Moved, Mv,
    ReadContent, Removed, Rm, Write, WriteContent, Written,
};
pub use git::{
    GitBranch, GitBranchItem, GitBranches, GitClone, GitCloned, GitCommit, GitCommitItem,
    GitCommitted, GitDiff, GitDiffReport, GitEntry, GitHistory, GitLog, GitStatItem, GitState,
    GitStatus, GitWord,
};
pub use host::HostPath;
pub use jobs::{
    JobAnswer, JobEvent, JobItem, JobKill, JobKilled, JobList, JobListing, JobLogs, JobOffsets,
    JobPoll, JobPolled, JobResize, JobStart, JobStarted, JobStatus, JobStdin, JobStdinTaken,
    JobWait, JobWaited, JobWord, KilledWord, LifetimeWord, LogChunk, LogRange, StartedWord,
};
pub use journal::{Journal, JournalItem, JournalListing, JournalVerified, JournalVerify};
pub use keys::{KeyCreate, KeyItem, KeyList, KeyListing, KeyMade, KeyRevoke, KeyRotate};
pub use labels::{
    AllTags, MetaChanged, MetaDelete, MetaGet, MetaImport, MetaImported, MetaList, MetaListing,
    MetaSet, MetaValue, Tag, TagDelete, TagDeleted, TagItem, TagList, TagListAll, TagListing,
    TagRename, TagRenamed, Tagged, Untag,
};
pub use mounts::{
    Commit, CommitItem, Mount, MountDriverWord, MountItem, MountListing, Mounts, Unmount,
    UnmountListing, UnmountedItem,
};
pub use network::{
    AttemptItem, DownloadsItem, InspectHow, NetworkAllow, NetworkCache, NetworkCacheClear,
    NetworkDeny, NetworkInspect, NetworkLimitsItem, NetworkLog, NetworkLogItem, NetworkLogged,
    NetworkSet, NetworkShow, NetworkState, NetworkUse, RegistriesItem, RegistryItem,
    RegistryProblemItem, RequestsItem,
};
pub use paths::{
    Chmod, Copied, Cp, Edit, Edited, Linked, Ln, ModeChanged, Stat, StatItem, Touch, Touched, Tree,
    TreeEntry, TreeListing,
};
pub use policy::{
    ExampleItem, PolicyChanged, PolicyExplain, PolicyExplained, PolicyList, PolicyListing,
    PolicySet, PolicySourceItem, PolicyTest, PolicyTested, PolicyValidate, PolicyWrite,
    PolicyWritten, RuleItem,
};
pub use ports::{
    ListeningItem, PortForward, PortItem, PortList, PortListing, PortRemove, PortsRemoved,
};
pub use problem::Problem;
pub(crate) use retried::retried_in;
pub use retried::{RETRIED_HEADER, RetriedEvent, RetriedWord};
pub use schema_version::SCHEMA_VERSION;
pub(crate) use schema_version::versioned;
pub use search::{
    Find, FindReport, FoundItem, Grep, GrepFileItem, GrepLineItem, GrepMatchItem, GrepOutput,
    GrepReport, Search, SearchHit, SearchReport,
};
pub use secrets::{SecretItem, SecretList, SecretListing, SecretRemove, SecretSet, SecretText};
pub use size::human_size;
pub use terminal::{TerminalAttach, TerminalControl, TerminalMessage, TerminalOpen};
pub use transfer::{
    ApplyItem, ApplyWord, ArchiveRead, ArchiveWrite, Export, ExportArchive, ExportChanges,
    Exported, ExportedChanges, Import, Imported, ProgressEvent, RunsByItselfItem, TransferIn,
    TransferOut, TransferSet, TransferShow, TransferState,
};
pub use vault::{
    AncestorItem, Defaults, DefaultsListing, DefaultsSet, DeletedVaultItem, DeletedVaultListing,
    LentItem, ModeItem, StrandedItem, VaultCreate, VaultCreated, VaultDelete, VaultDeleted,
    VaultDetails, VaultFork, VaultForked, VaultInfo, VaultItem, VaultLimitItem, VaultList,
    VaultListDeleted, VaultListing, VaultLog, VaultRename, VaultRenamed, VaultSet, VaultSettings,
    VaultUndelete, VaultUndeleted, VaultUnset, VaultUse, VaultUsed, VersionItem, VersionListing,
};
pub use versions::{
    CheckedOut, Checkout, PathLog, PathVersionItem, PathVersionListing, Revert, Reverted,
};

/// The vault name for "the current vault" in an address.
pub const CURRENT: &str = "@current";

/// The request header with the client's version; a daemon of another version refuses.
pub const VERSION_HEADER: &str = "avfs-version";

/// The request header that gives up the owner class; it can only be given up.
pub const CLASS_HEADER: &str = "avfs-class";

/// The response header for a vault with uncommitted writes: why, in one line.
pub const UNCOMMITTED_HEADER: &str = "avfs-uncommitted";

/// The request header with the caller's name, for the journal.
pub const NAME_HEADER: &str = "avfs-name";

/// The request header that gives up all scopes but these, separated by commas.
pub const SCOPES_HEADER: &str = "avfs-scopes";

/// The request header that gives up all vaults but these, separated by commas.
pub const VAULTS_HEADER: &str = "avfs-vaults";

/// The version both sides compare.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
