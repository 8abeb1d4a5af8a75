//! The words of `proxy exec`, and of what goes with it.

use avfs_runtime::{parse_duration, parse_size};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ExecArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Print each event as one line of JSON while it runs, the envelope last
    #[arg(long, conflicts_with = "tty")]
    pub stream: bool,
    /// Write what is seen at its terminal to this file, as an asciicast
    #[arg(long, value_name = "FILE", requires = "tty")]
    pub record: Option<PathBuf>,
    /// Refused: a view is closed when it is no longer used, and lives until then
    #[arg(long, hide = true)]
    pub keep_mount: bool,
    /// Refused: inside, the vault is always at /
    #[arg(long, hide = true, value_name = "DIR")]
    pub mountpoint: Option<OsString>,
}

/// What can be said of a command, however it is run.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("input"), group = clap::ArgGroup::new("approving"))]
pub struct RunArgs {
    /// Where to run it [default: /workspace if there is one, else /]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<OsString>,
    /// End it after so long, as 90s or 1500 (milliseconds); 0 means never [default: 5 minutes]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    pub timeout: Option<u64>,
    /// Set a variable in the command's environment
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// Set the variables in this file of the host, one NAME=VALUE on a line
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,
    /// Run this text in a shell instead of a command
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    pub shell: Option<String>,
    /// Let it read what comes on standard input
    #[arg(long, group = "input")]
    pub stdin: bool,
    /// Let it read this file of the host
    #[arg(long, value_name = "FILE", group = "input")]
    pub stdin_file: Option<PathBuf>,
    /// Run it at a terminal
    #[arg(long, short = 't', group = "input")]
    pub tty: bool,
    /// How large that is, as 80x24 [default: as large as yours]
    #[arg(long, value_name = "COLUMNSxROWS", requires = "tty", value_parser = super::jobs::size)]
    pub size: Option<(u16, u16)>,
    /// Let it change nothing: it sees the vault as it is when it begins
    #[arg(long)]
    pub readonly: bool,
    /// Keep the state before it under this name
    #[arg(long, value_name = "NAME", conflicts_with = "no_checkpoint")]
    pub checkpoint: Option<String>,
    /// Make no checkpoint before it
    #[arg(long)]
    pub no_checkpoint: bool,
    /// Run it in a fork made for it, which goes away afterwards
    #[arg(long)]
    pub fork: bool,
    /// Keep that fork if the command exits with 0
    #[arg(long, requires = "fork")]
    pub keep_on_success: bool,
    /// Keep so many bytes of each output stream in the report, up to 4 MiB
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub output_limit: Option<u64>,
    /// Let it use so much memory, as 512m or 2g
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Let it use so many processors, as 1.5
    #[arg(long, value_name = "NUMBER")]
    pub cpus: Option<f64>,
    /// Let it have so many processes and threads
    #[arg(long, value_name = "NUMBER")]
    pub pids: Option<u32>,
    /// Let it write so much, as 100m
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub disk: Option<u64>,
    /// A named set of limits
    #[arg(long, value_name = "NAME")]
    pub profile: Option<ProfileName>,
    /// What holds it: the sandbox, or nothing but policy and timeouts
    #[arg(long, value_name = "NAME")]
    pub driver: Option<DriverName>,
    /// What it can reach: nothing, or whatever this machine can
    #[arg(long, value_name = "NAME")]
    pub network: Option<NetworkName>,
    /// Hold it until somebody has answered, if it needs approval
    #[arg(long, group = "approving")]
    pub wait: bool,
    /// Use this approval
    #[arg(long, value_name = "ID", group = "approving")]
    pub approval: Option<String>,
    /// If it needs approval, try it in a throwaway fork and ask with what it did
    #[arg(long, group = "approving")]
    pub speculate: bool,
    /// Add the changes as a patch to the report
    #[arg(long)]
    pub patch: bool,
    /// List what changed in its home directory, too
    #[arg(long)]
    pub home_changes: bool,
    /// The command and its arguments
    #[arg(last = true, required_unless_present = "shell", value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum ProfileName {
    /// 512 MiB of memory, 128 processes, 256 MiB written, one minute
    Restrictive,
    /// 4 GiB of memory, 2048 processes, 8 GiB written
    Moderate,
    /// No limits but the sandbox itself
    Permissive,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum DriverName {
    /// Namespaces, Landlock, seccomp
    Namespace,
    /// Nothing holds it: the owner's choice
    Process,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum NetworkName {
    /// Loopback of its own
    None,
    /// Whatever this machine can reach: the owner's choice
    Host,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs output 01a1de36-3b62-77b2-8258-ad8380643645
  avfs output 01a1de36-3b62-77b2-8258-ad8380643645 --stream stderr --range 0-4096")]
pub struct OutputArgs {
    /// The exec, as its report names it
    pub exec: String,
    /// Which of its streams
    #[arg(long, default_value = "stdout", value_name = "NAME")]
    pub stream: StreamName,
    /// Bytes FROM up to, but not including, TO; `FROM-` for the rest
    #[arg(long, value_name = "FROM-TO", value_parser = range, default_value = "0-")]
    pub range: (u64, Option<u64>),
}

#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum StreamName {
    Stdout,
    Stderr,
}

fn range(text: &str) -> Result<(u64, Option<u64>), String> {
    let wrong = || "a range is like 0-4096 or 4096-".to_owned();
    let (from, to) = text.split_once('-').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let to = match to {
        "" => None,
        to => Some(number(to)?),
    };
    Ok((number(from)?, to))
}

/// Milliseconds; 0 is allowed, and means never.
pub(super) fn timeout(text: &str) -> Result<u64, String> {
    if text == "0" {
        return Ok(0);
    }
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(duration.as_millis()).map_err(|error| error.to_string())
}

/// A size; nothing at all is one.
fn bytes(text: &str) -> Result<u64, String> {
    if text == "0" {
        return Ok(0);
    }
    parse_size(text).map_err(|error| error.to_string())
}
