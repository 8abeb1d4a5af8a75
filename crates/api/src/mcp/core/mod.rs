//! The tools that an agent is given when nobody says otherwise: few, for nine tenths of the work.

mod exec;
mod files;
mod job;
mod search;
mod vault;

use super::tools::Tool;

pub(crate) const TOOLS: &[Tool] = &[
    Tool::new::<exec::ExecTool>(),
    Tool::new::<job::JobTool>(),
    Tool::new::<files::ReadTool>(),
    Tool::new::<files::WriteTool>(),
    Tool::new::<files::EditTool>(),
    Tool::new::<search::SearchTool>(),
    Tool::new::<vault::VaultTool>(),
    Tool::new::<vault::CheckpointTool>(),
];

/// What is called when a vault is not there.
const LIST_VAULTS: Option<&str> = Some("vault {\"action\":\"list\"}");
