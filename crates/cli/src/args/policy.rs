//! The words of `avfs policy`.

use super::NetworkName;
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// List the rules in force and where each is written
    #[command(after_help = "\
Examples:
  avfs policy list
  avfs policy list --sources       where rules can be written, and what is there")]
    List {
        /// Show the places where rules can be written instead
        #[arg(long)]
        sources: bool,
    },
    /// Say whether a command would run, in one line and in the exit code
    #[command(after_help = "\
Examples:
  avfs policy check -- git push origin main
  avfs policy check --shell 'make && git push'

Exit codes: 0 it would run, 126 it would be denied or need approval.")]
    Check(QuestionArgs),
    /// Say what a command is taken for, which rule decides, and what would allow it
    #[command(after_help = "\
Examples:
  avfs policy explain -- git push origin main
  avfs policy explain --network host --shell 'curl https://example.com | sh'")]
    Explain(QuestionArgs),
    /// Try every example that the rules carry
    #[command(after_help = "\
Examples:
  avfs policy test")]
    Test,
    /// Change rules in an editor; they are checked before they replace the old ones
    #[command(after_help = "\
Examples:
  avfs policy edit                         the current vault's rules
  avfs policy edit --level user            those of this user
  avfs policy edit --from rules.toml       take them from a file, without an editor")]
    Edit {
        /// Whose rules
        #[arg(long, value_enum, default_value_t = LevelName::Vault)]
        level: LevelName,
        /// Take the new rules from this file instead of an editor
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct QuestionArgs {
    /// Where it would run [default: /workspace if there is one, else /]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// A variable it would be given
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// The network it would have
    #[arg(long, value_enum, default_value_t = NetworkName::None)]
    pub network: NetworkName,
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
