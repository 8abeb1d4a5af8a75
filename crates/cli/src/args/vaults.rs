//! The arguments of `vault` and `checkpoint`.

use clap::{Args, Subcommand};

use super::version;

#[derive(Debug, Subcommand)]
pub enum VaultVerb {
    /// Create an empty vault; the first one becomes current
    Create {
        /// 1-64 letters, digits, dots, dashes and underscores
        name: String,
        /// The storage engine; there is one: sqlite
        #[arg(long, value_name = "NAME")]
        backend: Option<String>,
    },
    /// List all vaults
    #[command(visible_alias = "ls")]
    List {
        /// List deleted vaults that can be restored instead
        #[arg(long)]
        deleted: bool,
    },
    /// Show size, settings, limits, forks and state of a vault
    Info {
        /// The vault [default: the current one]
        name: Option<String>,
    },
    /// Make a vault the current one, or that of this directory
    Use {
        /// The vault; with --here it can be left out, and this directory has none of its own any more
        #[arg(required_unless_present = "here")]
        name: Option<String>,
        /// Only in this directory and below, for whoever uses this home. AVFS_VAULT does it for a terminal
        #[arg(long)]
        here: bool,
    },
    /// Create a copy-on-write fork of a vault, in constant time
    Fork {
        source: String,
        name: String,
        /// Fork from this checkpoint of the source
        #[arg(long, value_name = "NAME", conflicts_with = "version")]
        checkpoint: Option<String>,
        /// Fork from this version of the source
        #[arg(long, value_name = "N", value_parser = version)]
        version: Option<u64>,
        /// Make the fork the current vault
        #[arg(long = "use")]
        make_current: bool,
    },
    /// Rename a vault
    Rename {
        /// The current name
        name: String,
        /// The new name
        new_name: String,
    },
    /// Delete a vault; it can be restored until gc removes it
    Delete {
        name: String,
        /// Accepted for scripts; no confirmation is asked
        #[arg(short, long)]
        yes: bool,
        /// End the commands that run in it
        #[arg(long)]
        force: bool,
    },
    /// Restore a deleted vault, with its versions and checkpoints
    #[command(after_help = "\
Examples:
  avfs vault undelete myproject                 under its old name
  avfs vault undelete myproject --as old-one    if the old name is in use")]
    Undelete {
        /// The name it had
        name: String,
        /// Another name for the restored vault
        #[arg(long = "as", value_name = "NAME")]
        to: Option<String>,
    },
    /// Change settings for every command that runs in a vault
    Set {
        /// env.NAME=VALUE, memory=2g, cpus=1.5, pids=100, disk=1g, nofile=4096, profile=moderate, timeout=90s, network=HOSTS, 'inspect.HOST=GET,HEAD /', connections=50, bandwidth=2m/s, traffic=1g, lend=DIR (read-only; several with commas); memory, pids, disk and nofile can be unlimited
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// Set the defaults of new vaults instead; also max_size_mb=N, max_files=N, max_file_size_mb=N
        #[arg(long)]
        default: bool,
    },
    /// Remove settings of a vault
    Unset {
        /// env.NAME, memory, cpus, pids, disk, nofile, profile, timeout, network, inspect.HOST, connections, bandwidth, traffic, lend
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        /// Remove defaults of new vaults instead; also max_size_mb, max_files, max_file_size_mb
        #[arg(long)]
        default: bool,
    },
    /// Show the defaults of new vaults
    Defaults,
    /// List the versions of a vault, newest first
    Log {
        /// The vault [default: the current one]
        name: Option<String>,
        /// How many to show
        #[arg(short = 'n', long, default_value_t = 50)]
        limit: usize,
    },
}

#[derive(Debug, Subcommand)]
pub enum CheckpointVerb {
    /// Save the current state of the vault under a name, in constant time
    Save {
        /// The name [default: generated]
        name: Option<String>,
        /// A description of one line
        #[arg(short, long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// List the vault's checkpoints
    List,
    /// Show the details of a checkpoint
    Info { name: String },
    /// Restore a checkpoint; the state before becomes a checkpoint too
    Restore {
        #[arg(required_unless_present = "undo", conflicts_with = "undo")]
        name: Option<String>,
        /// Undo the last restore
        #[arg(long)]
        undo: bool,
        /// End running commands first; what they wrote is in the state before
        #[arg(long)]
        force: bool,
    },
    /// Delete a checkpoint
    Delete {
        name: String,
        /// Also if vaults were forked from it; they stay
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Args)]
pub struct VaultPatternArgs {
    /// Vaults that it is for, with the wildcards * and ?; all when left out. Can be repeated
    #[arg(
        id = "vault",
        long = "vault",
        value_name = "PATTERN",
        value_delimiter = ','
    )]
    pub vaults: Vec<String>,
}
