//! agentkernel's tools by their names. A sandbox is a vault; what needs an image or a network is refused with the reason.

mod exec;
mod files;
mod lives;
mod snapshots;

use super::tools::Tool;

pub(crate) const TOOLS: &[Tool] = &[
    Tool::new::<exec::Run>(),
    Tool::new::<lives::Create>(),
    Tool::new::<exec::ExecIn>(),
    Tool::new::<lives::List>(),
    Tool::new::<lives::Remove>(),
    Tool::new::<lives::Start>(),
    Tool::new::<lives::Stop>(),
    Tool::new::<lives::Fork>(),
    Tool::new::<files::Write>(),
    Tool::new::<files::WriteAll>(),
    Tool::new::<files::Read>(),
    Tool::new::<exec::Detach>(),
    Tool::new::<exec::Status>(),
    Tool::new::<exec::Logs>(),
    Tool::new::<exec::Kill>(),
    Tool::new::<exec::ListDetached>(),
    Tool::new::<snapshots::List>(),
    Tool::new::<snapshots::Take>(),
    Tool::new::<snapshots::Get>(),
    Tool::new::<snapshots::Delete>(),
    Tool::new::<snapshots::Restore>(),
];

/// What is called when a sandbox is not there.
const LIST: Option<&str> = Some("sandbox_list");
