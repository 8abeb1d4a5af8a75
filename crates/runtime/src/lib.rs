//! Every use case, written once: what the surfaces offer is a method of [`Session`]: of the [`Runtime`], in somebody's name.
//!
//! `exec.rs` tells the story of a mediated command; `live.rs` keeps the views and sandboxes that
//! commands run in; the other files are one use case each. Nothing here knows a wire or a terminal.

mod admission;
mod approvals;
mod attributes;
pub mod bounds;
mod branch;
mod call;
mod capture;
mod care;
mod changes;
mod checkpoints;
mod commit;
mod control;
mod copy;
mod defaults;
mod descriptors;
mod diff;
mod engine;
mod entered;
mod error;
mod exec;
mod files;
mod gate;
mod gauge;
mod ground;
mod hints;
mod home;
mod host;
mod jobs;
mod labels;
mod layers_place;
mod live;
mod locate;
mod memory;
mod mode;
mod mounts;
mod opened;
mod options;
mod patch;
mod policy;
mod read_only;
mod recover;
mod repair;
mod replace;
mod report;
mod reserve;
mod retried;
mod room;
mod rule_files;
mod run;
mod runtime;
mod scratch;
mod search;
mod session;
mod settings;
mod spill;
mod stage;
mod through;
mod transfer;
mod tree;
mod vaults;
mod versions;
mod write;

pub use approvals::{
    APPROVAL_LIFETIME, ApprovalDetails, ApprovalInfo, ChangedSince, Proof, Shown,
    SpeculationDetails, safe,
};
pub use attributes::{Missing, ModeChanged, Stat, Touched};
pub use avfs_policy::{
    Action, Categories, Category, Decision, Error as PolicyError, Example, Level, ListedRule,
    Network as PolicyNetwork, Part,
};
pub use avfs_sandbox::onhost::InUse;
pub use avfs_sandbox::{
    Defaults, Enforced, Isolation, Limit, Mechanism, Network, Usage, WindowSize,
};
/// For whoever starts a daemon on a full disk.
pub use avfs_store::give_up_reserve;
pub use avfs_transfer::{
    ApplyAction, ApplyReport, Error as TransferError, ExportReport, Gitignores, Hooks,
    ImportFilter, ImportReport, OnDamage, Progress, RunsByItself, Skipped, Standing, Unwatched,
    Watcher,
};
pub use avfs_vault::{
    AfterFork, Ancestor, Approval, ApprovalId, ApprovalState, Cause, Change, ChangeKind,
    Checkpoint, CheckpointLabel, CheckpointName, CheckpointOrigin, Content, Damage, DeletedVault,
    Description, Entry, ExecId, ForkPoint, FsckReport, GcReport, HomeUsage, JournalCheck,
    JournalEntry, JournalFilter, JournalOrder, JournalProblem, Keep, Kind, Lineage, Meta,
    PathVersion, Principal, PrincipalKind, PrincipalName, Pruned, Quota, QuotaLimit, Rebuilt,
    Recovered, RecoveredVault, RootCounts, RootId, Sighting, Time, Vault, VaultId, VaultName,
    VaultPath, VaultUsage, Version,
};
pub use call::ExecCommand;
pub use capture::HeldOutput;
pub use care::{GRACE, MaintainOptions, MaintainReport, PruneReport, PruneScope, QuotaState, Run};
pub use changes::ChangeList;
pub use checkpoints::{CheckpointDetails, CheckpointInfo, RestorePoint, RestoredHead};
pub use commit::CommitReport;
pub use control::Control;
pub use copy::{NewLink, Placed};
pub use defaults::DefaultKey;
pub use diff::{Diff, DiffDetail, DiffPoint, DiffRequest, DiffScope, FileDiff};
pub use entered::{Freeze, Running, Stillness};
pub use error::{Error, ErrorKind, Result};
pub use exec::ExecRequest;
pub use files::{Depth, ListRequest, Listed, Listing, Parents, WriteMode};
pub use gate::{Verb, may};
pub use home::HomeIdentity;
pub use host::HostFacts;
pub use jobs::{
    Attending, JobId, JobInfo, JobRequest, JobStart, JobState, KEPT_AGE, KEPT_BYTES, KEPT_JOBS,
    LOG_MAX, Lifetime, LogPart, WriteReport,
};
pub use labels::{LabelChange, LabelName, Labelled, Labels, TagCount};
pub use layers_place::{LayersPlace, LayersWhy};
pub use memory::{economize, give_back_stack};
pub use mode::ModeChange;
pub use mounts::{
    MountAccess, MountDriver, MountInfo, MountRequest, UnmountTarget, Unmounted, mount_namespace,
};
pub use options::{
    Access, Approving, Branch, CheckpointMode, DEFAULT_OUTPUT_LIMIT, DEFAULT_TIMEOUT, Driver,
    ExecDetail, ExecOptions, Limits, Profile, Stdin, Timeout,
};
pub use patch::{DiffLine, LineCounts, LineKind};
pub use policy::{PolicyListing, PolicyQuestion, PolicySource};
pub use recover::Stranded;
pub use repair::{Rebuild, RepairReport, Repaired};
pub use replace::{Occurrences, Replaced};
pub use report::{
    ApprovalReport, Captured, ExecReport, ExecStatus, ExecTerms, ForkReport, SpeculationReport,
    Timings, Uncommitted,
};
pub use retried::{Retried, noting};
pub use run::{Cancel, OutputSink, Stream};
pub use runtime::{Activity, Config, IfLost, Runtime, Select};
pub use search::{
    AgeTest, FindRequest, Found, FoundPath, GrepDetail, GrepFile, GrepFound, GrepLine, GrepMatch,
    GrepRequest, KindTest, LabelTest, SizeTest, WordHit, WordHits,
};
pub use session::Session;
pub use settings::{SaidBy, SettingKey, Settings, VaultLimit, parse_duration, parse_size};
pub use spill::{OutputPart, PART_MAX, SweptOutput};
pub use transfer::{ApplyMode, ApplyRequest, ExportTo, Import, ImportFrom, Imported};
pub use tree::{TreeListed, TreeNode};
pub use vaults::{Family, VaultInfo};
pub use versions::{BroughtBack, VaultVersion};
pub use write::{FileContent, OpenFile, ReadOptions, WriteOptions, Written};
