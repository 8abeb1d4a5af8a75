//! The words of `avfs git`.

use clap::{Args, Subcommand};
use std::ffi::OsString;

#[derive(Debug, Subcommand)]
pub enum GitVerb {
    /// Show the branch, and which files are staged, changed or untracked
    #[command(after_help = "\
Examples:
  avfs git status
  avfs git status -C /src/lib --json | jq -r '.entries[].path'")]
    Status(RepositoryArgs),
    /// Show changes that are not staged, that are staged, or since a commit
    #[command(after_help = "\
Examples:
  avfs git diff
  avfs git diff --staged --stat
  avfs git diff --commit HEAD~1 --file src/main.py")]
    Diff(GitDiffArgs),
    /// Commit what is staged, or everything
    #[command(after_help = "\
Examples:
  avfs git commit -m 'Fix the parser' --all
  avfs git commit -m 'Fix the parser' --author-name Ada --author-email ada@example.org")]
    Commit(GitCommitArgs),
    /// List the branches, create one, or switch to one
    #[command(after_help = "\
Examples:
  avfs git branch
  avfs git branch --create try-1 --switch try-1
  avfs git branch --create old --from HEAD~3")]
    Branch(GitBranchArgs),
    /// List the commits, the newest first
    #[command(after_help = "\
Examples:
  avfs git log -n 5
  avfs git log --from main --json | jq -r '.commits[].subject'")]
    Log(GitLogArgs),
    /// Clone a repository into the vault
    #[command(after_help = "\
Examples:
  avfs git clone /repo /copy
  avfs git clone /repo /copy --branch main --depth 1

A host must be one that the vault may reach: `avfs network allow HOST`.")]
    Clone(GitCloneArgs),
}

#[derive(Debug, Args)]
pub struct RepositoryArgs {
    /// A directory of the repository; /workspace if that exists, else /, when left out
    #[arg(short = 'C', long = "path", value_name = "DIR")]
    pub path: Option<OsString>,
}

#[derive(Debug, Args)]
pub struct GitDiffArgs {
    #[command(flatten)]
    pub repository: RepositoryArgs,
    /// Compare what is staged with the commit
    #[arg(long)]
    pub staged: bool,
    /// Compare with this commit
    #[arg(long, value_name = "COMMIT")]
    pub commit: Option<String>,
    /// Only this path, relative to the directory
    #[arg(long, value_name = "PATH")]
    pub file: Option<OsString>,
    /// Count added and removed lines by file
    #[arg(long)]
    pub stat: bool,
    /// How many bytes of the patch to show, at most 2 MiB
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u64>,
}

#[derive(Debug, Args)]
pub struct GitCommitArgs {
    #[command(flatten)]
    pub repository: RepositoryArgs,
    /// The message
    #[arg(short, long)]
    pub message: String,
    /// Stage everything first: new, changed and removed files
    #[arg(short, long)]
    pub all: bool,
    /// Name of the author
    #[arg(long, value_name = "NAME")]
    pub author_name: Option<String>,
    /// E-mail address of the author
    #[arg(long, value_name = "ADDRESS")]
    pub author_email: Option<String>,
}

#[derive(Debug, Args)]
pub struct GitBranchArgs {
    #[command(flatten)]
    pub repository: RepositoryArgs,
    /// Create a branch
    #[arg(long, value_name = "BRANCH")]
    pub create: Option<String>,
    /// Where the new branch begins; the commit that is checked out when left out
    #[arg(long, value_name = "COMMIT", requires = "create")]
    pub from: Option<String>,
    /// Check a branch out
    #[arg(long, value_name = "BRANCH")]
    pub switch: Option<String>,
}

#[derive(Debug, Args)]
pub struct GitLogArgs {
    #[command(flatten)]
    pub repository: RepositoryArgs,
    /// The first commit of the list; the one that is checked out when left out
    #[arg(long, value_name = "COMMIT")]
    pub from: Option<String>,
    /// How many commits
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u32>,
}

#[derive(Debug, Args)]
pub struct GitCloneArgs {
    /// The repository: a path of the vault
    pub url: String,
    /// The new directory; /workspace when left out
    pub path: Option<OsString>,
    /// The branch to check out
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
    /// Only so many commits of each branch
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
}
