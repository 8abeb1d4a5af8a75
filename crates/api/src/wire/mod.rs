//! The wire: one request and one response type per operation, and the table that lists them all.
//!
//! Everything here is plain data with text in it. Names and paths are parsed where a request
//! arrives, never here. Bytes that are not UTF-8 travel lossily under their key and exactly
//! under `<key>_b64`; whoever reads prefers the latter.

mod approval;
mod base64;
mod call;
mod care;
mod checkpoint;
mod class;
mod daemon;
mod diff;
mod exec;
mod exec_options;
#[cfg(test)]
mod fields;
mod files;
mod host;
mod jobs;
mod journal;
mod labels;
mod mounts;
mod paths;
mod policy;
mod problem;
mod reading;
mod retried;
mod search;
mod size;
mod transfer;
mod vault;
mod versions;
mod words;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use approval::{
    ApprovalApprove, ApprovalDeny, ApprovalDetails, ApprovalItem, ApprovalList, ApprovalListing,
    ApprovalReady, ApprovalSetup, ApprovalShow, TriedItem,
};
pub use base64::{Base64, from_text, to_text};
pub use call::CallId;
pub use care::{
    Collected, DamageItem, DamagedVaultItem, Fsck, FsckFindings, Gc, Maintain, Maintained, Prune,
    PruneFindings, QuotaChanged, QuotaItem, QuotaSet, QuotaShow, RebuiltItem, RecoverableItem,
    RecoveredItem, RepairedItem, RootItem, SightingItem, Stats, StatsItem, VaultStatsItem,
};
pub use checkpoint::{
    CheckpointDelete, CheckpointDeleted, CheckpointDetailsItem, CheckpointInfo, CheckpointItem,
    CheckpointList, CheckpointListing, CheckpointRestore, CheckpointRestored, CheckpointSave,
};
pub use class::{CLASS_HEADER, Class, NAME_HEADER, Reach, UNCOMMITTED_HEADER};
pub use daemon::{Daemon, DaemonState, DaemonStop, DaemonStopping};
pub use diff::{
    ChangeItem, ChangeWord, Diff, DiffLineItem, DiffReport, EntryItem, FileDiffItem, LineWord,
    TypeWord,
};
pub use exec::{
    ByteCounts, CommandMode, DecisionItem, DecisionPart, Envelope, EnvelopeRequest, EnvelopeResult,
    Exec, ExecCancel, ExecCancelled, ExecEvent, ExecInput, ExecInputTaken, ExecResize, ForkItem,
    LimitHit, LimitItem, OutputChunk, OutputCounts, SkippedItem, SpeculationItem, StartedEvent,
    StatusWord, TimeoutItem, TimingItem, UncommittedItem, UsageItem, WaitingEvent,
};
pub use exec_options::{
    CheckpointAsk, DriverWord, ForkWord, FreezeItem, LimitsAsk, NetworkWord, Output, OutputPart,
    ProfileWord, StdinItem, StreamWord, TtyAsk, WindowItem,
};
pub use files::{
    Cat, FileBody, ListedEntry, Listing, Ls, MadeDirectory, Mkdir, Moved, Mv, ReadContent, Removed,
    Rm, Write, WriteContent, Written,
};
pub use host::HostPath;
pub use jobs::{
    JobAnswer, JobEvent, JobItem, JobKill, JobKilled, JobList, JobListing, JobLogs, JobOffsets,
    JobPoll, JobPolled, JobResize, JobStart, JobStarted, JobStatus, JobStdin, JobStdinTaken,
    JobWait, JobWaited, JobWord, KilledWord, LifetimeWord, LogChunk, LogRange, StartedWord,
};
pub use journal::{Journal, JournalItem, JournalListing, JournalVerified, JournalVerify};
pub use labels::{
    AllTags, MetaChanged, MetaDelete, MetaGet, MetaImport, MetaImported, MetaList, MetaListing,
    MetaSet, MetaValue, Tag, TagDelete, TagDeleted, TagItem, TagList, TagListAll, TagListing,
    TagRename, TagRenamed, Tagged, Untag,
};
pub use mounts::{
    Commit, CommitItem, Mount, MountDriverWord, MountItem, MountListing, Mounts, Unmount,
    UnmountListing, UnmountedItem,
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
pub use problem::Problem;
pub use reading::only_reads;
pub(crate) use retried::retried_in;
pub use retried::{RETRIED_HEADER, RetriedEvent, RetriedWord};
pub use search::{
    Find, FindReport, FoundItem, Grep, GrepFileItem, GrepLineItem, GrepMatchItem, GrepOutput,
    GrepReport, Search, SearchHit, SearchReport,
};
pub use size::human_size;
pub use transfer::{
    ArchiveRead, ArchiveWrite, BackItem, BackWord, Export, ExportArchive, ExportChanges, Exported,
    ExportedChanges, Import, Imported, ProgressEvent, RunsByItselfItem,
};
pub use vault::{
    AncestorItem, Defaults, DefaultsListing, DefaultsSet, DeletedVaultItem, StrandedItem,
    VaultCreate, VaultCreated, VaultDelete, VaultDeleted, VaultDetails, VaultFork, VaultForked,
    VaultInfo, VaultItem, VaultLimitItem, VaultList, VaultListDeleted, VaultLog, VaultRename,
    VaultRenamed, VaultSet, VaultSettings, VaultUndelete, VaultUndeleted, VaultUnset, VaultUse,
    VaultUsed, VersionItem,
};
pub use versions::{CheckedOut, Checkout, PathLog, PathVersionItem, Revert, Reverted};

/// The vault name in an address that means "the current vault".
pub const CURRENT: &str = "@current";

/// The request header with which a client says its version; a daemon of another version refuses.
pub const VERSION_HEADER: &str = "avfs-version";

/// The version both sides compare.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How a request travels: `Get` and `Put` put its fields into the query, the others into a JSON
/// body. The body of a `Put` is a stream of bytes.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

/// One thing a client can ask for. The type is the request itself.
pub trait Operation: Serialize + DeserializeOwned + Send + 'static {
    const NAME: &'static str;
    const METHOD: Method;
    /// The address; `{vault}` stands for a vault's name or [`CURRENT`].
    const ROUTE: &'static str;
    type Response: Serialize + DeserializeOwned + Send + 'static;
}

/// One line of the table of operations.
#[derive(Copy, Clone, Debug)]
pub struct OperationLine {
    pub name: &'static str,
    pub method: Method,
    pub route: &'static str,
}

macro_rules! operations {
    ($($request:ty, $name:literal, $method:ident $route:literal => $response:ty;)*) => {
        $(impl Operation for $request {
            const NAME: &'static str = $name;
            const METHOD: Method = Method::$method;
            const ROUTE: &'static str = $route;
            type Response = $response;
        })*

        /// Every operation there is, for routes, surfaces and the test that none is missing.
        pub const OPERATIONS: &[OperationLine] = &[
            $(OperationLine { name: $name, method: Method::$method, route: $route },)*
        ];

        /// Every operation with the fields of its request.
        #[cfg(test)]
        fn fields_of_all() -> Vec<(&'static str, Vec<fields::Field>)> {
            vec![$(($name, fields::fields_of::<$request>())),*]
        }
    };
}

operations! {
    VaultCreate, "vault_create", Post "/v1/vaults" => VaultCreated;
    VaultList, "vault_list", Get "/v1/vaults" => Vec<VaultItem>;
    VaultInfo, "vault_info", Get "/v1/vaults/{vault}" => VaultDetails;
    VaultUse, "vault_use", Post "/v1/vaults/{vault}/use" => VaultUsed;
    VaultRename, "vault_rename", Post "/v1/vaults/{vault}/rename" => VaultRenamed;
    VaultFork, "vault_fork", Post "/v1/vaults/{vault}/fork" => VaultForked;
    VaultDelete, "vault_delete", Delete "/v1/vaults/{vault}" => VaultDeleted;
    VaultListDeleted, "vault_list_deleted", Get "/v1/deleted-vaults" => Vec<DeletedVaultItem>;
    VaultUndelete, "vault_undelete", Post "/v1/deleted-vaults/undelete" => VaultUndeleted;
    VaultSet, "vault_set", Post "/v1/vaults/{vault}/settings" => VaultSettings;
    VaultUnset, "vault_unset", Post "/v1/vaults/{vault}/settings/unset" => VaultSettings;
    Defaults, "defaults", Get "/v1/defaults" => DefaultsListing;
    DefaultsSet, "defaults_set", Post "/v1/defaults" => DefaultsListing;
    VaultLog, "vault_log", Get "/v1/vaults/{vault}/log" => Vec<VersionItem>;
    PathLog, "log", Post "/v1/vaults/{vault}/files/log" => Vec<PathVersionItem>;
    Checkout, "checkout", Post "/v1/vaults/{vault}/files/checkout" => CheckedOut;
    Revert, "revert", Post "/v1/vaults/{vault}/files/revert" => Reverted;
    Ls, "ls", Post "/v1/vaults/{vault}/files/ls" => Listing;
    Cat, "cat", Post "/v1/vaults/{vault}/files/cat" => FileBody;
    Write, "write", Post "/v1/vaults/{vault}/files/write" => Written;
    ReadContent, "read_content", Get "/v1/vaults/{vault}/files/content" => ();
    WriteContent, "write_content", Put "/v1/vaults/{vault}/files/content" => Written;
    Mkdir, "mkdir", Post "/v1/vaults/{vault}/files/mkdir" => MadeDirectory;
    Rm, "rm", Post "/v1/vaults/{vault}/files/rm" => Removed;
    Mv, "mv", Post "/v1/vaults/{vault}/files/mv" => Moved;
    Stat, "stat", Post "/v1/vaults/{vault}/files/stat" => StatItem;
    Tree, "tree", Post "/v1/vaults/{vault}/files/tree" => TreeListing;
    Cp, "cp", Post "/v1/vaults/{vault}/files/cp" => Copied;
    Ln, "ln", Post "/v1/vaults/{vault}/files/ln" => Linked;
    Chmod, "chmod", Post "/v1/vaults/{vault}/files/chmod" => ModeChanged;
    Touch, "touch", Post "/v1/vaults/{vault}/files/touch" => Touched;
    Edit, "edit", Post "/v1/vaults/{vault}/files/edit" => Edited;
    Grep, "grep", Post "/v1/vaults/{vault}/search/grep" => GrepReport;
    Find, "find", Post "/v1/vaults/{vault}/search/find" => FindReport;
    Search, "search", Post "/v1/vaults/{vault}/search/words" => SearchReport;
    Tag, "tag", Post "/v1/vaults/{vault}/labels/tag" => Tagged;
    Untag, "untag", Post "/v1/vaults/{vault}/labels/untag" => Tagged;
    TagList, "tag_list", Post "/v1/vaults/{vault}/labels/tags" => TagListing;
    TagListAll, "tag_list_all", Get "/v1/vaults/{vault}/labels/tags" => AllTags;
    TagDelete, "tag_delete", Post "/v1/vaults/{vault}/labels/tags/delete" => TagDeleted;
    TagRename, "tag_rename", Post "/v1/vaults/{vault}/labels/tags/rename" => TagRenamed;
    MetaList, "meta_list", Post "/v1/vaults/{vault}/labels/meta" => MetaListing;
    MetaGet, "meta_get", Post "/v1/vaults/{vault}/labels/meta/get" => MetaValue;
    MetaSet, "meta_set", Post "/v1/vaults/{vault}/labels/meta/set" => MetaChanged;
    MetaDelete, "meta_delete", Post "/v1/vaults/{vault}/labels/meta/delete" => MetaChanged;
    MetaImport, "meta_import", Post "/v1/vaults/{vault}/labels/meta/import" => MetaImported;
    Import, "import", Post "/v1/vaults/{vault}/files/import" => Imported;
    Export, "export", Post "/v1/vaults/{vault}/files/export" => Exported;
    ExportArchive, "export_archive", Post "/v1/vaults/{vault}/files/export-archive" => Exported;
    ExportChanges, "export_changes", Post "/v1/vaults/{vault}/files/export-changes"
        => ExportedChanges;
    ArchiveWrite, "archive_write", Put "/v1/vaults/{vault}/files/archive" => Imported;
    ArchiveRead, "archive_read", Get "/v1/vaults/{vault}/files/archive" => ();
    CheckpointSave, "checkpoint_save", Post "/v1/vaults/{vault}/checkpoints" => CheckpointItem;
    CheckpointList, "checkpoint_list", Get "/v1/vaults/{vault}/checkpoints" => CheckpointListing;
    CheckpointInfo, "checkpoint_info", Post "/v1/vaults/{vault}/checkpoints/info"
        => CheckpointDetailsItem;
    CheckpointRestore, "checkpoint_restore", Post "/v1/vaults/{vault}/checkpoints/restore"
        => CheckpointRestored;
    CheckpointDelete, "checkpoint_delete", Post "/v1/vaults/{vault}/checkpoints/delete"
        => CheckpointDeleted;
    Diff, "diff", Get "/v1/vaults/{vault}/diff" => DiffReport;
    Exec, "exec", Post "/v1/vaults/{vault}/exec" => Envelope;
    ExecInput, "exec_input", Put "/v1/exec/input" => ExecInputTaken;
    Output, "output", Get "/v1/output" => OutputPart;
    ExecCancel, "exec_cancel", Post "/v1/exec/cancel" => ExecCancelled;
    ExecResize, "exec_resize", Post "/v1/exec/resize" => WindowItem;
    JobStart, "job_start", Post "/v1/vaults/{vault}/jobs" => JobAnswer;
    JobList, "job_list", Get "/v1/jobs" => JobListing;
    JobPoll, "job_poll", Get "/v1/jobs/poll" => JobPolled;
    JobLogs, "job_logs", Get "/v1/jobs/logs" => JobPolled;
    JobWait, "job_wait", Post "/v1/jobs/wait" => JobWaited;
    JobKill, "job_kill", Post "/v1/jobs/kill" => JobKilled;
    JobStdin, "job_stdin", Put "/v1/jobs/stdin" => JobStdinTaken;
    JobResize, "job_resize", Post "/v1/jobs/resize" => WindowItem;
    PolicyList, "policy_list", Get "/v1/vaults/{vault}/policy" => PolicyListing;
    PolicyExplain, "policy_explain", Post "/v1/vaults/{vault}/policy/explain" => PolicyExplained;
    PolicyTest, "policy_test", Post "/v1/vaults/{vault}/policy/test" => PolicyTested;
    PolicySet, "policy_set", Post "/v1/vaults/{vault}/policy" => PolicyChanged;
    PolicyWrite, "policy_write", Post "/v1/policy" => PolicyWritten;
    PolicyValidate, "policy_validate", Post "/v1/policy/validate" => PolicyTested;
    ApprovalSetup, "approval_setup", Post "/v1/approvals/setup" => ApprovalReady;
    ApprovalList, "approval_list", Get "/v1/approvals" => ApprovalListing;
    ApprovalShow, "approval_show", Post "/v1/approvals/show" => ApprovalDetails;
    ApprovalApprove, "approval_approve", Post "/v1/approvals/approve" => ApprovalItem;
    ApprovalDeny, "approval_deny", Post "/v1/approvals/deny" => ApprovalItem;
    Journal, "journal", Get "/v1/journal" => JournalListing;
    JournalVerify, "journal_verify", Get "/v1/journal/verify" => JournalVerified;
    Gc, "gc", Post "/v1/gc" => Collected;
    Fsck, "fsck", Post "/v1/fsck" => FsckFindings;
    Stats, "stats", Get "/v1/stats" => StatsItem;
    Maintain, "maintain", Post "/v1/maintain" => Maintained;
    Prune, "prune", Post "/v1/vaults/{vault}/prune" => PruneFindings;
    QuotaShow, "quota", Get "/v1/vaults/{vault}/quota" => QuotaItem;
    QuotaSet, "quota_set", Post "/v1/vaults/{vault}/quota" => QuotaChanged;
    Commit, "commit", Post "/v1/vaults/{vault}/commit" => CommitItem;
    Mount, "mount", Post "/v1/vaults/{vault}/mount" => MountItem;
    Unmount, "unmount", Post "/v1/unmount" => UnmountListing;
    Mounts, "mounts", Get "/v1/mounts" => MountListing;
    Daemon, "daemon", Get "/v1/daemon" => DaemonState;
    DaemonStop, "daemon_stop", Post "/v1/daemon/stop" => DaemonStopping;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_addresses_are_unique() {
        let names: BTreeSet<_> = OPERATIONS.iter().map(|line| line.name).collect();
        let addresses: BTreeSet<_> = OPERATIONS
            .iter()
            .map(|line| (format!("{:?}", line.method), line.route))
            .collect();
        assert_eq!(names.len(), OPERATIONS.len());
        assert_eq!(addresses.len(), OPERATIONS.len());
    }

    #[test]
    fn every_address_is_versioned() {
        assert!(OPERATIONS.iter().all(|line| line.route.starts_with("/v1/")));
    }
}
