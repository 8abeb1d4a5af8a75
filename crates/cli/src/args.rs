//! The arguments of the command line.

mod approval;
mod care;
mod completers;
mod examples;
mod exec;
mod git;
mod groups;
mod jobs;
mod keys;
mod labels;
mod mcp;
mod mounts;
mod network;
mod paths;
mod policy;
mod ports;
mod search;
mod secrets;
mod serve;
mod service;
mod time;
mod transfer;
mod vaults;
mod versions;

use clap::{Args, Command, CommandFactory, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;

pub use approval::ApprovalVerb;
pub use care::{
    AuditArgs, AuditFilter, AuditVerb, FsckArgs, GcArgs, MaintainArgs, PruneArgs, QuotaArgs,
    QuotaVerb,
};
pub use exec::{
    ChangesArgs, DriverName, ExecArgs, NetworkChoice, NetworkKind, OutputArgs, ProfileName,
    RunArgs, StreamName,
};
pub use git::{
    GitBranchArgs, GitCloneArgs, GitCommitArgs, GitDiffArgs, GitLogArgs, GitVerb, RepositoryArgs,
};
pub use jobs::{
    AttachArgs, JobKillArgs, JobListArgs, JobLogsArgs, JobPollArgs, JobStartArgs, JobStdinArgs,
    JobVerb, JobWaitArgs, LifetimeName,
};
pub use keys::KeyVerb;
pub use labels::{MetaArgs, TagArgs, UntagArgs};
pub use mcp::McpArgs;
pub use mounts::{DoctorArgs, MountArgs, MountDriverName, UnmountArgs};
pub use network::{CacheVerb, HostsArgs, NetworkLogArgs, NetworkVerb};
pub use paths::{CatArgs, ChmodArgs, CpArgs, EditArgs, LnArgs, TouchArgs, TreeArgs, WriteArgs};
pub use policy::{LevelName, PolicyVerb, QuestionArgs};
pub use ports::{PortForwardArgs, PortRemoveArgs, PortVerb};
pub use search::{FindArgs, GrepArgs, SearchArgs};
pub use secrets::{SecretSetArgs, SecretVerb};
pub use serve::{ServeArgs, SharedServeArgs};
pub use service::{ServiceInstallArgs, ServiceVerb};
pub use time::Time;
pub use transfer::{ExportArgs, ImportArgs, TransferVerb};
pub use vaults::{CheckpointVerb, VaultVerb};
pub use versions::{CheckoutArgs, DiffArgs, LogArgs, RevertArgs};

/// Workspaces for agents: fork one in milliseconds, run commands in a sandbox, see exactly what
/// changed, and go back.
#[derive(Debug, Parser)]
#[command(name = "avfs", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The command line for completions, which know what a home holds.
pub fn completing() -> Command {
    completers::with_completers(Cli::command())
}

/// The whole command line, with examples for every verb.
pub fn command() -> Command {
    groups::with_groups(examples::with_examples(Cli::command()))
}

const EXAMPLES: &str = "\
Examples:
  avfs demo                                       a demonstration of one minute
  avfs vault create myproject                     create a vault; the first one becomes current
  avfs import . && avfs proxy exec -- make test   copy a project in, and run its tests
  avfs vault fork myproject try-1 --use           work on a copy-on-write copy
  avfs proxy exec --shell 'sed -i s/a/b/ *.txt'   change files; the report lists them
  avfs diff --patch                               what changed since the fork was made
  avfs checkpoint restore NAME                    go back to a checkpoint

Exit codes: 0 ok, 1 error, 2 wrong usage. `proxy exec` exits with the command's exit code, or 128+N
if signal N ended it, 124 after a timeout, 125 if avfs failed, 126 if the command was denied or needs
approval, 127 if it was not found.";

#[derive(Debug, Args)]
pub struct Global {
    /// The vault to work on, instead of the current one
    #[arg(long, global = true, value_name = "VAULT", env = "AVFS_VAULT")]
    pub vault: Option<String>,
    /// Print JSON on standard output, errors included
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create, list, fork and delete vaults
    #[command(subcommand)]
    Vault(VaultVerb),
    /// Print the directory that relative paths start from: always /
    Pwd,
    /// List a directory of the vault
    Ls(LsArgs),
    /// Print a file of the vault
    Cat(CatArgs),
    /// Write a file of the vault
    Write(WriteArgs),
    /// Create a directory in the vault
    Mkdir(MkdirArgs),
    /// Remove a file or directory of the vault
    Rm(RmArgs),
    /// Move or rename a file or directory in the vault
    Mv(MvArgs),
    /// Copy a file or directory in the vault
    Cp(CpArgs),
    /// Make a hard or symbolic link
    Ln(LnArgs),
    /// Change permissions in the vault
    Chmod(ChmodArgs),
    /// Set a file's times to now; create the file if it does not exist
    Touch(TouchArgs),
    /// Replace one exact text in a file of the vault
    Edit(EditArgs),
    /// Show type, size, mode, times and labels of a path
    Stat(PathArg),
    /// Show a directory and everything below it
    Tree(TreeArgs),
    /// Copy a host directory, a file, an archive or a git revision into the vault
    Import(ImportArgs),
    /// Copy a directory or file of the vault to the host, or only what changed
    Export(ExportArgs),
    /// Import from and export to the one host directory that agents may use
    #[command(subcommand)]
    Transfer(TransferVerb),
    /// Save, list and restore named states of the vault
    #[command(subcommand, alias = "snapshot")]
    Checkpoint(CheckpointVerb),
    /// Find lines that match a pattern
    Grep(GrepArgs),
    /// Find paths by name, kind, size, age or label
    Find(FindArgs),
    /// Find files by the words in them, best match first
    Search(SearchArgs),
    /// Add a tag to a path, or list tags
    Tag(TagArgs),
    /// Remove a tag from a path
    Untag(UntagArgs),
    /// Read and set key-value metadata of a path
    Meta(MetaArgs),
    /// List the versions of the vault, or of one path
    Log(LogArgs),
    /// Restore a path from an older version
    Checkout(CheckoutArgs),
    /// Undo the last change of a path
    Revert(RevertArgs),
    /// Show the differences between two states
    Diff(DiffArgs),
    /// Mount the vault at a directory of the host
    Mount(MountArgs),
    /// Unmount a vault; uncommitted writes become a version
    #[command(visible_alias = "umount")]
    Unmount(UnmountArgs),
    /// List the mounts
    Mounts,
    /// Make a version of what running commands and mounts have written
    Commit,
    /// Run commands in the vault's sandbox
    #[command(subcommand)]
    Proxy(ProxyVerb),
    /// Run a command in the vault's sandbox and report what it changed; short for `proxy exec`
    Exec(ExecArgs),
    /// Work with git repositories in the vault, by the vault's own git
    #[command(subcommand)]
    Git(GitVerb),
    /// Show and change which hosts commands may reach
    #[command(subcommand)]
    Network(NetworkVerb),
    /// Reach servers in vaults through ports of the host
    #[command(subcommand)]
    Port(PortVerb),
    /// Run commands in the background
    #[command(subcommand)]
    Job(JobVerb),
    /// Connect your terminal to a job's terminal
    Attach(AttachArgs),
    /// Print output of a command that did not fit into its report
    Output(OutputArgs),
    /// List all that a command changed
    Changes(ChangesArgs),
    /// List, test and change the rules for commands
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// List and answer commands that need approval
    #[command(subcommand)]
    Approval(ApprovalVerb),
    /// Read and verify the journal
    Audit(AuditArgs),
    /// Show how much is stored, and the free disk space
    Stats,
    /// Show or set the size limits of a vault
    Quota(QuotaArgs),
    /// Delete unreachable objects
    Gc(GcArgs),
    /// Delete old versions and old automatic checkpoints
    Prune(PruneArgs),
    /// Run prune, gc and compact
    Maintain(MaintainArgs),
    /// Shrink packs and the database after a gc
    Compact,
    /// Check all stored data; repair it from other copies
    Fsck(FsckArgs),
    /// Show or stop the daemon, which starts on demand
    #[command(subcommand)]
    Daemon(DaemonVerb),
    /// Run the daemon in the foreground
    Serve(ServeArgs),
    /// Run the daemon as a systemd service of this user
    #[command(subcommand)]
    Service(ServiceVerb),
    /// Create, list and revoke API keys for the network
    #[command(subcommand)]
    Key(KeyVerb),
    /// Set, list and remove secrets, which requests of commands get on their way out
    #[command(subcommand)]
    Secret(SecretVerb),
    /// Run an MCP server on standard input and output
    Mcp(McpArgs),
    /// Check what this host supports, and how to fix what is missing
    Doctor(DoctorArgs),
    /// Run a demonstration: a failing test, two forks, two fixes, a restore
    Demo,
    /// Work in the vault at a prompt: the verbs of files and history, cd, and !COMMAND
    Shell,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: ShellName,
    },
    /// Write the manual pages to a directory
    Man {
        /// A directory of the host, such as ~/.local/share/man/man1
        dir: PathBuf,
    },
    /// Print shell aliases for the file verbs
    Aliases(AliasesArgs),
}

#[derive(Debug, Args)]
pub struct AliasesArgs {
    /// Which shell
    #[arg(long, short, value_enum, default_value = "bash")]
    pub shell: ShellName,
    /// Prefix of every alias
    #[arg(long, short, default_value = "v", value_parser = alias_prefix)]
    pub prefix: String,
}

/// A valid beginning of a shell alias, without characters that the shell would interpret.
fn alias_prefix(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(fits)
    {
        true => Ok(text.to_owned()),
        false => Err("a letter, then letters, digits, - and _ (without one, an alias would hide the shell's own ls)".into()),
    }
}

#[derive(Debug, Args)]
pub struct PathArg {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
}

#[derive(Debug, Args)]
pub struct LsArgs {
    /// A path of the vault; relative paths start at /
    #[arg(default_value = "/")]
    pub path: OsString,
    /// Show mode, size and time
    #[arg(short, long)]
    pub long: bool,
    /// Show names that begin with a dot
    #[arg(short, long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct MkdirArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// Create missing parents, and accept an existing directory
    #[arg(short, long)]
    pub parents: bool,
}

#[derive(Debug, Args)]
pub struct RmArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// Remove a directory and everything in it
    #[arg(short, long)]
    pub recursive: bool,
    /// Do not fail if the path does not exist
    #[arg(short, long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct MvArgs {
    /// What to move
    pub source: OsString,
    /// The new path; an existing directory gets it as an entry
    pub destination: OsString,
}

#[derive(Debug, Subcommand)]
pub enum ProxyVerb {
    /// Run a command in the vault's sandbox and report what it changed
    Exec(ExecArgs),
}

#[derive(Debug, Subcommand)]
pub enum DaemonVerb {
    /// Show whether the daemon runs, and what it is doing
    Status,
    /// Start the daemon if it does not run, and show what it is doing
    Start,
    /// Stop the daemon and every command it runs
    Stop {
        /// Even if detached jobs are running
        #[arg(long)]
        force: bool,
    },
    /// Print the daemon's log
    Logs {
        /// How many lines from the end
        #[arg(short = 'n', long, default_value_t = 100)]
        lines: usize,
        /// Keep printing new lines
        #[arg(short, long, conflicts_with = "json")]
        follow: bool,
    },
}

#[derive(Copy, Clone, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ShellName {
    Bash,
    Zsh,
    Fish,
}

/// A version's number, as `3`, `v3` or `@3`.
fn version(text: &str) -> Result<u64, String> {
    text.strip_prefix(['v', '@'])
        .unwrap_or(text)
        .parse()
        .map_err(|_| "a version is a number, as `avfs log` shows it".into())
}

#[cfg(test)]
mod tests;
