//! The arguments of verbs that maintain a home.

use super::time::{Time, in_days, in_seconds};
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;

#[derive(Debug, Args)]
#[command(after_help = "\
Deletes objects that no vault, version, checkpoint or recoverable deleted vault refers to. Other
operations continue meanwhile.

Examples:
  avfs gc --dry-run --explain      what would be deleted, and what keeps the rest
  avfs gc                          deleted vaults stay recoverable for one day
  avfs gc --grace 0                also drop vaults that were just deleted")]
pub struct GcArgs {
    /// Only print what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// Print what refers to the rest
    #[arg(long)]
    pub explain: bool,
    /// How long a deleted vault stays recoverable: 12h, 7d, or seconds [default: one day]
    #[arg(long, value_name = "TIME", value_parser = in_seconds)]
    pub grace: Option<Time>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs prune --keep 50             keep the newest fifty versions of the current vault
  avfs prune --older-than 30d --all --dry-run")]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub struct PruneArgs {
    /// Keep this many of the newest versions
    #[arg(long, value_name = "N", group = "which")]
    pub keep: Option<u64>,
    /// Delete versions older than this: 12h, 30d, or days
    #[arg(long, value_name = "TIME", value_parser = in_days, group = "which")]
    pub older_than: Option<Time>,
    /// Prune every vault, not only the current one
    #[arg(long)]
    pub all: bool,
    /// Only print what would be deleted
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs maintain                    run gc and free disk space
  avfs maintain --keep 100         delete old versions of all vaults first")]
pub struct MaintainArgs {
    /// Keep this many of the newest versions of each vault [default: all]
    #[arg(long, value_name = "N", conflicts_with = "older_than")]
    pub keep: Option<u64>,
    /// Delete versions older than this: 12h, 30d, or days
    #[arg(long, value_name = "TIME", value_parser = in_days)]
    pub older_than: Option<Time>,
    /// Do not run gc
    #[arg(long)]
    pub skip_gc: bool,
    /// Do not compact packs and the database
    #[arg(long)]
    pub skip_compact: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
--repair searches other packs, layers and imported host directories for damaged data, and takes only bytes
that have the right hash. What is still damaged is listed with its vaults and paths.

A home without its database is refused. --rebuild makes a new database from the packs: all states become
versions of the vault `recovered`. Vault names, checkpoints, settings and the journal are lost. If there is a
database, --rebuild adds packs that the database does not know.

Exit codes: 0 if nothing is damaged, 1 if something is.

Examples:
  avfs fsck                        check, and list what is damaged
  avfs fsck --repair               also repair from other copies
  avfs fsck --rebuild              make a new database from the packs")]
pub struct FsckArgs {
    /// Repair damaged data from other copies
    #[arg(long)]
    pub repair: bool,
    /// Make a new database from the packs, or add unknown packs to the database
    #[arg(long)]
    pub rebuild: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  avfs quota                       the limits of the current vault, and what it uses
  avfs quota set max_size_mb 500
  avfs quota clear max_size_mb")]
pub struct QuotaArgs {
    #[command(subcommand)]
    pub verb: Option<QuotaVerb>,
}

#[derive(Debug, Subcommand)]
pub enum QuotaVerb {
    /// Set a limit; a vault above it may only shrink
    Set { key: QuotaKey, value: u64 },
    /// Remove a limit
    Clear { key: QuotaKey },
}

/// Which limit.
#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum QuotaKey {
    /// Total size of all files, in MiB
    #[value(name = "max_size_mb")]
    Size,
    /// Number of files
    #[value(name = "max_files")]
    Files,
    /// Size of one file, in MiB
    #[value(name = "max_file_size_mb")]
    FileSize,
}

impl QuotaKey {
    pub fn word(self) -> &'static str {
        match self {
            QuotaKey::Size => "max_size_mb",
            QuotaKey::Files => "max_files",
            QuotaKey::FileSize => "max_file_size_mb",
        }
    }
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  avfs audit -n 10
  avfs --vault main audit --operation exec --since 2h
  avfs audit --path /src --since 2026-01-31
  avfs audit --decision deny --principal agent
  avfs audit verify                check the hash chain")]
pub struct AuditArgs {
    /// How many entries to show, newest first
    #[arg(short = 'n', long, default_value_t = 50)]
    pub limit: usize,
    /// Print entries of all vaults as they are made, until interrupted
    #[arg(short, long, conflicts_with_all = ["limit", "operation", "exec", "decision", "principal", "path", "since", "until"])]
    pub follow: bool,
    /// With --follow: begin after the entry with this ID; 0 is the whole journal
    #[arg(long, value_name = "ID", requires = "follow")]
    pub after: Option<u64>,
    #[command(flatten)]
    pub filter: AuditFilter,
    #[command(subcommand)]
    pub verb: Option<AuditVerb>,
}

/// Which entries.
#[derive(Debug, Args)]
pub struct AuditFilter {
    /// Only this operation, or a group such as `vault`
    #[arg(long, visible_alias = "op", value_name = "OPERATION")]
    pub operation: Option<String>,
    /// Only entries of this exec
    #[arg(long, value_name = "ID")]
    pub exec: Option<String>,
    /// Only commands with this decision
    #[arg(long, value_name = "DECISION",
        value_parser = ["allow", "allow_with_checkpoint", "require_approval", "deny"])]
    pub decision: Option<String>,
    /// Only entries of this principal: owner, agent, system, or one by name (agent:claude)
    #[arg(long, visible_alias = "by", value_name = "WHO")]
    pub principal: Option<String>,
    /// Only entries about this path or one below it
    #[arg(long, value_name = "PATH")]
    pub path: Option<OsString>,
    /// Only entries since then: a date, a time, or an age such as 90m, 2h, 7d
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only entries until then
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum AuditVerb {
    /// Check that no entry was changed, moved or removed
    Verify,
    /// Print all entries as JSON Lines, oldest first
    #[command(after_help = "\
Examples:
  avfs audit export > journal.jsonl
  avfs audit export --decision deny --since 7d")]
    Export {
        #[command(flatten)]
        filter: AuditFilter,
    },
}
