//! The arguments of `proxy exec` and `output`.

use super::time::{Time, in_millis};
use avfs_api::wire::NetworkName;
use avfs_runtime::{HostError, HostList, parse_size};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ExecArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Print each event as one line of JSON as it happens; the envelope is last
    #[arg(long, conflicts_with_all = ["tty", "size", "record"])]
    pub stream: bool,
    /// Record the terminal to this file, as an asciicast
    #[arg(long, value_name = "FILE", requires = "tty", conflicts_with_all = ["stdin", "stdin_file"])]
    pub record: Option<PathBuf>,
    /// Refused: the daemon closes a view when it is no longer used
    #[arg(long, hide = true)]
    pub keep_mount: bool,
    /// Refused: in the sandbox the vault is always at /
    #[arg(long, hide = true, value_name = "DIR")]
    pub mountpoint: Option<OsString>,
}

/// Options of a command, for `exec` and `job start`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("input"), group = clap::ArgGroup::new("approving"))]
pub struct RunArgs {
    /// Working directory [default: /workspace if it exists, else /]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<OsString>,
    /// End the command after this time: 90s, 5m, or milliseconds; 0 means never [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = in_millis)]
    pub timeout: Option<Time>,
    /// Set an environment variable
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// Set environment variables from a host file, one NAME=VALUE per line
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,
    /// Run this text with /bin/bash -c instead of a command
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    pub shell: Option<String>,
    /// Forward standard input to the command
    #[arg(long, group = "input")]
    pub stdin: bool,
    /// Give the command this host file as standard input
    #[arg(long, value_name = "FILE", group = "input")]
    pub stdin_file: Option<PathBuf>,
    /// Run the command on a terminal
    #[arg(long, short = 't', group = "input")]
    pub tty: bool,
    /// Size of that terminal, as 80x24 [default: the size of yours]
    #[arg(long, value_name = "COLUMNSxROWS", requires = "tty", value_parser = super::jobs::size,
        conflicts_with_all = ["stdin", "stdin_file"])]
    pub size: Option<(u16, u16)>,
    /// Refuse writes; the command sees the vault as it is when it starts
    #[arg(long)]
    pub readonly: bool,
    /// Save the state before the command as this checkpoint
    #[arg(long, value_name = "NAME", conflicts_with = "no_checkpoint")]
    pub checkpoint: Option<String>,
    /// Take no checkpoint before the command
    #[arg(long)]
    pub no_checkpoint: bool,
    /// Run the command in a temporary fork
    #[arg(long)]
    pub fork: bool,
    /// Keep that fork if the command exits with 0
    #[arg(long, requires = "fork")]
    pub keep_on_success: bool,
    /// Keep this many bytes of each output stream in the report, up to 4 MiB
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub output_limit: Option<u64>,
    /// List this many changed paths in the report, up to 10000 [default: 1000, in 64 KiB]
    #[arg(long, value_name = "NUMBER")]
    pub changes_limit: Option<usize>,
    /// Limit memory, as 512m or 2g
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Limit processors, as 1.5
    #[arg(long, value_name = "NUMBER")]
    pub cpus: Option<f64>,
    /// Limit the number of processes and threads
    #[arg(long, value_name = "NUMBER")]
    pub pids: Option<u32>,
    /// Limit how much is written, as 100m
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub disk: Option<u64>,
    /// A named set of limits
    #[arg(long, value_name = "NAME")]
    pub profile: Option<ProfileName>,
    /// Where the command runs: in the sandbox, or on the host without isolation
    #[arg(long, value_name = "NAME")]
    pub driver: Option<DriverName>,
    /// What the command may reach: none, host, observe, or hosts (registries among them) separated by commas [default: the vault's setting]
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    pub network: Option<NetworkChoice>,
    /// A host that the command may reach besides, as example.com or *.example.com:8080
    #[arg(long, value_name = "HOST")]
    pub allow: Vec<String>,
    /// Let the command read from this host's package registries; for `--allow registries`
    #[arg(long)]
    pub allow_registries: bool,
    /// If the command needs approval, wait for the answer
    #[arg(long, group = "approving")]
    pub wait: bool,
    /// Use this approval
    #[arg(long, value_name = "ID", group = "approving")]
    pub approval: Option<String>,
    /// If the command needs approval, run it in a temporary fork and show the result to the approver
    #[arg(long, group = "approving")]
    pub speculate: bool,
    /// Add a patch of the changes to the report
    #[arg(long)]
    pub patch: bool,
    /// Also list what changed in the command's home directory
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
    /// No limits, not even the defaults
    Permissive,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum DriverName {
    /// Namespaces, Landlock, seccomp
    Namespace,
    /// No isolation; for the owner only
    Process,
}

/// A network by its name, or by its hosts.
#[derive(Clone, Debug)]
pub struct NetworkChoice {
    pub name: NetworkName,
    pub hosts: Vec<String>,
}

/// `none`, `host`, `observe`, or hosts separated by commas.
pub fn network(text: &str) -> Result<NetworkChoice, String> {
    let named = |name| NetworkChoice {
        name,
        hosts: Vec::new(),
    };
    Ok(match text {
        "none" => named(NetworkName::None),
        "host" => named(NetworkName::Host),
        "observe" => named(NetworkName::Observe),
        list => {
            let hosts: HostList = list.parse().map_err(|error: HostError| error.to_string())?;
            if hosts.is_empty() {
                return Err("it is empty; none is no network".into());
            }
            NetworkChoice {
                name: NetworkName::None,
                hosts: hosts.rules().iter().map(ToString::to_string).collect(),
            }
        }
    })
}

#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum NetworkKind {
    /// Only a private loopback interface
    None,
    /// Hosts on a list
    Listed,
    /// The host's network
    Host,
}

impl NetworkKind {
    pub fn as_str(self) -> &'static str {
        match self {
            NetworkKind::None => "none",
            NetworkKind::Listed => "listed",
            NetworkKind::Host => "host",
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs output 01a1de36-3b62-77b2-8258-ad8380643645
  avfs output 01a1de36-3b62-77b2-8258-ad8380643645 --stream stderr --range 0-4096")]
pub struct OutputArgs {
    /// The id of the exec, from its report
    pub exec: String,
    /// Which stream
    #[arg(long, default_value = "stdout", value_name = "NAME")]
    pub stream: StreamName,
    /// Bytes FROM up to, but not including, TO; `FROM-` up to the end
    #[arg(long, value_name = "FROM-TO", value_parser = range, default_value = "0-")]
    pub range: (u64, Option<u64>),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs changes 01a1de36-3b62-77b2-8258-ad8380643645
  avfs changes 01a1de36-3b62-77b2-8258-ad8380643645 --all
  avfs changes 01a1de36-3b62-77b2-8258-ad8380643645 --patch")]
pub struct ChangesArgs {
    /// The id of the exec, from its report
    pub exec: String,
    /// Also list what is ignored, and what is in the home directory
    #[arg(long)]
    pub all: bool,
    /// Show the changes as a patch
    #[arg(long)]
    pub patch: bool,
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

/// A size in bytes; 0 is valid.
fn bytes(text: &str) -> Result<u64, String> {
    if text == "0" {
        return Ok(0);
    }
    parse_size(text).map_err(|error| error.to_string())
}
