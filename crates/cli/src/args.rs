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
    DriverName, ExecArgs, NetworkChoice, NetworkKind, OutputArgs, ProfileName, RunArgs, StreamName,
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
pub use network::{HostsArgs, NetworkLogArgs, NetworkVerb};
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
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_command_may_have_options_of_its_own() {
        let cli = Cli::parse_from(["avfs", "proxy", "exec", "--cwd", "/a", "--", "ls", "--json"]);
        assert!(!cli.global.json);
        let Verb::Proxy(ProxyVerb::Exec(exec)) = cli.verb else {
            panic!("another verb")
        };
        assert_eq!(exec.run.command, ["ls", "--json"]);
        assert_eq!(exec.run.timeout, None);
    }

    /// `requires` is void where what is required conflicts with something that is given: each of these once ran, and an
    /// option in it did nothing.
    #[test]
    fn no_option_is_taken_and_ignored() {
        for words in [
            "exec --size 80x24 --stdin -- cat",
            "exec --size 80x24 --stdin-file f -- cat",
            "exec --size 80x24 --stream -- true",
            "exec --record f --stdin -- cat",
            "exec --record f --stdin-file f -- cat",
            "exec --record f --stream -- true",
            "job start --size 80x24 --stdin -- cat",
            "export / --tar f --overwrite",
            "export --changed-only d --overwrite",
            "tag --list --delete t",
            "tag --list --rename t:u",
        ] {
            let parsed = Cli::try_parse_from(std::iter::once("avfs").chain(words.split(' ')));
            assert!(parsed.is_err(), "{words}");
        }
    }

    #[test]
    fn a_command_is_required() {
        assert!(Cli::try_parse_from(["avfs", "exec"]).is_err());
        assert!(Cli::try_parse_from(["avfs", "exec", "--shell", "a", "--", "b"]).is_err());
        assert!(Cli::try_parse_from(["avfs", "exec", "--shell", "a"]).is_ok());
    }

    /// For each operation of the API, a command line that uses it.
    const WORDS: &[(&str, &str)] = &[
        ("vault_create", "vault create v"),
        ("vault_list", "vault list"),
        ("vault_info", "vault info v"),
        ("vault_use", "vault use v"),
        ("vault_rename", "vault rename v w"),
        ("vault_fork", "vault fork v w --checkpoint c --use"),
        ("vault_delete", "vault delete v -y --force"),
        ("vault_list_deleted", "vault list --deleted"),
        ("vault_undelete", "vault undelete v"),
        ("vault_set", "vault set env.A=b memory=1g"),
        ("vault_unset", "vault unset env.A memory"),
        ("defaults", "vault defaults"),
        ("defaults_set", "vault set --default memory=1g max_files=9"),
        ("vault_log", "vault log v -n 5"),
        ("log", "log /f -n 3"),
        ("checkout", "checkout /f --version v3"),
        ("revert", "revert /f"),
        ("ls", "ls -l -a /d"),
        ("cat", "cat /f --offset 1 --limit 2 -v 3"),
        ("write", "write /f --from-file x -a -p -m 600"),
        ("read_content", "cat /f --offset 1"),
        ("write_content", "write /f --from-file x"),
        ("mkdir", "mkdir -p /d"),
        ("rm", "rm -r -f /d"),
        ("mv", "mv /a /b"),
        ("stat", "stat /f"),
        ("tree", "tree -L 2 /d"),
        ("cp", "cp -r /a /b"),
        ("ln", "ln -s a /b"),
        ("chmod", "chmod -R -x /d"),
        ("touch", "touch -c /f"),
        ("edit", "edit /f --old a --new b --all"),
        ("grep", "grep -i -n -v -A 1 -B 2 -C 3 --glob *.rs x /d"),
        (
            "find",
            "find /d --name * --type f,d --size +1k --size -2M --mtime -1 -d 3",
        ),
        ("search", "search two words --limit 3"),
        ("tag", "tag /f t"),
        ("untag", "untag /f t"),
        ("tag_list", "tag /f --list"),
        ("tag_list_all", "tag --list-all"),
        ("tag_delete", "tag --delete t"),
        ("tag_rename", "tag --rename t:u"),
        ("meta_list", "meta /f --export"),
        ("meta_get", "meta /f k"),
        ("meta_set", "meta /f k v"),
        ("meta_delete", "meta /f k --delete"),
        ("meta_import", "meta /f --import {}"),
        ("import", "import . /workspace --exclude *.o --gitignore"),
        ("export", "export /workspace out"),
        ("export_archive", "export /workspace --tar out.tar"),
        ("export_changes", "export --changed-only . --dry-run"),
        ("archive_write", "import - /workspace"),
        ("archive_read", "export /workspace --tar -"),
        ("transfer_in", "transfer in data.tar /data --gitignore"),
        ("transfer_out", "transfer out /workspace report-1"),
        ("transfer", "transfer show"),
        ("transfer_set", "transfer set d"),
        ("checkpoint_save", "checkpoint save c"),
        ("checkpoint_list", "snapshot list"),
        ("checkpoint_info", "checkpoint info c"),
        ("checkpoint_restore", "checkpoint restore --undo --force"),
        ("checkpoint_delete", "checkpoint delete c"),
        ("diff", "diff BASE HEAD /f --stat --patch"),
        ("exec", "exec -- true"),
        ("exec_input", "exec --stdin -- cat"),
        (
            "output",
            "output 01a1de36-3b62-77b2-8258-ad8380643645 --range 0-9",
        ),
        ("git_status", "git status -C /repo"),
        (
            "git_diff",
            "git diff --staged --stat --file a --commit HEAD --max-bytes 9",
        ),
        (
            "git_commit",
            "git commit -a -m x --author-name a --author-email b",
        ),
        ("git_branch", "git branch --create x --from y --switch x"),
        ("git_log", "git log --from x -n 3"),
        ("git_clone", "git clone /a /b --branch x --depth 1"),
        (
            "job_start",
            "job start --lifetime client --lease 5s -- make",
        ),
        ("job_list", "job list --running"),
        ("job_poll", "job poll 1 --offset 5 --stderr-offset 6"),
        ("job_logs", "job logs -f 1 --stream stderr"),
        ("job_wait", "job wait 1 --timeout 5s"),
        ("job_kill", "job kill 1 --signal INT"),
        ("job_stdin", "job stdin 1 text --eof"),
        ("job_resize", "attach 1 --detach-key ctrl-a"),
        ("policy_list", "policy list"),
        ("policy_explain", "policy explain -- git push"),
        ("policy_test", "policy test"),
        ("policy_set", "policy edit --from x"),
        ("policy_write", "policy edit --level user --from x"),
        ("policy_validate", "policy edit --level user"),
        ("approval_setup", "approval setup"),
        ("approval_list", "approval list --all"),
        ("approval_show", "approval show x"),
        ("approval_approve", "approval approve x --expires 5m"),
        ("approval_deny", "approval deny x"),
        ("journal", "audit --limit 5"),
        ("journal_verify", "audit verify"),
        ("events", "audit --follow --after 7"),
        ("gc", "gc --dry-run"),
        ("fsck", "fsck"),
        ("stats", "stats"),
        ("maintain", "maintain"),
        ("prune", "prune --keep 5 --dry-run"),
        ("quota", "quota"),
        ("quota_set", "quota set max_files 10"),
        ("commit", "commit"),
        ("mount", "mount d --readonly --at v3 --foreground"),
        ("unmount", "unmount d --force"),
        ("mounts", "mounts"),
        ("network_show", "network show"),
        ("network_set", "network set example.com,*.example.org:8443"),
        ("network_allow", "network allow example.com"),
        ("network_deny", "network deny example.com"),
        ("network_log", "network log --denied"),
        ("port_forward", "port forward v 3000 8080 --listen ::1"),
        ("port_list", "port list"),
        ("port_remove", "port remove v 3000"),
        (
            "key_create",
            "key create ci --scope read,exec --vault team-* --expires 30d",
        ),
        ("key_list", "key list"),
        ("key_revoke", "key revoke ci"),
        ("key_rotate", "key rotate ci --expires 30d"),
        (
            "secret_set",
            "secret set TOKEN --host example.com --basic git --vault team-* --file f",
        ),
        ("secret_list", "secret list"),
        ("secret_rm", "secret rm TOKEN"),
        ("daemon", "daemon status"),
        ("daemon_stop", "daemon stop"),
    ];

    #[test]
    fn every_operation_can_be_asked_for() {
        // Ctrl-C cancels, and SIGWINCH resizes: neither has a verb.
        let wordless = ["exec_cancel", "exec_resize", "metrics"];
        let listed = avfs_api::table::OPERATIONS.iter().map(|row| row.name);
        let listed: Vec<&str> = listed.filter(|name| !wordless.contains(name)).collect();
        let spoken: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
        assert_eq!(spoken, listed);
        for (_, words) in WORDS {
            let words = std::iter::once("avfs").chain(words.split(' '));
            Cli::try_parse_from(words).unwrap();
        }
    }
}
