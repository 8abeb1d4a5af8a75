//! `avfs cat`: print a file of the vault.

use super::paths;
use crate::args::CatArgs;
use crate::error::Result;
use crate::output::Output;
use crate::session::Session;
use avfs_api::wire::{Cat, ReadContent};

pub fn run(args: CatArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let (version, offset, limit) = (args.version, args.offset, args.limit);
    if output.is_json() {
        let request = Cat {
            path,
            path_b64,
            version,
            offset,
            limit,
        };
        return output.value(&session.call(&request)?);
    }
    session.download(&ReadContent {
        path,
        path_b64,
        version,
        offset,
        limit,
    })
}
