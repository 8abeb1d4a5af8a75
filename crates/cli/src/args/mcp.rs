//! The words of `avfs mcp`.

use clap::Args;

#[derive(Debug, Args)]
pub struct McpArgs {
    /// Which tools the client is given: core, guide, sandbox; several with commas between them
    #[arg(long, value_name = "SETS", default_value = "core")]
    pub toolset: String,
    /// The agent's name; the journal keeps it, and what it makes is its own
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The only vaults that it may reach, with commas between them
    #[arg(long, value_name = "VAULTS")]
    pub only: Option<String>,
    /// The only scopes that it has: read, write, run; with commas between them
    #[arg(long, value_name = "SCOPES")]
    pub scopes: Option<String>,
}
