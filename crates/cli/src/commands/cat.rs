//! `avfs cat`: print a file of the vault.

use super::paths;
use crate::args::PathArg;
use crate::error::Result;
use crate::output::{Output, raw};
use crate::session::Session;
use avfs_api::wire::Cat;

pub fn run(args: PathArg, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let file = session.call(&Cat { path, path_b64 })?;
    if output.is_json() {
        return output.value(&file);
    }
    match &file.content_b64 {
        Some(exact) => raw(&exact.0),
        None => raw(file.content.as_bytes()),
    }
}
