//! `avfs edit`: replace one exact text in a file of the vault.

use super::paths;
use crate::args::EditArgs;
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable;
use crate::output::table::count;
use crate::session::Session;
use avfs_api::wire::{Edit, to_text};
use std::os::unix::ffi::OsStringExt;

pub fn run(args: EditArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let (old, old_b64) = to_text(args.old.into_vec());
    let (new, new_b64) = to_text(args.new.into_vec());
    let edited = session.call(&Edit {
        path,
        path_b64,
        old,
        old_b64,
        new,
        new_b64,
        all: args.all,
    })?;
    output.answer(&edited, |edited| {
        let number = count(edited.replacements as u64, "replacement");
        format!("edited {}: {number}", printable(&edited.path))
    })
}
