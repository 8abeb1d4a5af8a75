//! The words of `avfs service`.

use super::SharedServeArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum ServiceVerb {
    /// Write a systemd user unit for the daemon, and start it
    Install(Box<ServiceInstallArgs>),
    /// Stop the service and remove its unit
    Remove,
    /// Show whether the service is installed, enabled and active
    Status,
}

#[derive(Debug, Args)]
pub struct ServiceInstallArgs {
    /// Write the unit only; do not start it
    #[arg(long)]
    pub no_start: bool,
    #[command(flatten)]
    pub serve: SharedServeArgs,
}
