//! `avfs cp`: copy a file or directory in the vault.

use super::paths;
use crate::args::CpArgs;
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable;
use crate::session::Session;
use avfs_api::wire::Cp;

pub fn run(args: CpArgs, session: &mut Session, output: Output) -> Result<()> {
    let (source, source_b64) = paths::in_vault(&args.source);
    let (destination, destination_b64) = paths::in_vault(&args.destination);
    let copied = session.call(&Cp {
        source,
        source_b64,
        destination,
        destination_b64,
        recursive: args.recursive,
    })?;
    output.answer(&copied, |copied| {
        let (from, to) = (printable(&copied.source), printable(&copied.destination));
        format!("copied {from} to {to}")
    })
}
