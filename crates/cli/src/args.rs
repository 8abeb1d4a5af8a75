//! The words of the command line, just as typed.

mod approval;
mod care;
mod examples;
mod exec;
mod jobs;
mod labels;
mod mounts;
mod paths;
mod policy;
mod search;
mod transfer;
mod vaults;
mod versions;

use clap::{Args, Command, CommandFactory, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use std::ffi::OsString;

pub use approval::ApprovalVerb;
pub use care::{
    AuditArgs, AuditFilter, AuditVerb, FsckArgs, GcArgs, MaintainArgs, PruneArgs, QuotaArgs,
    QuotaVerb,
};
pub use exec::{DriverName, ExecArgs, NetworkName, OutputArgs, ProfileName, RunArgs, StreamName};
pub use jobs::{
    AttachArgs, JobKillArgs, JobListArgs, JobLogsArgs, JobPollArgs, JobStartArgs, JobStdinArgs,
    JobVerb, JobWaitArgs, LifetimeName,
};
pub use labels::{MetaArgs, TagArgs, UntagArgs};
pub use mounts::{DoctorArgs, MountArgs, MountDriverName, UnmountArgs};
pub use paths::{CatArgs, ChmodArgs, CpArgs, EditArgs, LnArgs, TouchArgs, TreeArgs, WriteArgs};
pub use policy::{LevelName, PolicyVerb, QuestionArgs};
pub use search::{FindArgs, GrepArgs, SearchArgs};
pub use transfer::{ExportArgs, ImportArgs, TransferVerb};
pub use vaults::{CheckpointVerb, VaultVerb};
pub use versions::{CheckoutArgs, DiffArgs, LogArgs, RevertArgs};

/// Workspaces for agents: fork one in a moment, run commands in it behind a sandbox, see exactly
/// what changed, and go back.
#[derive(Debug, Parser)]
#[command(name = "avfs", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The whole command line, with examples for every verb.
pub fn command() -> Command {
    examples::with_examples(Cli::command())
}

const EXAMPLES: &str = "\
Examples:
  avfs demo                                       see it at work, in a minute
  avfs vault create myproject                     make a vault; the first becomes current
  avfs import . && avfs proxy exec -- make test   bring a project in, and run its tests
  avfs vault fork myproject try-1 --use           work on a copy, made in a moment
  avfs proxy exec --shell 'sed -i s/a/b/ *.txt'   change it; the answer says what changed
  avfs diff --patch                               what differs from the fork's beginning
  avfs checkpoint restore NAME                    go back

Exit codes: 0 ok, 1 error, 2 wrong usage. `proxy exec` exits as the command did, with 128+N on a
signal, 124 on a timeout, 125 when avfs itself failed, 126 when the command was denied, 127 when it
was not found.";

#[derive(Debug, Args)]
pub struct Global {
    /// The vault to work on, instead of the current one
    #[arg(long, global = true, value_name = "VAULT", env = "AVFS_VAULT")]
    pub vault: Option<String>,
    /// Answer in JSON on standard output, errors included
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make, list, fork and delete vaults
    #[command(subcommand)]
    Vault(VaultVerb),
    /// Print the directory that relative paths are taken from: always /
    Pwd,
    /// List a directory of the vault
    Ls(LsArgs),
    /// Print a file of the vault
    Cat(CatArgs),
    /// Write a file of the vault
    Write(WriteArgs),
    /// Make a directory in the vault
    Mkdir(MkdirArgs),
    /// Remove something from the vault
    Rm(RmArgs),
    /// Move or rename something in the vault
    Mv(MvArgs),
    /// Copy something in the vault
    Cp(CpArgs),
    /// Give a file another name, or make a symbolic link
    Ln(LnArgs),
    /// Change permissions in the vault
    Chmod(ChmodArgs),
    /// Set a file's times to now, making it if need be
    Touch(TouchArgs),
    /// Replace one exact text in a file of the vault
    Edit(EditArgs),
    /// Say all there is to say about a path
    Stat(PathArg),
    /// Show a directory with all that is in it
    Tree(TreeArgs),
    /// Bring a directory, an archive or a git revision into the vault
    Import(ImportArgs),
    /// Copy a directory of the vault to this machine, or bring back what changed
    Export(ExportArgs),
    /// Bring things in and out by the one directory of this machine that agents may name
    #[command(subcommand)]
    Transfer(TransferVerb),
    /// Name a state of the vault and go back to it
    #[command(subcommand, alias = "snapshot")]
    Checkpoint(CheckpointVerb),
    /// Find lines that match a pattern
    Grep(GrepArgs),
    /// Find paths by name, kind, size, age or label
    Find(FindArgs),
    /// Find files by the words in them, the best first
    Search(SearchArgs),
    /// Label a path
    Tag(TagArgs),
    /// Remove a label from a path
    Untag(UntagArgs),
    /// Keep small facts about a path
    Meta(MetaArgs),
    /// List the versions of the vault, or of one path
    Log(LogArgs),
    /// Bring a path back as it was in a version
    Checkout(CheckoutArgs),
    /// Take a path one step back in its own history
    Revert(RevertArgs),
    /// Show what changed between two states
    Diff(DiffArgs),
    /// Show the vault as a directory of this machine
    Mount(MountArgs),
    /// Take a mount away; what was written in it becomes a version
    #[command(visible_alias = "umount")]
    Unmount(UnmountArgs),
    /// List what is mounted
    Mounts,
    /// Make a version of what was written in a view by now
    Commit,
    /// Run commands behind the boundary
    #[command(subcommand)]
    Proxy(ProxyVerb),
    /// Short for `proxy exec`
    Exec(ExecArgs),
    /// Run commands that go on without you
    #[command(subcommand)]
    Job(JobVerb),
    /// Sit down at the terminal of a job
    Attach(AttachArgs),
    /// Read what a command wrote beyond what its report kept
    Output(OutputArgs),
    /// See, try and change the rules for commands
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// See and answer what needs the owner's approval
    #[command(subcommand)]
    Approval(ApprovalVerb),
    /// Read the journal of all that happened
    Audit(AuditArgs),
    /// Show how much there is of everything
    Stats,
    /// Limit what a vault may grow to
    Quota(QuotaArgs),
    /// Remove what no vault can come to need any more
    Gc(GcArgs),
    /// Forget old versions, and old checkpoints nobody asked for
    Prune(PruneArgs),
    /// Prune, collect garbage and compact in one go
    Maintain(MaintainArgs),
    /// Give back to the disk what garbage left in packs and the database
    Compact,
    /// Check every stored byte and every reference, and repair what can be
    Fsck(FsckArgs),
    /// Look after the daemon, which starts by itself
    #[command(subcommand)]
    Daemon(DaemonVerb),
    /// Serve this home in the foreground
    Serve(ServeArgs),
    /// Try what this machine offers, and say how to mend what is missing
    Doctor(DoctorArgs),
    /// See it at work: a failing test, two forks, two fixes, one way back
    Demo,
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: ShellName,
    },
    /// Print short names for the verbs on files, for a shell to read
    Aliases(AliasesArgs),
}

#[derive(Debug, Args)]
pub struct AliasesArgs {
    /// Which shell
    #[arg(long, short, value_enum, default_value = "bash")]
    pub shell: ShellName,
    /// What every name begins with
    #[arg(long, short, default_value = "v", value_parser = alias_prefix)]
    pub prefix: String,
}

/// What a shell takes as the beginning of a name, and nothing that it would run.
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
    /// A path of the vault; a relative one is taken from /
    pub path: OsString,
}

#[derive(Debug, Args)]
pub struct LsArgs {
    /// A path of the vault; a relative one is taken from /
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
    /// A path of the vault; a relative one is taken from /
    pub path: OsString,
    /// Make missing parents too, and accept a directory that is there
    #[arg(short, long)]
    pub parents: bool,
}

#[derive(Debug, Args)]
pub struct RmArgs {
    /// A path of the vault; a relative one is taken from /
    pub path: OsString,
    /// Remove a directory and all that is in it
    #[arg(short, long)]
    pub recursive: bool,
    /// Something that is not there is no error
    #[arg(short, long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct MvArgs {
    /// What to move
    pub source: OsString,
    /// Where to; into it when it is a directory
    pub destination: OsString,
}

#[derive(Debug, Subcommand)]
pub enum ProxyVerb {
    /// Run a command in the vault's sandbox and report what it changed
    Exec(ExecArgs),
}

#[derive(Debug, Subcommand)]
pub enum DaemonVerb {
    /// Say whether it runs, and what it does
    Status,
    /// End it, and every command it runs
    Stop {
        /// Also while detached jobs run
        #[arg(long)]
        force: bool,
    },
    /// Print what it had to say
    Logs {
        /// How many lines, the newest last
        #[arg(short = 'n', long, default_value_t = 100)]
        lines: usize,
        /// Go on as more comes
        #[arg(short, long, conflicts_with = "json")]
        follow: bool,
    },
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// End after so long without work; 0 means never
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub idle_timeout: u64,
    /// The name that commits made in vaults carry
    #[arg(long, value_name = "NAME")]
    pub git_name: Option<String>,
    /// The address that commits made in vaults carry
    #[arg(long, value_name = "ADDRESS")]
    pub git_email: Option<String>,
    /// Keep what commands write until it is committed in this directory instead of the home (also: AVFS_LAYERS)
    #[arg(long, value_name = "DIR")]
    pub layers: Option<std::path::PathBuf>,
    /// Accepted for scripts; it always stays in the foreground
    #[arg(long, conflicts_with = "detached")]
    pub foreground: bool,
    /// Leave the session, and greet on standard output as a starting client expects
    #[arg(long, hide = true)]
    pub detached: bool,
    /// Make a new database if the home has lost its own
    #[arg(long, hide = true)]
    pub rebuild: bool,
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
    fn the_words_fit_together() {
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

    #[test]
    fn a_command_is_required() {
        assert!(Cli::try_parse_from(["avfs", "exec"]).is_err());
        assert!(Cli::try_parse_from(["avfs", "exec", "--shell", "a", "--", "b"]).is_err());
        assert!(Cli::try_parse_from(["avfs", "exec", "--shell", "a"]).is_ok());
    }

    /// How each operation of the wire is asked for in words.
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
        ("daemon", "daemon status"),
        ("daemon_stop", "daemon stop"),
    ];

    #[test]
    fn every_operation_can_be_asked_for() {
        // Cancelling is asked for with Ctrl-C, another size of the terminal by having one.
        let wordless = ["exec_cancel", "exec_resize"];
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
