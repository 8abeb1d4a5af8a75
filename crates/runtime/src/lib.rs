//! Every use case, written once: what the surfaces offer is a method of [`Session`]: of the [`Runtime`], in somebody's name.
//!
//! `command/exec.rs` is the walk of a mediated command. `live/` holds the views and sandboxes that commands run in,
//! `files/` and `history/` the verbs on files, vaults and versions, `job/` commands that outlive their callers. A folder
//! uses only those before it in `xtask/src/tidy/folders.rs`. Nothing here knows a wire or a terminal.

pub mod bounds;
mod command;
mod common;
mod credentials;
mod error;
mod files;
mod gate;
mod helper;
mod history;
mod home;

mod job;
mod live;
mod memory;
mod owners;
mod pattern;
mod point;
mod read_only;
mod registry;
mod repair;
mod retried;
mod runtime;
mod secret;
mod session;
#[cfg(test)]
mod tests;
mod transfer;

pub use avfs_net::{CacheHealth, CachePlace, CacheUsage, RequestRule, RequestRules};
pub use avfs_policy::{
    Action, Categories, Category, Decision, Error as PolicyError, Example, Hint, Host, HostError,
    HostList, HostPattern, HostPort, HostRule, Level, ListedRule, Network as PolicyNetwork, Part,
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
pub use command::approvals::{
    APPROVAL_LIFETIME, ApprovalDetails, ApprovalInfo, ChangedSince, Proof, Shown,
    SpeculationDetails, safe,
};
pub use command::call::{ExecCommand, ExecRequest};
pub use command::capture::HeldOutput;
pub use command::control::Control;
pub use command::defaults::DefaultKey;

pub use command::inspection::{InspectChange, Inspection};
pub use command::lent::VaultLent;
pub use command::mode::Mode;
pub use command::network::{ExecNetwork, NetworkAsk, VaultNetwork};
pub use command::network_limits::NetworkLimits;
pub use command::network_verbs::NetworkRecord;
pub use command::observer::{EndedExec, ExecObserver};
pub use command::options::{
    Approving, Branch, CheckpointMode, DEFAULT_OUTPUT_LIMIT, DEFAULT_TIMEOUT, ExecDetail,
    ExecOptions, Limits, Profile, Stdin, Timeout,
};
pub use command::policy::{PolicyListing, PolicyQuestion, PolicySource};
pub use command::report::{
    ApprovalReport, Asked, Attempt, Attempts, Captured, ExecReport, ExecStatus, ExecTerms,
    ForkReport, SpeculationReport, Timings, Uncommitted,
};
pub use command::run::{Cancel, OutputSink};
pub use command::settings::{SaidBy, SettingKey, Settings, VaultLimit, parse_duration, parse_size};
pub use command::spill::{OutputPart, PART_MAX, SweptOutput};
pub use common::{Depth, JobId, Stream};
pub use credentials::CredentialChange;
pub use error::{Error, ErrorKind, Result, SecretError};
pub use files::attributes::{Missing, ModeChanged, Stat, Touched};
pub use files::condition::{Tags, WriteCondition};
pub use files::copy::{NewLink, Placed};
pub use files::labels::{LabelChange, LabelName, Labelled, Labels, TagCount};
pub use files::mode::ModeChange;
pub use files::replace::{Occurrences, Replaced};
pub use files::search::{
    AgeTest, FindRequest, Found, FoundPath, GrepDetail, GrepFile, GrepFound, GrepLine, GrepMatch,
    GrepRequest, KindTest, LabelTest, SizeTest, WordHit, WordHits,
};
pub use files::tree::{TreeListed, TreeNode};
pub use files::write::{FileContent, OpenFile, ReadOptions, WriteOptions, Written};
pub use files::{ListRequest, Listed, Listing, Parents, WriteMode};
pub use gate::{Verb, may};
pub use helper::helper_main;
pub use history::changes::{ChangeSet, Patch};
pub use history::checkpoints::{
    CheckpointDetails, CheckpointInfo, IfForked, RestorePoint, RestoredHead,
};
pub use history::commit::CommitReport;
pub use history::diff::{Diff, DiffDetail, DiffRequest, DiffScope, FileDiff};
pub use history::exec_changes::{ChangesOf, ExecChanges, ExecChangesRequest};
pub use history::ignored::{Counts, Ignored};
pub use history::maintenance::{
    GRACE, MaintainOptions, MaintainReport, PruneReport, PruneScope, QuotaState, Run,
};
pub use history::patch::{DiffLine, LineCounts, LineKind};
pub use history::vaults::{Family, VaultInfo};
pub use history::versions::{BroughtBack, VaultVersion};
pub use home::HomeIdentity;
pub use job::{
    Attending, JobInfo, JobRequest, JobStart, JobState, KEPT_AGE, KEPT_BYTES, KEPT_JOBS,
    KeptReport, LOG_MAX, Lifetime, LogPart,
};
pub use live::host::{HostFacts, HostProxies, RegistryVariables};
pub use live::layers_place::{LayersPlace, LayersWhy};
pub use live::lending::LendList;
pub use live::mounts::{
    Audience, MountAccess, MountDriver, MountInfo, MountRequest, UnmountTarget, Unmounted,
    mount_namespace,
};
pub use live::network::downloads_place;
pub use live::ports::{Guest, ListeningAt, ListeningPort, ListeningPorts, PortInfo};
pub use live::recover::Stranded;
pub use live::shape::{Access, Driver};
pub use live::slot::{Freeze, IfBusy, Stillness};
pub use memory::{allocated as allocated_bytes, economize, own as resident_bytes};
pub use pattern::VaultPattern;
pub use point::DiffPoint;
pub use registry::{Origin, RegistryHost, RegistryProblem, RegistryTool};
pub use repair::{Rebuild, RepairReport, Repaired};
pub use retried::{Retried, noting};
pub use runtime::{Activity, Config, IfLost, Runtime, Select};
pub use secret::{NewSecret, Secret, SecretForm, SecretInfo, SecretName, SecretValue};
pub use session::Session;
pub use transfer::{ApplyMode, ApplyRequest, ExportTo, Import, ImportFrom, Imported};
