//! The flat workspace tools of agentiso's guide, with its parameters, defaults and result keys. A workspace is a vault.

mod exec;
mod files;
mod git;
pub(crate) mod lifecycle;
mod network;
mod snapshots;
pub(crate) mod workspace;

use super::tools::Tool;

pub(crate) const TOOLS: &[Tool] = &[
    Tool::new::<lifecycle::Create>(),
    Tool::new::<lifecycle::Destroy>(),
    Tool::new::<lifecycle::Start>(),
    Tool::new::<lifecycle::Stop>(),
    Tool::new::<lifecycle::List>(),
    Tool::new::<lifecycle::Info>(),
    Tool::new::<lifecycle::Logs>(),
    Tool::new::<lifecycle::Adopt>(),
    Tool::new::<lifecycle::AdoptAll>(),
    Tool::new::<lifecycle::Prepare>(),
    Tool::new::<exec::Run>(),
    Tool::new::<exec::Background>(),
    Tool::new::<exec::Poll>(),
    Tool::new::<exec::Kill>(),
    Tool::new::<exec::Parallel>(),
    Tool::new::<exec::SetEnv>(),
    Tool::new::<files::Write>(),
    Tool::new::<files::Read>(),
    Tool::new::<files::Edit>(),
    Tool::new::<files::List>(),
    Tool::new::<files::Upload>(),
    Tool::new::<files::Download>(),
    Tool::new::<snapshots::Create>(),
    Tool::new::<snapshots::Restore>(),
    Tool::new::<snapshots::List>(),
    Tool::new::<snapshots::Delete>(),
    Tool::new::<snapshots::Compare>(),
    Tool::new::<snapshots::Fork>(),
    Tool::new::<snapshots::BatchFork>(),
    Tool::new::<network::PortForward>(),
    Tool::new::<network::PortForwardRemove>(),
    Tool::new::<network::Policy>(),
    Tool::new::<network::Ip>(),
    Tool::new::<git::Clone>(),
    Tool::new::<git::Push>(),
    Tool::new::<git::Status>(),
    Tool::new::<git::WorkspaceStatus>(),
    Tool::new::<git::Commit>(),
    Tool::new::<git::Diff>(),
];

/// What is called when a workspace is not there.
const LIST: Option<&str> = Some("workspace_list");
