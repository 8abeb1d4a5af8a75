//! `avfs mv`: move or rename a file or directory in the vault.

use super::paths;
use crate::args::MvArgs;
use crate::error::Result;
use crate::output::Output;
use crate::session::Session;
use avfs_api::wire::Mv;

pub fn run(args: MvArgs, session: &mut Session, output: Output) -> Result<()> {
    let (source, source_b64) = paths::in_vault(&args.source);
    let (destination, destination_b64) = paths::in_vault(&args.destination);
    let moved = session.call(&Mv {
        source,
        source_b64,
        destination,
        destination_b64,
    })?;
    output.answer(&moved, |moved| {
        format!("moved {} to {}", moved.source, moved.destination)
    })
}
