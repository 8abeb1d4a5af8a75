//! The words of verbs on vaults as a whole, and on their checkpoints.

use clap::Subcommand;

use super::version;

#[derive(Debug, Subcommand)]
pub enum VaultVerb {
    /// Make an empty vault; the first one becomes current
    Create {
        /// 1-64 letters, digits, dots, dashes and underscores
        name: String,
    },
    /// List all vaults
    #[command(visible_alias = "ls")]
    List {
        /// List the deleted ones that can still be brought back instead
        #[arg(long)]
        deleted: bool,
    },
    /// Say all there is to say about a vault
    Info {
        /// The current one when left out
        name: Option<String>,
    },
    /// Make a vault the current one
    Use { name: String },
    /// Make a vault that begins as another one is now, in a moment whatever its size
    Fork {
        source: String,
        name: String,
        /// Begin with this checkpoint of the source
        #[arg(long, value_name = "NAME", conflicts_with = "version")]
        checkpoint: Option<String>,
        /// Begin with this version of the source
        #[arg(long, value_name = "N", value_parser = version)]
        version: Option<u64>,
        /// Make the fork the current vault
        #[arg(long = "use")]
        make_current: bool,
    },
    /// Give a vault another name
    Rename {
        /// What it is called now
        name: String,
        /// What it shall be called
        new_name: String,
    },
    /// Delete a vault; until gc it can be brought back
    Delete {
        name: String,
        /// Accepted for scripts; nothing is ever asked
        #[arg(short, long)]
        yes: bool,
        /// End the commands that run in it
        #[arg(long)]
        force: bool,
    },
    /// Bring a deleted vault back, with its versions and checkpoints
    #[command(after_help = "\
Examples:
  avfs vault undelete myproject                 as it was
  avfs vault undelete myproject --as old-one    when the name is taken by now")]
    Undelete {
        /// The name it had
        name: String,
        /// The name it gets, instead of the one it had
        #[arg(long = "as", value_name = "NAME")]
        to: Option<String>,
    },
    /// Say something about every command that runs in a vault
    Set {
        /// env.NAME=VALUE, memory=2g, cpus=1.5, pids=100, disk=1g, profile=moderate, timeout=90s
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// Say it for new vaults instead; also max_size_mb=N, max_files=N, max_file_size_mb=N
        #[arg(long)]
        default: bool,
    },
    /// Unsay it
    Unset {
        /// env.NAME, memory, cpus, pids, disk, profile, timeout
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        /// Unsay it for new vaults instead; also max_size_mb, max_files, max_file_size_mb
        #[arg(long)]
        default: bool,
    },
    /// Show what new vaults begin with
    Defaults,
    /// List the versions of a vault, newest first
    Log {
        /// The current one when left out
        name: Option<String>,
        /// How many to show
        #[arg(short = 'n', long, default_value_t = 50)]
        limit: usize,
    },
}

#[derive(Debug, Subcommand)]
pub enum CheckpointVerb {
    /// Name the vault's state as it is now, in a moment whatever its size
    Save {
        /// Made up when left out
        name: Option<String>,
        /// One line to remember it by
        #[arg(short, long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// List the vault's checkpoints
    List,
    /// Say all there is to say about a checkpoint
    Info { name: String },
    /// Go back to a checkpoint; the state before is kept as a checkpoint too
    Restore {
        #[arg(required_unless_present = "undo", conflicts_with = "undo")]
        name: Option<String>,
        /// Go back to what the last restore replaced
        #[arg(long)]
        undo: bool,
        /// End the commands that run in the vault; what they wrote is in the state before
        #[arg(long)]
        force: bool,
    },
    /// Forget a checkpoint
    Delete { name: String },
}
