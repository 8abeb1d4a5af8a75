//! The words of `avfs mcp`.

use clap::Args;

#[derive(Debug, Args)]
pub struct McpArgs {
    /// Tools to offer: core, guide, sandbox, or several of them, comma-separated
    #[arg(long, value_name = "SETS", default_value = "core")]
    pub toolset: String,
    /// Name of the agent, for the journal; its jobs and vaults belong to this name
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Allow these vaults only, comma-separated
    #[arg(long, value_name = "VAULTS")]
    pub only: Option<String>,
    /// Allow these scopes only: read, write, run, comma-separated
    #[arg(long, value_name = "SCOPES")]
    pub scopes: Option<String>,
}
