//! The arguments of verbs that mount vaults on the host.

use super::time::{Time, in_seconds};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(override_usage = "avfs mount [OPTIONS] [[VAULT] DIR]")]
#[command(after_help = "\
Writes become a version on unmount, on `avfs commit`, every TIME with --autocommit, and whenever
another verb reads the vault: a fork, a checkpoint, a diff, `avfs cat`.

Examples:
  avfs mount ~/project                     the current vault, until `avfs unmount ~/project`
  avfs mount try-1 ~/try                   another vault
  avfs mount --vault try-1 --autocommit 60s
  avfs mount /mnt/then --at before-refactor    a checkpoint, read-only
  avfs mount /mnt/then --at v12                a version, read-only
  avfs mount ~/project --foreground            until Ctrl-C
  avfs mount ~/project --allow-other           also for other users of this host")]
pub struct MountArgs {
    /// An empty directory, created if missing [default: AVFS_HOME/mnt/VAULT]; before it, the vault
    #[arg(value_name = "DIR", num_args = 0..=2)]
    pub places: Vec<PathBuf>,
    /// Refuse writes; the mount shows the vault as it is now
    #[arg(long, short)]
    pub readonly: bool,
    /// Mount an older state, read-only
    #[arg(long, value_name = "CHECKPOINT|vN")]
    pub at: Option<String>,
    /// Stay in the foreground, and unmount on Ctrl-C
    #[arg(long, short)]
    pub foreground: bool,
    /// Commit what was written every so often: 60s, 5m, or seconds
    #[arg(long, value_name = "TIME", value_parser = in_seconds, conflicts_with_all = ["readonly", "at"])]
    pub autocommit: Option<Time>,
    /// Let other users of this host use it, as file modes allow
    #[arg(long)]
    pub allow_other: bool,
    /// What serves it [default: fuse, beside which commands can run]
    #[arg(long, conflicts_with_all = ["readonly", "at"])]
    pub driver: Option<MountDriverName>,
}

/// What serves a mount.
#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum MountDriverName {
    /// The kernel's overlayfs, at native speed; needs root
    Overlay,
    /// The daemon, by FUSE
    Fuse,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs unmount ~/project
  avfs unmount --vault try-1
  avfs unmount ~/project --lazy    even if programs use it
  avfs unmount --all --force       also if the quota refuses what was written")]
pub struct UnmountArgs {
    /// The mounted directory [default: all mounts of the vault]
    #[arg(conflicts_with = "all")]
    pub dir: Option<PathBuf>,
    /// Unmount all mounts
    #[arg(long)]
    pub all: bool,
    /// Unmount even if programs use it or the quota refuses what was written, which then becomes a checkpoint
    #[arg(long)]
    pub force: bool,
    /// Unmount even if programs use it: what they have written is kept, what they write later fails
    #[arg(long)]
    pub lazy: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs doctor
  avfs doctor --fix                remove mounts of a daemon that was killed
  avfs doctor --attack             test the sandbox on this host")]
pub struct DoctorArgs {
    /// Remove mounts whose daemon is gone, and close downloads that other users may open
    #[arg(long)]
    pub fix: bool,
    /// Run attacks in a sandbox, and print what stopped each
    #[arg(long, conflicts_with = "fix")]
    pub attack: bool,
}
