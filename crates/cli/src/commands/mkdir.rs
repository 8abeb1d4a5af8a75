//! `avfs mkdir`: create a directory in the vault.

use super::paths;
use crate::args::MkdirArgs;
use crate::error::Result;
use crate::output::Output;
use crate::session::Session;
use avfs_api::wire::Mkdir;

pub fn run(args: MkdirArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let made = session.call(&Mkdir {
        path,
        path_b64,
        parents: args.parents,
    })?;
    output.answer(&made, |made| format!("made {}", made.path))
}
