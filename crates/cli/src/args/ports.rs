//! Arguments of `avfs port`.

use clap::{Args, Subcommand};
use std::net::IpAddr;

#[derive(Debug, Subcommand)]
pub enum PortVerb {
    /// Open a port of the host that leads to a command of a vault; for the owner only
    Forward(PortForwardArgs),
    /// List forwarded ports, and where commands listen
    #[command(after_help = "\
Examples:
  avfs port list
  avfs port list --vault try-1")]
    List,
    /// Close forwarded ports and cut their connections; for the owner only
    #[command(visible_alias = "rm")]
    Remove(PortRemoveArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs port forward try-1 3000                 a free port of the host
  avfs port forward try-1 3000 8080            port 8080 of the host
  avfs port forward db /run/postgresql/.s.PGSQL.5432 5432
  avfs port forward try-1 3000 --listen 0.0.0.0    reachable from other hosts

Every program of this host can connect to a port on 127.0.0.1. The server sees connections from its own loopback.
While nothing listens inside, connections are reset. A forward ends with `avfs port remove`, with its vault, and with the
daemon, which does not end by itself while there is one.")]
pub struct PortForwardArgs {
    /// The vault
    pub vault: String,
    /// The port inside, or the absolute path of a Unix socket
    pub guest: String,
    /// The port of the host [default: a free one]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub host: Option<u16>,
    /// The address of the host to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs port remove try-1 3000
  avfs port remove try-1 --all")]
pub struct PortRemoveArgs {
    /// The vault
    pub vault: String,
    /// The port inside, or the absolute path of a Unix socket
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub guest: Option<String>,
    /// Close all that lead into the vault
    #[arg(long)]
    pub all: bool,
}
