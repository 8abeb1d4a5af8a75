//! Every operation, one row each. Routes, the gate, limits, `docs/http.md` and the tests that compare surfaces are generated
//! from the rows.
//!
//! A new operation is named in five places: its request in `wire/`, its row here, its handler in `ops/`, and the CLI's
//! verb with its file in `commands/`.

mod columns;
#[macro_use]
mod expansion;
mod fields;
mod openapi;
mod reference;
mod schemas;
mod terminals;
#[cfg(test)]
mod tests;

use crate::bounds::{BODY_MAX, COMMAND_BODY_MAX, CONTENT, CONTROL, RUN, SHORT, STREAM, WAIT, WALK};
use crate::ops::handler::{Handler, Served, VaultOf};
use crate::ops::*;
use crate::wire::*;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use columns::{Class, Effect, Method, Row, Scope, VaultIn, Who};
pub use openapi::openapi;
pub use reference::{reference, smallest_requests};
pub use schemas::{schema_of, schemas};
pub use terminals::{ATTACH, OPEN, TERMINALS, Terminal};

/// An operation. The type is the request itself.
pub trait Operation: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// Its row in the table.
    const ROW: Row;
    /// Its name.
    const NAME: &'static str = Self::ROW.name;
    /// How it travels.
    const METHOD: Method = Self::ROW.method;
    /// Its address; `{vault}` stands for a vault.
    const ROUTE: &'static str = Self::ROW.route;
    /// The answer.
    type Response: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

/// A visitor of the rows, which gets the type of each request.
pub(crate) trait EachRow {
    fn row<O: Served>(&mut self);
}

// request, name, method and address, answer;
// who may ask, scope, effect, lane;
// where the request names its vault, handler; what it does.
operations! {
    VaultCreate "vault_create" Post "/v1/vaults" => VaultCreated,
        Agent Write Adds SHORT, Field(|it| Some(&it.name)), Answer(vaults::create),
        "Creates an empty vault.";
    VaultList "vault_list" Get "/v1/vaults" => VaultListing,
        Agent Read Reads CONTENT, Listed, Answer(vaults::list),
        "Lists the vaults.";
    VaultInfo "vault_info" Get "/v1/vaults/{vault}" => VaultDetails,
        Agent Read Reads SHORT, Address, OnVault(vaults::info),
        "Describes a vault: size, lineage, forks, settings, limits.";
    VaultUse "vault_use" Post "/v1/vaults/{vault}/use" => VaultUsed,
        Agent Write Ensures SHORT, Address, OnVault(vaults::make_current),
        "Makes a vault the caller's current one.";
    VaultRename "vault_rename" Post "/v1/vaults/{vault}/rename" => VaultRenamed,
        Maker Write Changes SHORT, AddressAnd(|it| vec![it.name.clone()]), OnVault(vaults::rename),
        "Renames a vault.";
    VaultFork "vault_fork" Post "/v1/vaults/{vault}/fork" => VaultForked,
        Agent Write Adds SHORT, AddressAnd(|it| vec![it.name.clone()]), OnVault(vaults::fork),
        "Creates a copy-on-write fork of a vault.";
    VaultDelete "vault_delete" Delete "/v1/vaults/{vault}" => VaultDeleted,
        Maker Write Changes SHORT, Address, OnVault(vaults::delete),
        "Deletes a vault; it can be restored until gc removes it.";
    VaultListDeleted "vault_list_deleted" Get "/v1/deleted-vaults" => DeletedVaultListing,
        Agent Read Reads SHORT, Listed, Answer(vaults::list_deleted),
        "Lists the deleted vaults that can be restored.";
    VaultUndelete "vault_undelete" Post "/v1/deleted-vaults/undelete" => VaultUndeleted,
        Maker Write Adds SHORT, Field(|it| Some(&it.name)), Answer(vaults::undelete),
        "Restores a deleted vault.";
    VaultSet "vault_set" Post "/v1/vaults/{vault}/settings" => VaultSettings,
        Owner Admin Replaces SHORT, Address, OnVault(vaults::set),
        "Changes settings of a vault.";
    VaultUnset "vault_unset" Post "/v1/vaults/{vault}/settings/unset" => VaultSettings,
        Owner Admin Replaces SHORT, Address, OnVault(vaults::unset),
        "Removes settings of a vault.";
    Defaults "defaults" Get "/v1/defaults" => DefaultsListing,
        Owner Admin Reads SHORT, Home, Answer(vaults::defaults),
        "Shows the settings and quotas that new vaults begin with.";
    DefaultsSet "defaults_set" Post "/v1/defaults" => DefaultsListing,
        Owner Admin Replaces SHORT, Home, Answer(vaults::set_defaults),
        "Changes the settings and quotas that new vaults begin with.";
    VaultLog "vault_log" Get "/v1/vaults/{vault}/log" => VersionListing,
        Agent Read Reads CONTENT, Address, OnVault(versions::vault_log),
        "Lists the versions of a vault, the newest first.";
    PathLog "log" Get "/v1/vaults/{vault}/files/log" => PathVersionListing,
        Agent Read Reads CONTENT, Address, OnVault(versions::path_log),
        "Lists the versions of a path, the newest first.";
    Checkout "checkout" Post "/v1/vaults/{vault}/files/checkout" => CheckedOut,
        Agent Write Replaces SHORT, Address, OnVault(versions::checkout),
        "Gives a path the content that it had in an earlier version.";
    Revert "revert" Post "/v1/vaults/{vault}/files/revert" => Reverted,
        Agent Write Changes SHORT, Address, OnVault(versions::revert),
        "Gives a path the content that it had before its last change.";
    Ls "ls" Get "/v1/vaults/{vault}/files/ls" => Listing,
        Agent Read Reads CONTENT, Address, OnVault(files::ls),
        "Lists the names in a directory.";
    Cat "cat" Get "/v1/vaults/{vault}/files/cat" => FileBody,
        Agent Read Reads CONTENT, Address, OnVault(files::cat),
        "Reads up to 1 MiB of a file.";
    Write "write" Post "/v1/vaults/{vault}/files/write" => Written,
        Agent Write Changes SHORT, Address, OnVault(files::write),
        "Writes a file, or appends to it.";
    ReadContent "read_content" Get "/v1/vaults/{vault}/files/content" => (),
        Agent Read Reads STREAM, Address, Opens(content::read),
        "Reads a file of any size; the answer is its content.";
    WriteContent "write_content" Put "/v1/vaults/{vault}/files/content" => Written,
        Agent Write Changes STREAM, Address, Receives(content::write),
        "Writes a file of any size, or appends to it; the body is its content.";
    Mkdir "mkdir" Post "/v1/vaults/{vault}/files/mkdir" => MadeDirectory,
        Agent Write Adds SHORT, Address, OnVault(files::mkdir),
        "Creates a directory.";
    Rm "rm" Post "/v1/vaults/{vault}/files/rm" => Removed,
        Agent Write Changes SHORT, Address, OnVault(files::rm),
        "Removes a file or a directory.";
    Mv "mv" Post "/v1/vaults/{vault}/files/mv" => Moved,
        Agent Write Changes SHORT, Address, OnVault(files::mv),
        "Moves or renames a file or a directory.";
    Stat "stat" Get "/v1/vaults/{vault}/files/stat" => StatItem,
        Agent Read Reads SHORT, Address, OnVault(paths::stat),
        "Describes a path: type, size, mode, owner, times, labels.";
    Tree "tree" Get "/v1/vaults/{vault}/files/tree" => TreeListing,
        Agent Read Reads WALK, Address, OnVault(paths::tree),
        "Lists a directory and everything below it.";
    Cp "cp" Post "/v1/vaults/{vault}/files/cp" => Copied,
        Agent Write Changes WALK, Address, OnVault(paths::cp),
        "Copies a file or a directory.";
    Ln "ln" Post "/v1/vaults/{vault}/files/ln" => Linked,
        Agent Write Adds SHORT, Address, OnVault(paths::ln),
        "Makes a hard or symbolic link.";
    Chmod "chmod" Post "/v1/vaults/{vault}/files/chmod" => ModeChanged,
        Agent Write Replaces WALK, Address, OnVault(paths::chmod),
        "Changes the mode of a path.";
    Touch "touch" Post "/v1/vaults/{vault}/files/touch" => Touched,
        Agent Write Ensures SHORT, Address, OnVault(paths::touch),
        "Sets a path's times to now; creates an empty file if there is none.";
    Edit "edit" Post "/v1/vaults/{vault}/files/edit" => Edited,
        Agent Write Changes WALK, Address, OnVault(paths::edit),
        "Replaces text in a file.";
    Grep "grep" Get "/v1/vaults/{vault}/search/grep" => GrepReport,
        Agent Read Reads WALK, Address, OnVault(search::grep),
        "Finds lines that match a pattern.";
    Find "find" Get "/v1/vaults/{vault}/search/find" => FindReport,
        Agent Read Reads WALK, Address, OnVault(search::find),
        "Finds paths by name, type, size, age and labels.";
    Search "search" Get "/v1/vaults/{vault}/search/words" => SearchReport,
        Agent Read Reads WALK, Address, OnVault(search::search),
        "Finds files by words, the best match first.";
    Tag "tag" Post "/v1/vaults/{vault}/labels/tag" => Tagged,
        Agent Write Ensures SHORT, Address, OnVault(labels::tag),
        "Adds a tag to a path.";
    Untag "untag" Post "/v1/vaults/{vault}/labels/untag" => Tagged,
        Agent Write Replaces SHORT, Address, OnVault(labels::untag),
        "Removes a tag from a path.";
    TagList "tag_list" Get "/v1/vaults/{vault}/labels/path-tags" => TagListing,
        Agent Read Reads SHORT, Address, OnVault(labels::tag_list),
        "Lists the tags of a path.";
    TagListAll "tag_list_all" Get "/v1/vaults/{vault}/labels/tags" => AllTags,
        Agent Read Reads WALK, Address, OnVault(labels::tag_list_all),
        "Lists all tags of a vault.";
    TagDelete "tag_delete" Post "/v1/vaults/{vault}/labels/tags/delete" => TagDeleted,
        Agent Write Changes WALK, Address, OnVault(labels::tag_delete),
        "Removes a tag from every path.";
    TagRename "tag_rename" Post "/v1/vaults/{vault}/labels/tags/rename" => TagRenamed,
        Agent Write Changes WALK, Address, OnVault(labels::tag_rename),
        "Renames a tag on every path.";
    MetaList "meta_list" Get "/v1/vaults/{vault}/labels/meta" => MetaListing,
        Agent Read Reads SHORT, Address, OnVault(labels::meta_list),
        "Lists the metadata of a path.";
    MetaGet "meta_get" Get "/v1/vaults/{vault}/labels/meta/get" => MetaValue,
        Agent Read Reads SHORT, Address, OnVault(labels::meta_get),
        "Reads one value of a path's metadata.";
    MetaSet "meta_set" Post "/v1/vaults/{vault}/labels/meta/set" => MetaChanged,
        Agent Write Replaces SHORT, Address, OnVault(labels::meta_set),
        "Sets one value of a path's metadata.";
    MetaDelete "meta_delete" Post "/v1/vaults/{vault}/labels/meta/delete" => MetaChanged,
        Agent Write Changes SHORT, Address, OnVault(labels::meta_delete),
        "Deletes one value of a path's metadata.";
    MetaImport "meta_import" Post "/v1/vaults/{vault}/labels/meta/import" => MetaImported,
        Agent Write Replaces SHORT, Address, OnVault(labels::meta_import),
        "Sets several values of a path's metadata.";
    Import "import" Post "/v1/vaults/{vault}/files/import" => Imported,
        Owner Admin Changes RUN, Address, Watched(transfer::import),
        "Copies a host directory, an archive or a git revision into a vault.";
    Export "export" Post "/v1/vaults/{vault}/files/export" => Exported,
        Owner Admin Outside RUN, Address, Watched(transfer::export),
        "Copies a directory of a vault to the host.";
    ExportArchive "export_archive" Post "/v1/vaults/{vault}/files/export-archive" => Exported,
        Owner Admin Outside RUN, Address, Watched(transfer::export_archive),
        "Writes a directory of a vault as a tar archive to the host.";
    ExportChanges "export_changes" Post "/v1/vaults/{vault}/files/export-changes" => ExportedChanges,
        Owner Admin Changes RUN, Address, Watched(transfer::export_changes),
        "Writes what changed since an import back to the imported host directory.";
    ArchiveWrite "archive_write" Put "/v1/vaults/{vault}/files/archive" => Imported,
        Agent Write Changes STREAM, Address, Receives(transfer::archive_write),
        "Imports a tar archive into a vault; the body is the archive.";
    ArchiveRead "archive_read" Get "/v1/vaults/{vault}/files/archive" => (),
        Agent Read Reads STREAM, Address, Sends("application/x-tar", transfer::archive_read),
        "Exports a directory of a vault as a tar archive; the answer is the archive.";
    TransferIn "transfer_in" Post "/v1/vaults/{vault}/files/transfer-in" => Imported,
        Agent Write Changes RUN, Address, Watched(transfer::transfer_in),
        "Imports a directory or an archive from the transfer directory into a vault.";
    TransferOut "transfer_out" Post "/v1/vaults/{vault}/files/transfer-out" => Exported,
        Agent Write Outside RUN, Address, Watched(transfer::transfer_out),
        "Copies a directory of a vault to a new name in the transfer directory.";
    TransferShow "transfer" Get "/v1/transfer" => TransferState,
        Owner Admin Reads SHORT, Home, Answer(transfer::show_directory),
        "Shows the transfer directory.";
    TransferSet "transfer_set" Post "/v1/transfer" => TransferState,
        Owner Admin Replaces SHORT, Home, Answer(transfer::set_directory),
        "Sets the one host directory that agents may use.";
    CheckpointSave "checkpoint_save" Post "/v1/vaults/{vault}/checkpoints" => CheckpointItem,
        Agent Write Adds SHORT, Address, OnVault(checkpoints::save),
        "Saves the state of a vault under a name.";
    CheckpointList "checkpoint_list" Get "/v1/vaults/{vault}/checkpoints" => CheckpointListing,
        Agent Read Reads CONTENT, Address, OnVault(checkpoints::list),
        "Lists the checkpoints of a vault.";
    CheckpointInfo "checkpoint_info" Get "/v1/vaults/{vault}/checkpoints/info" => CheckpointDetailsItem,
        Agent Read Reads SHORT, Address, OnVault(checkpoints::info),
        "Describes a checkpoint.";
    CheckpointRestore "checkpoint_restore" Post "/v1/vaults/{vault}/checkpoints/restore" => CheckpointRestored,
        Agent Write Changes SHORT, Address, OnVault(checkpoints::restore),
        "Restores a checkpoint, or undoes the last restore.";
    CheckpointDelete "checkpoint_delete" Post "/v1/vaults/{vault}/checkpoints/delete" => CheckpointDeleted,
        Maker Write Changes SHORT, Address, OnVault(checkpoints::delete),
        "Deletes a checkpoint.";
    Diff "diff" Get "/v1/vaults/{vault}/diff" => DiffReport,
        Agent Read Reads WALK, AddressAnd(versions::other_vaults), OnVault(versions::diff),
        "Compares two states of one vault or of two vaults.";
    Exec "exec" Post "/v1/vaults/{vault}/exec" => Envelope,
        Agent Run Changes RUN up to COMMAND_BODY_MAX, Address, Runs(exec::exec),
        "Runs a command in a vault and reports what it changed.";
    ExecInput "exec_input" Put "/v1/exec/input" => ExecInputTaken,
        Maker Run Changes SHORT, Call(|it| it.call), Feeds(exec::input),
        "Writes to the standard input of a running command; the body is the input.";
    Output "output" Get "/v1/output" => OutputPart,
        Maker Read Reads CONTENT, Exec(|it| &it.exec), Answer(exec::output),
        "Reads output of a command that did not fit into its envelope.";
    Changes "changes" Get "/v1/changes" => ExecChangesReport,
        Agent Read Reads WALK, Exec(|it| &it.exec), Answer(versions::changes),
        "Lists all that a command changed.";
    ExecCancel "exec_cancel" Post "/v1/exec/cancel" => ExecCancelled,
        Maker Run Changes CONTROL, Call(|it| it.call), Answer(exec::cancel),
        "Ends a running command.";
    ExecResize "exec_resize" Post "/v1/exec/resize" => WindowItem,
        Maker Run Replaces CONTROL, Call(|it| it.call), Answer(exec::resize),
        "Resizes the terminal of a running command.";
    GitStatus "git_status" Post "/v1/vaults/{vault}/git/status" => GitState,
        Agent Run Changes RUN, Address, Attended(git::status),
        "Reads the state of a repository with the git of the vault.";
    GitDiff "git_diff" Post "/v1/vaults/{vault}/git/diff" => GitDiffReport,
        Agent Run Changes RUN, Address, Attended(git::diff),
        "Compares files of a repository with what is staged or with a commit.";
    GitCommit "git_commit" Post "/v1/vaults/{vault}/git/commit" => GitCommitted,
        Agent Run Changes RUN, Address, Attended(git::commit),
        "Commits what is staged in a repository, or all of it.";
    GitBranch "git_branch" Post "/v1/vaults/{vault}/git/branch" => GitBranches,
        Agent Run Changes RUN, Address, Attended(git::branch),
        "Lists the branches of a repository, or creates and switches to one.";
    GitLog "git_log" Post "/v1/vaults/{vault}/git/log" => GitHistory,
        Agent Run Changes RUN, Address, Attended(git::log),
        "Lists the commits of a repository, the newest first.";
    GitClone "git_clone" Post "/v1/vaults/{vault}/git/clone" => GitCloned,
        Agent Run Changes RUN, Address, Attended(git::clone),
        "Clones a repository of the vault into a new directory.";
    JobStart "job_start" Post "/v1/vaults/{vault}/jobs" => JobAnswer,
        Agent Run Changes RUN up to COMMAND_BODY_MAX, Address, Attended(jobs::start),
        "Starts a command that continues when its caller disconnects.";
    JobList "job_list" Get "/v1/jobs" => JobListing,
        Agent Read Reads CONTENT, Field(|it| it.vault.as_deref()), Answer(jobs::list),
        "Lists the jobs, the newest first.";
    JobPoll "job_poll" Get "/v1/jobs/poll" => JobPolled,
        Maker Read Reads CONTENT, Job(|it| it.job_id), Answer(jobs::poll),
        "Shows the state of a job and a part of its output.";
    JobLogs "job_logs" Get "/v1/jobs/logs" => JobPolled,
        Maker Read Reads WAIT, Job(|it| it.job_id),
        Follows { once: jobs::logs, follow: jobs::follow },
        "Streams the output of a job as events.";
    JobWait "job_wait" Get "/v1/jobs/wait" => JobWaited,
        Maker Read Reads WAIT, Job(|it| it.job_id), Answer(jobs::wait),
        "Waits until a job has ended.";
    JobKill "job_kill" Post "/v1/jobs/kill" => JobKilled,
        Maker Run Changes CONTROL, Job(|it| it.job_id), Answer(jobs::kill),
        "Ends a job, or sends it a signal.";
    JobStdin "job_stdin" Put "/v1/jobs/stdin" => JobStdinTaken,
        Maker Run Changes SHORT, Job(|it| it.job_id), Feeds(jobs::stdin),
        "Writes to the standard input of a job; the body is the input.";
    JobResize "job_resize" Post "/v1/jobs/resize" => WindowItem,
        Maker Run Replaces CONTROL, Job(|it| it.job_id), Answer(jobs::resize),
        "Resizes the terminal of a job.";
    PolicyList "policy_list" Get "/v1/vaults/{vault}/policy" => PolicyListing,
        Agent Read Reads CONTENT, Address, OnVault(policy::list),
        "Lists the rules in force in a vault.";
    PolicyExplain "policy_explain" Post "/v1/vaults/{vault}/policy/explain" => PolicyExplained,
        Agent Read Reads SHORT up to COMMAND_BODY_MAX, Address, OnVault(policy::explain),
        "Shows the decision on a command, and why, without running it.";
    PolicyTest "policy_test" Get "/v1/vaults/{vault}/policy/test" => PolicyTested,
        Agent Read Reads SHORT, Address, OnVault(policy::test),
        "Checks the examples in the rules of a vault.";
    PolicySet "policy_set" Post "/v1/vaults/{vault}/policy" => PolicyChanged,
        Owner Admin Replaces SHORT, Address, OnVault(policy::set),
        "Replaces or removes the rules of a vault.";
    PolicyWrite "policy_write" Post "/v1/policy" => PolicyWritten,
        Owner Admin Replaces SHORT, Home, Answer(policy::write),
        "Replaces the rules of the user or of the system.";
    PolicyValidate "policy_validate" Post "/v1/policy/validate" => PolicyTested,
        Agent Read Reads SHORT, Nothing, Answer(policy::validate),
        "Checks the text of rules, and their examples.";
    ApprovalSetup "approval_setup" Post "/v1/approvals/setup" => ApprovalReady,
        Owner Admin Replaces SHORT, Home, Answer(approvals::setup),
        "Sets the passphrase for approvals.";
    ApprovalList "approval_list" Get "/v1/approvals" => ApprovalListing,
        Agent Read Reads CONTENT, Field(|it| it.vault.as_deref()), Answer(approvals::list),
        "Lists commands that wait for approval.";
    ApprovalShow "approval_show" Get "/v1/approvals/show" => ApprovalDetails,
        Maker Read Reads WALK, Approval(|it| &it.id), Answer(approvals::show),
        "Shows exactly what a request for approval would run, and on which state.";
    ApprovalApprove "approval_approve" Post "/v1/approvals/approve" => ApprovalItem,
        Owner Approve Changes SHORT, Approval(|it| &it.id), Answer(approvals::approve),
        "Approves a command, once.";
    ApprovalDeny "approval_deny" Post "/v1/approvals/deny" => ApprovalItem,
        Owner Approve Changes SHORT, Approval(|it| &it.id), Answer(approvals::deny),
        "Refuses a command.";
    Journal "journal" Get "/v1/journal" => JournalListing,
        Agent Read Reads CONTENT, Field(|it| it.vault.as_deref()), Answer(journal::list),
        "Lists entries of the journal, the newest first.";
    JournalVerify "journal_verify" Get "/v1/journal/verify" => JournalVerified,
        Agent Read Reads WALK, Home, Answer(journal::verify),
        "Checks the hash chain of the journal.";
    Events "events" Get "/v1/events" => EventsPage,
        Agent Read Reads WAIT, Listed, Tells { page: events::page, follow: events::follow },
        "Streams the changes of all vaults as events.";
    Gc "gc" Post "/v1/gc" => Collected,
        Owner Admin Changes WALK, Home, Answer(care::gc),
        "Deletes objects that nothing refers to.";
    Fsck "fsck" Post "/v1/fsck" => FsckFindings,
        Agent Read Reads WALK, Home, Answer(fsck::fsck),
        "Checks every object, the database and the journal.";
    Stats "stats" Get "/v1/stats" => StatsItem,
        Agent Read Reads WALK, Home, Answer(care::stats),
        "Shows how much is stored, and the free disk space.";
    Maintain "maintain" Post "/v1/maintain" => Maintained,
        Owner Admin Changes WALK, Home, Answer(care::maintain),
        "Prunes versions, deletes unreachable objects and compacts the store.";
    Prune "prune" Post "/v1/vaults/{vault}/prune" => PruneFindings,
        Owner Admin Changes WALK, AddressOrHome(|it| it.all), OnVault(care::prune),
        "Deletes old versions.";
    QuotaShow "quota" Get "/v1/vaults/{vault}/quota" => QuotaItem,
        Agent Read Reads SHORT, Address, OnVault(care::quota),
        "Shows the limits on a vault's size, and what it uses.";
    QuotaSet "quota_set" Post "/v1/vaults/{vault}/quota" => QuotaChanged,
        Owner Admin Replaces SHORT, Address, OnVault(care::set_quota),
        "Sets or clears a limit on a vault's size.";
    Commit "commit" Post "/v1/vaults/{vault}/commit" => CommitItem,
        Agent Write Adds WALK, Address, OnVault(mounts::commit),
        "Makes a version of what mounts and running commands have written.";
    Mount "mount" Post "/v1/vaults/{vault}/mount" => MountItem,
        Owner Admin Adds RUN, Address, OnVault(mounts::mount),
        "Mounts a vault at a directory of the host.";
    Unmount "unmount" Post "/v1/unmount" => UnmountListing,
        Owner Admin Changes RUN, Mount(mounts::vaults_of), Answer(mounts::unmount),
        "Unmounts vaults, after committing what was written.";
    Mounts "mounts" Get "/v1/mounts" => MountListing,
        Agent Read Reads SHORT, Listed, Answer(mounts::mounts),
        "Lists the mounts.";
    NetworkShow "network_show" Get "/v1/vaults/{vault}/network" => NetworkState,
        Agent Read Reads CONTENT, Address, OnVault(network::show),
        "Shows which hosts the commands of a vault may reach.";
    NetworkSet "network_set" Post "/v1/vaults/{vault}/network" => NetworkState,
        Agent Write Replaces SHORT, Address, OnVault(network::set),
        "Sets which hosts the commands of a vault may reach; wider than before is for the owner.";
    NetworkAllow "network_allow" Post "/v1/vaults/{vault}/network/allow" => NetworkState,
        Owner Admin Replaces SHORT, Address, OnVault(network::allow),
        "Adds hosts to those that the commands of a vault may reach.";
    NetworkDeny "network_deny" Post "/v1/vaults/{vault}/network/deny" => NetworkState,
        Agent Write Replaces SHORT, Address, OnVault(network::deny),
        "Takes hosts from those that the commands of a vault may reach.";
    NetworkInspect "network_inspect" Post "/v1/vaults/{vault}/network/inspect" => NetworkState,
        Agent Write Replaces SHORT, Address, OnVault(network::inspect),
        "Says which requests the commands of a vault may make of a host; fewer than before is for everybody, all else for the owner.";
    NetworkLog "network_log" Get "/v1/vaults/{vault}/network/log" => NetworkLogged,
        Agent Read Reads CONTENT, Address, OnVault(network::log),
        "Lists what commands of a vault tried to reach, the newest first.";
    NetworkCache "network_cache" Get "/v1/network/cache" => DownloadsItem,
        Owner Admin Reads CONTENT, Home, Answer(network::cache),
        "Says how much of what package registries answered is kept.";
    NetworkCacheClear "network_cache_clear" Post "/v1/network/cache/clear" => DownloadsItem,
        Owner Admin Replaces CONTENT, Home, Answer(network::cache_clear),
        "Removes what package registries answered.";
    PortForward "port_forward" Post "/v1/vaults/{vault}/ports" => PortItem,
        Owner Admin Adds SHORT, Address, OnVault(ports::forward),
        "Opens a port of the host that leads to a command of a vault.";
    PortList "port_list" Get "/v1/ports" => PortListing,
        Agent Read Reads SHORT, Listed, Answer(ports::list),
        "Lists the ports of the host that lead into vaults, and where commands listen.";
    PortRemove "port_remove" Post "/v1/vaults/{vault}/ports/remove" => PortsRemoved,
        Owner Admin Changes SHORT, Address, OnVault(ports::remove),
        "Closes ports of the host that lead into a vault, and cuts their connections.";
    KeyCreate "key_create" Post "/v1/keys" => KeyMade,
        Owner Admin Adds SHORT, Home, Answer(keys::create),
        "Creates an API key; only this answer contains it.";
    KeyList "key_list" Get "/v1/keys" => KeyListing,
        Owner Admin Reads SHORT, Home, Answer(keys::list),
        "Lists the API keys, without their secrets.";
    KeyRevoke "key_revoke" Post "/v1/keys/revoke" => KeyItem,
        Owner Admin Replaces SHORT, Home, Answer(keys::revoke),
        "Revokes an API key and closes its connections.";
    KeyRotate "key_rotate" Post "/v1/keys/rotate" => KeyMade,
        Owner Admin Changes SHORT, Home, Answer(keys::rotate),
        "Replaces the secret of an API key; the old one is refused at once.";
    SecretSet "secret_set" Post "/v1/secrets" => SecretItem,
        Owner Admin Replaces SHORT, Home, Answer(secrets::set),
        "Sets a value that requests of commands get on their way out; no answer contains it.";
    SecretList "secret_list" Get "/v1/secrets" => SecretListing,
        Owner Admin Reads SHORT, Home, Answer(secrets::list),
        "Lists the secrets, without their values.";
    SecretRemove "secret_rm" Post "/v1/secrets/rm" => SecretItem,
        Owner Admin Replaces SHORT, Home, Answer(secrets::remove),
        "Removes a secret.";
    MetricsRead "metrics" Get "/v1/metrics" => (),
        Agent Read Reads CONTENT, Nothing, Sends(metrics::MEDIA_TYPE, metrics::read),
        "Gives counters of the daemon for Prometheus, also at `/metrics`; vaults are named only with `vaults`.";
    Daemon "daemon" Get "/v1/daemon" => DaemonState,
        Agent Read Reads CONTROL, Nothing, Answer(daemon::state),
        "Shows what the daemon is doing.";
    DaemonStop "daemon_stop" Post "/v1/daemon/stop" => DaemonStopping,
        Owner Admin Outside CONTROL, Home, Answer(daemon::stop),
        "Stops the daemon.";
}
