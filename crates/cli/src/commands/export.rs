//! `avfs export`: copy a directory of the vault to this machine.

use super::paths;
use crate::args::ExportArgs;
use crate::error::Result;
use crate::output::Output;
use crate::output::table::{count, size};
use crate::session::Session;
use avfs_api::wire::Export;

pub fn run(args: ExportArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let (host_dir, host_dir_b64) = paths::on_host(&args.host_dir)?;
    let exported = session.call(&Export {
        path,
        path_b64,
        host_dir,
        host_dir_b64,
    })?;
    output.answer(&exported, |exported| {
        format!(
            "exported {} ({}) to {}",
            count(exported.files_exported, "file"),
            size(exported.total_bytes),
            exported.real_path,
        )
    })
}
