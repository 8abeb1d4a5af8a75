//! The words of verbs that look after a home.

use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;

#[derive(Debug, Args)]
#[command(after_help = "\
Removed is what no vault can come to need: not in its files, not in a version, a checkpoint, or a
deleted vault that can still be brought back. Everybody may go on working meanwhile.

Examples:
  avfs gc --dry-run --explain      what would go, and why the rest stays
  avfs gc                          deleted vaults stay recoverable for a day
  avfs gc --grace 0                give deleted vaults up at once")]
pub struct GcArgs {
    /// Only say what would go
    #[arg(long)]
    pub dry_run: bool,
    /// Say what keeps the rest
    #[arg(long)]
    pub explain: bool,
    /// How long a deleted vault can be brought back [default: a day]
    #[arg(long, value_name = "SECONDS")]
    pub grace: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs prune --keep 50             keep the newest fifty versions of the current vault
  avfs prune --older-than 30 --all --dry-run")]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub struct PruneArgs {
    /// Keep so many of the newest versions
    #[arg(long, value_name = "N", group = "which")]
    pub keep: Option<u64>,
    /// Keep the versions of the last so many days
    #[arg(long, value_name = "DAYS", group = "which")]
    pub older_than: Option<u64>,
    /// Prune every vault, not only the current one
    #[arg(long)]
    pub all: bool,
    /// Only say what would be forgotten
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs maintain                    collect garbage and give the space back
  avfs maintain --keep 100         forget old versions of all vaults first")]
pub struct MaintainArgs {
    /// Keep so many of the newest versions of each vault; all when left out
    #[arg(long, value_name = "N", conflicts_with = "older_than")]
    pub keep: Option<u64>,
    /// Keep the versions of the last so many days
    #[arg(long, value_name = "DAYS")]
    pub older_than: Option<u64>,
    /// Collect no garbage
    #[arg(long)]
    pub skip_gc: bool,
    /// Leave packs and the database as they are
    #[arg(long)]
    pub skip_compact: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
What is damaged is looked for in other packs, in layers, and in host directories that were imported; only bytes
that have the right hash are taken. Whatever is still damaged is named, with the vaults and paths that it is in.

A home that has lost its database is not served. From its packs alone, --rebuild brings back the states of its
vaults, as versions of a vault `recovered`; their names, checkpoints, settings and the journal are gone. With a
database it takes in packs that the database does not know.

Exit codes: 0 when all is whole, 1 when something is damaged.

Examples:
  avfs fsck                        say what is damaged
  avfs fsck --repair               take what is found elsewhere
  avfs fsck --rebuild              make a new database from what is left")]
pub struct FsckArgs {
    /// Look elsewhere for what is damaged
    #[arg(long)]
    pub repair: bool,
    /// Bring back what packs tell when the database is lost, or does not know them
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
    /// Set a limit; a vault that is above it already may only shrink
    Set { key: QuotaKey, value: u64 },
    /// Lift a limit
    Clear { key: QuotaKey },
}

/// Which limit.
#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum QuotaKey {
    /// All files together, in MiB
    #[value(name = "max_size_mb")]
    Size,
    /// How many files
    #[value(name = "max_files")]
    Files,
    /// Any one file, in MiB
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
  avfs audit verify                check that nobody changed it")]
pub struct AuditArgs {
    /// How many entries to show, newest first
    #[arg(short = 'n', long, default_value_t = 50)]
    pub limit: usize,
    #[command(flatten)]
    pub filter: AuditFilter,
    #[command(subcommand)]
    pub verb: Option<AuditVerb>,
}

/// Which entries.
#[derive(Debug, Args)]
pub struct AuditFilter {
    /// Only this operation, or all of a kind, such as `vault`
    #[arg(long, visible_alias = "op", value_name = "OPERATION")]
    pub operation: Option<String>,
    /// Only what this exec did
    #[arg(long, value_name = "ID")]
    pub exec: Option<String>,
    /// Only commands that policy decided on so
    #[arg(long, value_name = "DECISION",
        value_parser = ["allow", "allow_with_checkpoint", "require_approval", "deny"])]
    pub decision: Option<String>,
    /// Only what was done by owner, agent or system, or by one of a name: agent:claude
    #[arg(long, visible_alias = "by", value_name = "WHO")]
    pub principal: Option<String>,
    /// Only what names this path, or one beneath it
    #[arg(long, value_name = "PATH")]
    pub path: Option<OsString>,
    /// Only from then on: a date, a time, or an age such as 90m, 2h, 7d
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only up to then
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum AuditVerb {
    /// Check that no entry was edited, moved or removed
    Verify,
    /// Print all entries, oldest first, as lines of JSON
    #[command(after_help = "\
Examples:
  avfs audit export > journal.jsonl
  avfs audit export --decision deny --since 7d")]
    Export {
        #[command(flatten)]
        filter: AuditFilter,
    },
}
