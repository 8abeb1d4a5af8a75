//! Arguments of `avfs secret`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

use super::vaults::VaultPatternArgs;

#[derive(Debug, Subcommand)]
pub enum SecretVerb {
    /// Set a secret; its value is read from standard input, a file or a command
    #[command(after_help = "\
Examples:
  avfs secret set API_TOKEN --host api.example.com < token.txt
  avfs secret set API_TOKEN --host api.example.com --command 'pass show example/token'
  avfs secret set SEARCH_KEY --host search.example.com --header 'X-Api-Key: {}' --file key.txt
  avfs secret set GIT_TOKEN --host git.example.com --basic git --file token.txt
  avfs secret set API_TOKEN --host api.example.com --vault 'team-*' < token.txt

Requests of commands to these hosts get the header on their way out, whatever the command sent in it. TLS to these hosts, and
to no others, is opened for that. Commands never have the value: the variable of the secret's name holds a placeholder. The value is
stored encrypted; the key is in the configuration directory of this user.")]
    Set(SecretSetArgs),
    /// List the secrets, without their values
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  avfs secret list
  avfs secret list --json | jq -r '.secrets[].name'"
    )]
    List,
    /// Remove a secret
    #[command(after_help = "\
Examples:
  avfs secret rm API_TOKEN")]
    Rm {
        /// Name of the secret
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct SecretSetArgs {
    /// Name of a variable, such as API_TOKEN
    pub name: String,
    /// Host that it is for, such as example.com or *.example.com. Can be repeated
    #[arg(
        long = "host",
        value_name = "HOST",
        required = true,
        value_delimiter = ','
    )]
    pub hosts: Vec<String>,
    /// Header, with {} for the value [default: 'Authorization: Bearer {}']
    #[arg(long, value_name = "HEADER")]
    pub header: Option<String>,
    /// Send the value as the password of this user, as git hosts want it
    #[arg(long, value_name = "USER", conflicts_with = "header")]
    pub basic: Option<String>,
    /// Put it into requests over plain HTTP, too
    #[arg(long)]
    pub allow_plain_http: bool,
    #[command(flatten)]
    pub reach: VaultPatternArgs,
    /// Read the value from this file
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// Take what this shell command prints
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
}
