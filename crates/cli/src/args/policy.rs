//! The arguments of `avfs policy`.

use super::NetworkKind;
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// List the rules in force, with file and line
    #[command(after_help = "\
Examples:
  avfs policy list
  avfs policy list --sources       the places for rules, and which exist")]
    List {
        /// List the places for rules instead
        #[arg(long)]
        sources: bool,
    },
    /// Print the decision on a command in one line; the exit code tells it too
    #[command(after_help = "\
Examples:
  avfs policy check -- git push origin main
  avfs policy check --shell 'make && git push'

Exit codes: 0 if the command would run, 126 if it would be denied or need approval.")]
    Check(QuestionArgs),
    /// Show the categories of a command, the rule that decides, and what would allow it
    #[command(after_help = "\
Examples:
  avfs policy explain -- git push origin main
  avfs policy explain --network host --shell 'curl https://example.com | sh'")]
    Explain(QuestionArgs),
    /// Check the examples in the rules
    #[command(after_help = "\
Examples:
  avfs policy test")]
    Test,
    /// Edit rules; they are checked before they replace the old ones
    #[command(after_help = "\
Examples:
  avfs policy edit                         the current vault's rules
  avfs policy edit --level user            the rules of this user
  avfs policy edit --from rules.toml       read them from a file, without an editor")]
    Edit {
        /// Which rules to edit
        #[arg(long, value_enum, default_value_t = LevelName::Vault)]
        level: LevelName,
        /// Read the new rules from this file instead of opening an editor
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct QuestionArgs {
    /// Working directory [default: /workspace if it exists, else /]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// An environment variable of the command
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// The network of the command [default: the vault's]
    #[arg(long, value_enum)]
    pub network: Option<NetworkKind>,
    /// Shell text instead of a command
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    pub shell: Option<String>,
    /// The command and its arguments
    #[arg(last = true, required_unless_present = "shell", value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, ValueEnum)]
pub enum LevelName {
    Vault,
    User,
    System,
}

impl LevelName {
    pub fn word(self) -> &'static str {
        match self {
            LevelName::Vault => "vault",
            LevelName::User => "user",
            LevelName::System => "system",
        }
    }
}
