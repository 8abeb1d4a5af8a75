//! The arguments of `avfs approval`.

use super::time::{Time, in_millis};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ApprovalVerb {
    /// Set the passphrase for approvals, on this terminal
    #[command(after_help = "\
Examples:
  avfs approval setup              asks for the old one first if there is one")]
    Setup,
    /// List the commands that wait for approval
    #[command(after_help = "\
Examples:
  avfs approval list
  avfs approval list --all         also answered and expired ones")]
    List {
        /// Include requests that were answered or have expired
        #[arg(long)]
        all: bool,
    },
    /// Show a waiting command exactly as it would run
    #[command(after_help = "\
Examples:
  avfs approval show 01a1de36-3b62-77b2-8258-ad8380643645")]
    Show { id: String },
    /// Permit a command to run once; asks for the passphrase on this terminal
    #[command(after_help = "\
Examples:
  avfs approval approve 01a1de36-3b62-77b2-8258-ad8380643645
  avfs approval approve 01a1de36-3b62-77b2-8258-ad8380643645 --expires 5m
  avfs approval approve 01a1de36-3b62-77b2-8258-ad8380643645 --always")]
    Approve {
        id: String,
        /// How long the approval is valid: 90s, 5m, or milliseconds [default: 15m]
        #[arg(long, value_name = "TIME", value_parser = in_millis)]
        expires: Option<Time>,
        /// Approve only if this is still the fingerprint that `avfs approval show` prints
        #[arg(long, value_name = "FINGERPRINT")]
        shown: Option<String>,
        /// Also add the smallest rule that lets such a command run without approval to the vault's rules; shows it first
        #[arg(long)]
        always: bool,
        /// With --always: add the rule without asking
        #[arg(long, short, requires = "always")]
        yes: bool,
    },
    /// Refuse a command
    #[command(after_help = "\
Examples:
  avfs approval deny 01a1de36-3b62-77b2-8258-ad8380643645")]
    Deny { id: String },
    /// Ask about each command as it arrives; asks for the passphrase once
    #[command(after_help = "\
Examples:
  avfs approval watch")]
    Watch,
}
