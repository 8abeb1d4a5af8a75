//! `avfs chmod`: change permissions in the vault.

use super::paths;
use crate::args::ChmodArgs;
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable;
use crate::output::table::count;
use crate::session::Session;
use avfs_api::wire::Chmod;

pub fn run(args: ChmodArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let changed = session.call(&Chmod {
        path,
        path_b64,
        mode: args.mode,
        recursive: args.recursive,
    })?;
    output.answer(&changed, |changed| {
        let path = printable(&changed.path);
        let number = count(changed.changed as u64, "path");
        format!("{path} has mode {}; {number} changed", changed.mode)
    })
}
