//! The words of `avfs approval`.

use avfs_runtime::parse_duration;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ApprovalVerb {
    /// Set the passphrase with which you approve commands, at this terminal
    #[command(after_help = "\
Examples:
  avfs approval setup              asks for it twice, and for the old one if there is one")]
    Setup,
    /// List the commands that wait for approval
    #[command(after_help = "\
Examples:
  avfs approval list
  avfs approval list --all         also those that are over")]
    List {
        /// Also those that were answered or have expired
        #[arg(long)]
        all: bool,
    },
    /// Show a command that waits, exactly as it would run
    #[command(after_help = "\
Examples:
  avfs approval show 01a1de36-3b62-77b2-8258-ad8380643645")]
    Show { id: String },
    /// Let a command run once; asks for the passphrase at this terminal
    #[command(after_help = "\
Examples:
  avfs approval approve 01a1de36-3b62-77b2-8258-ad8380643645
  avfs approval approve 01a1de36-3b62-77b2-8258-ad8380643645 --expires 5m")]
    Approve {
        id: String,
        /// How long it can be used [default: 15m]
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        expires: Option<u64>,
        /// Only if it would be shown as this: what `avfs approval show` ends with
        #[arg(long, value_name = "FINGERPRINT")]
        shown: Option<String>,
    },
    /// Refuse a command
    #[command(after_help = "\
Examples:
  avfs approval deny 01a1de36-3b62-77b2-8258-ad8380643645")]
    Deny { id: String },
    /// Show each command as it comes and ask; the passphrase is asked for once
    #[command(after_help = "\
Examples:
  avfs approval watch")]
    Watch,
}

fn lifetime(text: &str) -> Result<u64, String> {
    let lifetime = parse_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(lifetime.as_millis()).map_err(|_| "that is too long".into())
}
