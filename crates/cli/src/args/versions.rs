//! The arguments of verbs about versions and differences.

use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs log                       all versions of the vault
  avfs log /src/main.py -n 5     the last five that changed this file
  avfs log /src                  versions that changed anything in this directory")]
pub struct LogArgs {
    /// Only versions that changed this path or anything below it
    pub path: Option<OsString>,
    /// How many to show, newest first
    #[arg(short = 'n', long, default_value_t = 50)]
    pub limit: usize,
}

#[derive(Debug, Args)]
#[command(after_help = "\
This makes a new version; the later ones stay.

Example:
  avfs checkout /src/main.py --version 3")]
pub struct CheckoutArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// The version to restore from (`avfs log` lists them)
    #[arg(short = 'v', long, value_name = "N", value_parser = super::version)]
    pub version: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "\
This makes a new version, in which the path is as it was before its last change. A second revert
undoes the first.")]
pub struct RevertArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "avfs diff [OPTIONS] [FROM [TO]] [/PATH [/PATH2]]",
    after_help = "\
A state is HEAD, BASE (the state when the vault was forked or created), vN (a version), vault:NAME,
or a checkpoint's name. Arguments that begin with / are paths.

Examples:
  avfs diff                            what changed in this vault since it was forked
  avfs diff before-refactor --stat     changed lines since a checkpoint
  avfs diff vault:main HEAD -p         the difference to another vault, as a patch
  avfs diff v3 v5 /src/main.py         one file in two versions
  avfs diff /a.txt /b.txt              two files"
)]
pub struct DiffArgs {
    /// Up to two states [default: BASE HEAD], then up to two paths
    #[arg(num_args = 0..=4, value_name = "STATE OR PATH")]
    pub what: Vec<OsString>,
    /// Show the changed text; the default for a single file
    #[arg(short, long, short_alias = 'u')]
    pub patch: bool,
    /// Count added and removed lines
    #[arg(long)]
    pub stat: bool,
    /// Show one letter and the path for each change
    #[arg(long, conflicts_with_all = ["patch", "stat"])]
    pub name_status: bool,
    /// The version before
    #[arg(long, value_name = "N", value_parser = super::version)]
    pub v1: Option<u64>,
    /// The version after
    #[arg(long, value_name = "N", value_parser = super::version)]
    pub v2: Option<u64>,
}
