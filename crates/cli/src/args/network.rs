//! Arguments of `avfs network`.

use super::exec::{NetworkChoice, network};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum NetworkVerb {
    /// Show which hosts the vault's commands may reach
    #[command(after_help = "\
Examples:
  avfs network show
  avfs network show --vault try-1 --json")]
    Show,
    /// Set which hosts the vault's commands may reach, those that run included
    #[command(after_help = "\
Examples:
  avfs network set none
  avfs network set example.com,*.example.org:8443
  avfs network set registries             what this host's pip, npm and cargo read from
  avfs network set host                   the host's network, its own services included

Without a port, a host is allowed on ports 80 and 443; `:*` is every port. `*.example.org` is every name below
example.org, and not example.org itself. Addresses of private networks are reached only if they are listed by address.
A wider network is for the owner.")]
    Set {
        /// none, host, or hosts separated by commas; registries is one
        #[arg(value_parser = network)]
        network: NetworkChoice,
    },
    /// Add hosts to the list; for the owner only
    #[command(after_help = "\
Examples:
  avfs network allow example.com
  avfs network allow '*.example.org:8443' 192.0.2.0/24:5432")]
    Allow(HostsArgs),
    /// Take hosts from the list
    #[command(after_help = "\
Examples:
  avfs network deny example.com
  avfs network deny '*.example.org:8443'")]
    Deny(HostsArgs),
    /// List what commands tried to reach
    Log(NetworkLogArgs),
    /// What package registries answered, kept for all vaults
    #[command(subcommand)]
    Cache(CacheVerb),
}

#[derive(Debug, Subcommand)]
pub enum CacheVerb {
    /// Say how much is kept
    #[command(after_help = "\
Examples:
  avfs network cache show")]
    Show,
    /// Remove all of it; it is downloaded again when it is needed
    #[command(after_help = "\
Examples:
  avfs network cache clear")]
    Clear,
}

#[derive(Debug, Args)]
pub struct HostsArgs {
    /// As example.com, *.example.com:8080, 192.0.2.0/24 or registries
    #[arg(required = true, value_name = "HOST")]
    pub hosts: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs network log --denied
  avfs network log 01a1de36-3b62-77b2-8258-ad8380643645")]
pub struct NetworkLogArgs {
    /// Only of this exec
    pub exec: Option<String>,
    /// Only what was refused
    #[arg(long)]
    pub denied: bool,
    /// The most execs, up to 1000
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub limit: usize,
}
