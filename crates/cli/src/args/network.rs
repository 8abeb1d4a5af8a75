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
    /// Open a host's TLS, and say which requests it may be sent
    #[command(after_help = "\
Examples:
  avfs network inspect code.example.com 'GET,HEAD /'              reading alone
  avfs network inspect code.example.com 'GET /org/repo' 'POST /org/repo/git-upload-pack'
  avfs network inspect code.example.com --add 'POST /org/repo/issues'
  avfs network inspect code.example.com --off

A rule is METHODS PATH: the path and all below it; `* /` is every request. Each request on ports 80 and 443 must match one,
and other ports of the host are refused. The host must be on the list as well. Opening TLS, --off and more requests
than before are for the owner; fewer are for everybody.")]
    Inspect(InspectArgs),
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
pub struct InspectArgs {
    /// A name, *.example.com, an address or a range of addresses; without a port
    pub host: String,
    /// As 'GET,HEAD /org/repo'
    #[arg(value_name = "RULE", required_unless_present = "off")]
    pub rules: Vec<String>,
    /// Keep the rules that are there
    #[arg(long)]
    pub add: bool,
    /// Take all rules away, and do not open the host's TLS any more
    #[arg(long, conflicts_with_all = ["rules", "add"])]
    pub off: bool,
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
