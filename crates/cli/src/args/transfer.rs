//! The arguments of import, export and transfer.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Directories are merged and files replaced, all in one version. The imported state is recorded, so that
`avfs export --changed-only` can write changes back. Files that have not changed since the last import
are not read again.

Examples:
  avfs import .                                      this directory becomes /workspace
  avfs import . --gitignore --exclude '*.log'        without ignored files, and without logs
  avfs import ~/project /src --git-rev v1.2          a revision of a git repository
  avfs import notes.txt                              one file becomes /workspace/notes.txt
  avfs import release.tar.zst /release               an archive: plain, gzip or zstd
  curl -s https://host/x.tgz | avfs import - /x      an archive from standard input")]
pub struct ImportArgs {
    /// A host directory, a file, a tar archive, or - for an archive on standard input
    #[arg(value_name = "SOURCE")]
    pub source: PathBuf,
    /// The destination in the vault; a directory that exists gets a file as an entry
    #[arg(default_value = "/workspace")]
    pub path: OsString,
    /// Skip what matches, as a line of .gitignore would; can be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Skip what the .gitignore files in the directory exclude, but for what git tracks
    #[arg(long, conflicts_with = "git_rev")]
    pub gitignore: bool,
    /// Import this revision of the git repository SOURCE
    #[arg(long, value_name = "REV")]
    pub git_rev: Option<String>,
    /// Skip what is more than N levels deep
    #[arg(long, value_name = "N")]
    pub max_depth: Option<usize>,
    /// Accepted for scripts; directories are always imported recursively
    #[arg(short, long, hide = true)]
    pub recursive: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
With --changed-only, what changed in the vault since HOST_DIR was imported is written back to it,
deletions included. If one of these files also changed on the host, nothing is written and the file is
listed.

Files that tools execute on their own (git hooks, .envrc, editor tasks) are listed. If git would
execute one, the export is refused unless --allow-hooks is given.

Examples:
  avfs export /workspace out                         to a new or empty directory
  avfs export /workspace out --overwrite             to an existing directory, replacing files
  avfs export /workspace/notes.txt .                 one file, to this directory
  avfs export /workspace --tar release.tar.zst       to an archive; the suffix selects the compression
  avfs export /workspace --tar - | ssh host tar x    to an archive on standard output
  avfs export / out --keep-going                     what can be read of a damaged vault
  avfs export --changed-only . --dry-run             list what would be written back
  avfs export --changed-only .                       write changes back to this directory")]
pub struct ExportArgs {
    /// A directory or file of the vault
    #[arg(required_unless_present = "changed_only")]
    pub path: Option<OsString>,
    /// A new or empty host directory; for a file, its new name or the directory that it goes to
    #[arg(required_unless_present_any = ["tar", "changed_only"])]
    pub host_dir: Option<PathBuf>,
    /// Replace existing files; HOST_DIR need not be empty, and its other files stay
    #[arg(long, requires = "host_dir", conflicts_with_all = ["tar", "changed_only"])]
    pub overwrite: bool,
    /// Accepted for scripts; directories are always exported recursively
    #[arg(short, long, hide = true)]
    pub recursive: bool,
    /// Write a tar archive instead; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "host_dir")]
    pub tar: Option<PathBuf>,
    /// Write back what changed since this directory was imported
    #[arg(long, value_name = "HOST_DIR", conflicts_with_all = ["host_dir", "tar"])]
    pub changed_only: Option<PathBuf>,
    /// Only list what would be written back
    #[arg(long, requires = "changed_only", conflicts_with_all = ["host_dir", "tar"])]
    pub dry_run: bool,
    /// Also write files that git would execute: hooks, and settings that name programs
    #[arg(long, conflicts_with = "tar")]
    pub allow_hooks: bool,
    /// Skip and list damaged files, and exit with 1
    #[arg(long, conflicts_with = "changed_only")]
    pub keep_going: bool,
}

#[derive(Debug, Subcommand)]
pub enum TransferVerb {
    /// Import a directory or an archive from the transfer directory
    In(TransferInArgs),
    /// Copy a directory of the vault to a new name in the transfer directory
    Out(TransferOutArgs),
    /// Print the transfer directory
    Show,
    /// Set the one host directory that agents may use
    Set(TransferSetArgs),
    /// Unset the transfer directory
    Off,
}

#[derive(Debug, Args)]
pub struct TransferInArgs {
    /// A directory or tar archive in the transfer directory
    pub name: OsString,
    /// The destination in the vault
    #[arg(default_value = "/workspace")]
    pub path: OsString,
    /// Skip what matches, as a line of .gitignore would; can be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Skip what the .gitignore files in the directory exclude, but for what git tracks
    #[arg(long)]
    pub gitignore: bool,
    /// Skip what is more than N levels deep
    #[arg(long, value_name = "N")]
    pub max_depth: Option<usize>,
}

#[derive(Debug, Args)]
pub struct TransferOutArgs {
    /// A directory of the vault
    pub path: OsString,
    /// A new name in the transfer directory, without /
    pub name: OsString,
}

#[derive(Debug, Args)]
pub struct TransferSetArgs {
    /// A host directory
    pub dir: PathBuf,
}
