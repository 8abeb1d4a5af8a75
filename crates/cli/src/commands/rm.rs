//! `avfs rm`: remove a file or directory of the vault.

use super::paths;
use crate::args::RmArgs;
use crate::error::Result;
use crate::output::Output;
use crate::session::Session;
use avfs_api::wire::Rm;

pub fn run(args: RmArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let request = Rm {
        path,
        path_b64,
        recursive: args.recursive,
        force: args.force,
    };
    let removed = session.call(&request)?;
    output.answer(&removed, |removed| {
        if removed.removed {
            format!("removed {}", removed.path)
        } else {
            format!("{} did not exist", removed.path)
        }
    })
}
