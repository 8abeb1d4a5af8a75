//! The words of `avfs mcp`.

use clap::Args;

#[derive(Debug, Args)]
pub struct McpArgs {
    /// Tools to offer: core, guide, sandbox, or several of them, comma-separated; as the vault's mode says, else core, when left out
    #[arg(long, value_name = "SETS")]
    pub toolset: Option<String>,
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
