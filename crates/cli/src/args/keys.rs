//! The words of `avfs key`.

use super::time::in_millis;
use clap::{Args, Subcommand};

use super::vaults::VaultPatternArgs;

#[derive(Debug, Subcommand)]
pub enum KeyVerb {
    /// Create a key and print it; only its hash is stored
    #[command(after_help = "\
Examples:
  avfs key create ci --scope read,write,exec --vault 'ci-*' --expires 30d
  avfs key create viewer --scope read --expires never
  avfs key create claude --scope read,write,exec --asks-user

Scopes: read (files, history, jobs, rules, journal), write (files, checkpoints, forks), exec (commands),
approve (answer approvals), admin (everything that the owner may). A key without approve and admin is of
the agent class.")]
    Create(KeyCreateArgs),
    /// List the keys, without their secrets
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  avfs key list
  avfs key list --json | jq -r '.keys[].name'"
    )]
    List,
    /// Revoke a key and close its connections
    #[command(after_help = "\
Examples:
  avfs key revoke ci")]
    Revoke {
        /// Name of the key
        name: String,
    },
    /// Replace the secret of a key; the old one is refused at once
    #[command(after_help = "\
Examples:
  avfs key rotate ci
  avfs key rotate ci --expires 90d")]
    Rotate(KeyRotateArgs),
}

#[derive(Debug, Args)]
pub struct KeyCreateArgs {
    /// Name of the holder in the journal; a name cannot be used twice
    pub name: String,
    /// Allowed scopes, separated by commas
    #[arg(
        long = "scope",
        value_name = "SCOPES",
        value_delimiter = ',',
        default_value = "read"
    )]
    pub scopes: Vec<String>,
    #[command(flatten)]
    pub reach: VaultPatternArgs,
    /// Lifetime such as 30d or 12h, or never
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = lifetime)]
    pub expires: Lifetime,
    /// Requests per second that are served; up to twice as many at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
    /// Name its MCP client as an approver: the client asks its user about commands that need approval
    #[arg(long)]
    pub asks_user: bool,
}

#[derive(Debug, Args)]
pub struct KeyRotateArgs {
    /// Name of the key
    pub name: String,
    /// New lifetime such as 30d, or never; unchanged when left out
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub expires: Option<Lifetime>,
}

/// A number of seconds; none means never.
#[derive(Copy, Clone, Debug)]
pub struct Lifetime(pub Option<u64>);

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime(None));
    }
    let time =
        in_millis(text).map_err(|_| format!("{text:?} is not like 30d, 12h, 90s or never"))?;
    let seconds = time.millis() / 1000;
    match seconds {
        0 => Err("that is less than a second".into()),
        seconds => Ok(Lifetime(Some(seconds))),
    }
}
