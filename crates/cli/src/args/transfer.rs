//! The words of verbs that bring things in and out.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Directories are merged, files replaced, and all of it is one version or none. What a directory was
at its import is remembered, so that `avfs export --changed-only` can bring changes back. Files that
have not changed since the last import are not read again.

Examples:
  avfs import .                                      this directory becomes /workspace
  avfs import . --gitignore --exclude '*.log'        without what git ignores, and without logs
  avfs import ~/project /src --git-rev v1.2          a repository as it was at a revision
  avfs import release.tar.zst /release               an archive: plain, gzip or zstd
  curl -s https://host/x.tgz | avfs import - /x      an archive from standard input")]
pub struct ImportArgs {
    /// A directory of this machine, a tar archive, or - for an archive on standard input
    #[arg(value_name = "SOURCE")]
    pub source: PathBuf,
    /// Where it goes in the vault
    #[arg(default_value = "/workspace")]
    pub path: OsString,
    /// Leave out what matches, as a line of .gitignore would; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Leave out what the .gitignore files in the directory say
    #[arg(long, conflicts_with = "git_rev")]
    pub gitignore: bool,
    /// Take the git repository SOURCE as it is at this revision
    #[arg(long, value_name = "REV")]
    pub git_rev: Option<String>,
    /// Leave out what is more than N names deep
    #[arg(long, value_name = "N")]
    pub max_depth: Option<usize>,
    /// Accepted for scripts; directories always come whole
    #[arg(short, long, hide = true)]
    pub recursive: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
With --changed-only, what changed in the vault since HOST_DIR was imported is written back to it,
deletions too. A file that changed on the host meanwhile refuses the whole, and is named.

Files that tools run by themselves (git hooks, .envrc, editor tasks) are named. What git would run
is written only with --allow-hooks: without it nothing is.

Examples:
  avfs export /workspace out                         to a directory that is new or empty
  avfs export /workspace out --overwrite             over what an earlier export left there
  avfs export /workspace --tar release.tar.zst       to an archive; the ending says how to compress
  avfs export /workspace --tar - | ssh host tar x    to an archive on standard output
  avfs export / out --keep-going                     all that is left of a damaged vault
  avfs export --changed-only . --dry-run             what would go back to this directory
  avfs export --changed-only .                       bring it back")]
pub struct ExportArgs {
    /// A directory of the vault
    #[arg(required_unless_present = "changed_only")]
    pub path: Option<OsString>,
    /// Where it goes on this machine: a directory that is new or empty
    #[arg(required_unless_present_any = ["tar", "changed_only"])]
    pub host_dir: Option<PathBuf>,
    /// Replace files that are there: HOST_DIR need not be empty, and what else it holds stays
    #[arg(long, requires = "host_dir")]
    pub overwrite: bool,
    /// Accepted for scripts; directories always go whole
    #[arg(short, long, hide = true)]
    pub recursive: bool,
    /// Write a tar archive instead; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "host_dir")]
    pub tar: Option<PathBuf>,
    /// Write back what changed since this directory was imported
    #[arg(long, value_name = "HOST_DIR", conflicts_with_all = ["host_dir", "tar"])]
    pub changed_only: Option<PathBuf>,
    /// Only say what would be written back
    #[arg(long, requires = "changed_only", conflicts_with_all = ["host_dir", "tar"])]
    pub dry_run: bool,
    /// Also write what git would run by itself: hooks, and settings that name programs
    #[arg(long, conflicts_with = "tar")]
    pub allow_hooks: bool,
    /// Go on where something is damaged, say what is missing, and exit with 1
    #[arg(long, conflicts_with = "changed_only")]
    pub keep_going: bool,
}

#[derive(Debug, Subcommand)]
pub enum TransferVerb {
    /// Bring a directory or an archive of the transfer directory into the vault
    In(TransferInArgs),
    /// Copy a directory of the vault to a new name in the transfer directory
    Out(TransferOutArgs),
    /// Say where the transfer directory is
    Show,
    /// Set the one directory of this machine that agents may name
    Set(TransferSetArgs),
    /// Have no transfer directory
    Off,
}

#[derive(Debug, Args)]
pub struct TransferInArgs {
    /// A directory or tar archive beneath the transfer directory
    pub name: OsString,
    /// Where it goes in the vault
    #[arg(default_value = "/workspace")]
    pub path: OsString,
    /// Leave out what matches, as a line of .gitignore would; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Leave out what the .gitignore files in the directory say
    #[arg(long)]
    pub gitignore: bool,
    /// Leave out what is more than N names deep
    #[arg(long, value_name = "N")]
    pub max_depth: Option<usize>,
}

#[derive(Debug, Args)]
pub struct TransferOutArgs {
    /// A directory of the vault
    pub path: OsString,
    /// A single name that is new in the transfer directory
    pub name: OsString,
}

#[derive(Debug, Args)]
pub struct TransferSetArgs {
    /// A directory of this machine
    pub dir: PathBuf,
}
