//! What can go wrong in a use case: of which kind each error is (`kinds.rs`), and what to do next (`hints.rs`).

mod approvals;
mod disk;
mod hints;
mod jobs;
mod kinds;
mod network;
mod secrets;

use std::path::PathBuf;

use avfs_vault::{ExecId, Principal, RootId, VaultPath};

use self::disk::{NO_ROOM, io_kind};
use self::hints::{MOVED_ON, sandbox_hint, store_hint, transfer_hint, vault_hint};
use self::jobs::named;
pub use self::kinds::ErrorKind;
use self::kinds::{store_kind, transfer_kind, vault_kind};
use self::network::network_kind;
pub use self::secrets::SecretError;
use crate::common::{JobId, Stream};

/// A use case that did not happen, and why.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Vault(#[from] avfs_vault::Error),
    #[error(transparent)]
    Store(#[from] avfs_store::Error),
    #[error(transparent)]
    View(#[from] avfs_view::Error),
    #[error(transparent)]
    Sandbox(#[from] avfs_sandbox::Error),
    #[error(transparent)]
    Host(#[from] avfs_policy::HostError),
    #[error(transparent)]
    Network(#[from] avfs_net::Error),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Transfer(avfs_transfer::Error),
    #[error("what was last written in vault {vault} is kept but not committed: {source}")]
    Uncommitted { vault: String, source: Box<Error> },
    #[error("no vault is selected")]
    NoCurrentVault,
    #[error("{path} is lent by the host, read-only")]
    LentPath { path: VaultPath },
    #[error("{path} cannot be lent: {reason}")]
    NotLent { path: String, reason: String },
    #[error("{path} belongs to the sandbox and is not part of the vault")]
    SandboxPath { path: VaultPath },
    #[error("{path} already exists")]
    PathExists { path: VaultPath },
    #[error("directory {path} is not empty")]
    NotEmpty { path: VaultPath },
    #[error("cannot put {from} into itself ({to})")]
    IntoItself { from: VaultPath, to: VaultPath },
    #[error("{path} is a directory, and only a file was asked for")]
    NeedsRecursive { path: VaultPath },
    #[error("{path} is scratch space, which has no history and is not part of the vault")]
    Scratch { path: VaultPath },
    #[error("{path}: the text to replace is not in it")]
    TextNotFound { path: VaultPath },
    #[error("{path}: the text to replace is in it {matches} times, on lines {lines:?}")]
    TextAmbiguous {
        path: VaultPath,
        matches: usize,
        lines: Vec<usize>,
    },
    #[error("{path} has no {what} {name:?}")]
    LabelNotFound {
        path: VaultPath,
        what: &'static str,
        name: String,
    },
    #[error("no path has the tag {name:?}")]
    TagNotFound { name: String },
    #[error("{path} has {size} bytes, and this works up to {limit}")]
    TooLarge {
        path: VaultPath,
        size: u64,
        limit: u64,
    },
    #[error("nothing was restored in vault {vault}, so there is nothing to undo")]
    NothingToUndo { vault: String },
    #[error("{path} is not in version {number}")]
    NotInVersion { path: VaultPath, number: u64 },
    #[error("{path} was never different from what it is: there is no state before version {since}")]
    NoEarlierState { path: VaultPath, since: u64 },
    #[error("{running} command(s) are running in vault {vault}{}", named(jobs))]
    Busy {
        vault: String,
        running: usize,
        /// Those of them that are jobs.
        jobs: Vec<JobId>,
    },
    #[error("a command runs alone in vault {vault}, on the state that it was approved for")]
    RunsAlone { vault: String },
    #[error("vault {vault} changed while the command was tried")]
    MovedWhileTried { vault: String },
    #[error("{most} jobs run already, and no more may at once")]
    TooManyJobs { most: usize },
    #[error("there is no job {id}")]
    JobNotFound { id: JobId },
    #[error("job {id} is over")]
    JobOver { id: JobId },
    #[error("job {id} takes no input")]
    NoInput { id: JobId },
    #[error("job {id} has no terminal")]
    NoTerminal { id: JobId },
    #[error("internal error in job {id}")]
    JobFailed { id: JobId },
    #[error("vault {vault} is mounted at {dir}", dir = dir.display())]
    Mounted { vault: String, dir: PathBuf },
    #[error(
        "commands cannot run in vault {vault} beside its mount at {dir}, which overlayfs serves: it gives one user's files to no other",
        dir = dir.display()
    )]
    MountedBesideCommands { vault: String, dir: PathBuf },
    #[error(
        "a command that was approved has its vault to itself, and vault {vault} is mounted at {dir}",
        dir = dir.display()
    )]
    MountedNotAlone { vault: String, dir: PathBuf },
    #[error("vault {vault} is already mounted at {dir}", dir = dir.display())]
    AlreadyMounted { vault: String, dir: PathBuf },
    #[error("something is already mounted at {dir}", dir = dir.display())]
    DirTaken { dir: PathBuf },
    #[error("{what} is not mounted")]
    NotMounted { what: String },
    #[error("no port of the host leads to {guest} of vault {vault}")]
    NoForward { vault: String, guest: String },
    #[error("{most} ports of the host are forwarded already, and no more may be at once")]
    TooManyForwards { most: usize },
    #[error("programs still use {dir}", dir = dir.display())]
    MountInUse { dir: PathBuf },
    #[error("the daemon lives in another mount namespace: what it mounts would not be seen here")]
    OtherNamespace,
    #[error("a running command keeps changing the same files of vault {vault}")]
    Overtaken { vault: String },
    #[error("{path} was not written: {reason}")]
    ConditionFailed {
        path: VaultPath,
        reason: &'static str,
    },
    #[error("{running} command(s) are running in vault {vault} with another network or driver")]
    OtherShape { vault: String, running: usize },
    #[error("{what} is for the owner to allow")]
    OwnerOnly { what: &'static str },
    #[error("{file} changed while its new rules were being written")]
    RulesChanged { file: String },
    #[error("{what} is for the owner, and for who made it: {maker}")]
    NotMaker { what: String, maker: Principal },
    #[error("no {} of {exec} is kept", stream.name())]
    NoOutput { exec: ExecId, stream: Stream },
    #[error("the changes of command {exec} are not known: {why}")]
    ChangesUnknown { exec: ExecId, why: &'static str },
    #[error("you may not approve this: {why}")]
    NotApprover {
        why: &'static str,
        hint: &'static str,
    },
    #[error("nobody can approve it: {why}")]
    CannotBind { why: String },
    #[error("the head of vault {vault} moved from {expected} while this was being done")]
    HeadMoved { vault: String, expected: RootId },
    #[error("invalid {what}: {reason}")]
    Invalid { what: &'static str, reason: String },
    #[error("{home} is in use by another daemon")]
    HomeInUse { home: String },
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<avfs_transfer::Error> for Error {
    /// What the vault refused is the vault's error, whoever asked it.
    fn from(error: avfs_transfer::Error) -> Error {
        match error {
            avfs_transfer::Error::Vault(error) => Error::Vault(error),
            error => Error::Transfer(error),
        }
    }
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }

    /// Which of the kinds this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vault(error) => vault_kind(error),
            Error::Store(error) => store_kind(error),
            Error::View(avfs_view::Error::Vault(error)) => vault_kind(error),
            Error::View(avfs_view::Error::TooMuch { .. }) => ErrorKind::Quota,
            Error::View(_) if self.is_full() => ErrorKind::Quota,
            Error::View(_) => ErrorKind::Unavailable,
            Error::Sandbox(avfs_sandbox::Error::Invalid { .. }) => ErrorKind::Invalid,
            Error::Sandbox(_) => ErrorKind::Unavailable,
            Error::Transfer(error) => transfer_kind(error),
            Error::Uncommitted { source, .. } => source.kind(),
            Error::NoCurrentVault => ErrorKind::NotFound,
            Error::LentPath { .. } | Error::SandboxPath { .. } | Error::NotLent { .. } => {
                ErrorKind::Denied
            }
            Error::PathExists { .. } | Error::AlreadyMounted { .. } | Error::DirTaken { .. } => {
                ErrorKind::AlreadyExists
            }
            Error::NotMounted { .. } | Error::NoForward { .. } => ErrorKind::NotFound,
            Error::OtherNamespace => ErrorKind::Unavailable,
            Error::NotEmpty { .. }
            | Error::IntoItself { .. }
            | Error::NeedsRecursive { .. }
            | Error::Scratch { .. }
            | Error::TextNotFound { .. }
            | Error::TextAmbiguous { .. }
            | Error::TooLarge { .. } => ErrorKind::Invalid,
            Error::NothingToUndo { .. }
            | Error::TagNotFound { .. }
            | Error::NotInVersion { .. }
            | Error::NoEarlierState { .. }
            | Error::LabelNotFound { .. } => ErrorKind::NotFound,
            Error::Busy { .. }
            | Error::RunsAlone { .. }
            | Error::MovedWhileTried { .. }
            | Error::Mounted { .. }
            | Error::MountedBesideCommands { .. }
            | Error::MountedNotAlone { .. }
            | Error::MountInUse { .. }
            | Error::Overtaken { .. }
            | Error::ConditionFailed { .. }
            | Error::HeadMoved { .. }
            | Error::RulesChanged { .. }
            | Error::OtherShape { .. }
            | Error::HomeInUse { .. } => ErrorKind::Conflict,
            Error::OwnerOnly { .. } | Error::NotMaker { .. } | Error::NotApprover { .. } => {
                ErrorKind::Denied
            }
            Error::CannotBind { .. } => ErrorKind::NeedsApproval,
            Error::NoOutput { .. } | Error::ChangesUnknown { .. } => ErrorKind::NotFound,
            Error::JobNotFound { .. } => ErrorKind::NotFound,
            Error::JobOver { .. } => ErrorKind::Conflict,
            Error::NoInput { .. } | Error::NoTerminal { .. } => ErrorKind::Invalid,
            Error::TooManyJobs { .. } | Error::TooManyForwards { .. } => ErrorKind::Quota,
            Error::JobFailed { .. } => ErrorKind::Bug,
            Error::Secret(error) => error.kind(),
            Error::Network(error) => network_kind(error),
            Error::Invalid { .. } | Error::Host(_) => ErrorKind::Invalid,
            Error::Io { source, .. } => io_kind(source),
        }
    }

    /// The one thing to do next, where there is one.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            error if error.is_full() => NO_ROOM.into(),
            Error::Uncommitted { source, .. } if source.kind() == ErrorKind::Quota => {
                "remove something with `avfs exec -- rm …`, or in its mount, or raise the limit \
                 with `avfs quota set`; then it is committed"
                    .into()
            }
            Error::Uncommitted { source, .. } => return source.hint(),
            Error::Vault(error) => return vault_hint(error),
            Error::View(avfs_view::Error::Stopped) => {
                "`avfs commit` takes it in; so does the next use of the vault".into()
            }
            Error::HeadMoved { .. } => MOVED_ON.into(),
            Error::Invalid { what: "policy", .. } => {
                "mend the rules with `avfs policy edit`; docs/policy.md explains every key".into()
            }
            Error::NoCurrentVault => {
                "run `avfs vault create NAME`, or `avfs vault use NAME`, or pass --vault".into()
            }
            Error::LentPath { .. } | Error::SandboxPath { .. } => {
                "write to /workspace, /home/agent, /tmp or a directory of your own".into()
            }
            Error::NotLent { .. } => {
                "the owner can lend it again with `avfs vault set lend=DIR`, or end it with `avfs vault unset lend`".into()
            }
            Error::NotEmpty { path } => format!("`avfs rm -r {path}` removes it with its content"),
            Error::NeedsRecursive { path } => {
                format!("pass -r to copy {path} with all that is in it")
            }
            Error::Scratch { .. } => {
                "run the command itself there, as in `avfs exec -- cp -r /tmp/a /workspace`".into()
            }
            Error::TextNotFound { path } => {
                format!("`avfs cat {path}` shows it; spaces and line ends count")
            }
            Error::LabelNotFound { path, .. } => {
                format!("`avfs tag --list {path}` and `avfs meta {path}` show what it has")
            }
            Error::TagNotFound { .. } => "run `avfs tag --list-all` to see the tags".into(),
            Error::TextAmbiguous { .. } => {
                "give more of the text around it, or pass --all to replace every one".into()
            }
            Error::NothingToUndo { .. } => {
                "`avfs checkpoint list` shows what there is to restore".into()
            }
            Error::NotInVersion { path, .. } => {
                format!("`avfs log {path}` lists the versions that changed it")
            }
            Error::NoEarlierState { path, .. } => {
                format!("`avfs log {path}` lists its versions; `avfs rm {path}` removes it")
            }
            Error::Busy { jobs, .. } if jobs.is_empty() => {
                "wait until they end, or work in a fork; `checkpoint restore` and `vault delete` \
                 end them with --force"
                    .into()
            }
            Error::Overtaken { .. } => "try again, or wait until it ends".into(),
            Error::OtherShape { .. } => "wait until they end, or run it with --fork".into(),
            Error::Sandbox(error) => return sandbox_hint(error),
            Error::Transfer(error) => return transfer_hint(error),
            _ => {
                let of_job = self.job_hint().or_else(|| self.place_hint());
                let other = of_job.or_else(|| self.approval_hint());
                return other.or_else(|| self.class_hint());
            }
        })
    }

    fn place_hint(&self) -> Option<String> {
        Some(match self {
            Error::ConditionFailed { .. } => "read it again, and decide anew".into(),
            Error::Mounted { dir, .. }
            | Error::AlreadyMounted { dir, .. }
            | Error::MountedNotAlone { dir, .. } => {
                format!("`avfs unmount {}` takes it away", dir.display())
            }
            Error::MountedBesideCommands { dir, .. } => format!(
                "run `avfs unmount {dir}`, and `avfs mount --driver fuse {dir}`; or `avfs exec --fork --keep-on-success -- …`, which works in a fork",
                dir = dir.display()
            ),
            Error::DirTaken { dir } => {
                let dir = dir.display();
                format!("choose another directory, or run `avfs unmount {dir}`")
            }
            Error::NotMounted { .. } => "`avfs mounts` lists what is mounted".into(),
            Error::MountInUse { dir } => format!(
                "close them (`fuser -vm {}` shows which), or pass --force",
                dir.display()
            ),
            Error::OtherNamespace => {
                "run `avfs daemon stop` where it lives; the next command starts one here".into()
            }
            Error::Secret(error) => return error.hint(),
            Error::Invalid {
                what: "pattern", ..
            } => "for example v, team-* or try-??".into(),
            Error::Store(error) => return store_hint(error),
            _ => return self.port_hint(),
        })
    }
}
