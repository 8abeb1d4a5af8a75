//! The words of verbs that show vaults at directories of this machine.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(override_usage = "avfs mount [OPTIONS] [[VAULT] DIR]")]
#[command(after_help = "\
What is written there becomes a version when it is unmounted, on `avfs commit`, with --autocommit,
and whenever somebody looks at the vault: a fork, a checkpoint, a diff, `avfs cat`.

Examples:
  avfs mount ~/project                     the current vault, until `avfs unmount ~/project`
  avfs mount try-1 ~/try                   another vault
  avfs mount --vault try-1 --autocommit 60
  avfs mount /mnt/then --at before-refactor    a checkpoint, to look at
  avfs mount /mnt/then --at v12                a version
  avfs mount ~/project --foreground            until Ctrl-C")]
pub struct MountArgs {
    /// An empty directory, made if need be [default: one in the home]; before it, which vault
    #[arg(value_name = "DIR", num_args = 0..=2)]
    pub places: Vec<PathBuf>,
    /// Refuse writes; shows the vault as it is now
    #[arg(long, short)]
    pub readonly: bool,
    /// Show an older state, which can only be read
    #[arg(long, value_name = "CHECKPOINT|vN")]
    pub at: Option<String>,
    /// Stay, and unmount when interrupted
    #[arg(long, short)]
    pub foreground: bool,
    /// Make a version of what was written every so often
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["readonly", "at"])]
    pub autocommit: Option<u64>,
    /// What serves it [default: overlay as root, else fuse]
    #[arg(long, conflicts_with_all = ["readonly", "at"])]
    pub driver: Option<MountDriverName>,
}

/// What serves a mount.
#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum MountDriverName {
    /// The kernel alone, at native speed; needs root
    Overlay,
    /// The daemon
    Fuse,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs unmount ~/project
  avfs unmount --vault try-1
  avfs unmount --all --force       also what programs still use")]
pub struct UnmountArgs {
    /// Where it is mounted [default: the mounts of the vault]
    #[arg(conflicts_with = "all")]
    pub dir: Option<PathBuf>,
    /// Everything that is mounted
    #[arg(long)]
    pub all: bool,
    /// Although programs use it, or a quota forbids what was written: that becomes a checkpoint
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs doctor
  avfs doctor --fix                take away mounts whose daemon was killed
  avfs doctor --attack             try to get out of the sandbox, here")]
pub struct DoctorArgs {
    /// Mend what can be mended from here
    #[arg(long)]
    pub fix: bool,
    /// Try what a hostile command would try, and say what stopped it
    #[arg(long, conflicts_with = "fix")]
    pub attack: bool,
}
