//! `avfs ln`: make a hard or symbolic link.

use super::paths;
use crate::args::LnArgs;
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable;
use crate::session::Session;
use avfs_api::wire::{Ln, to_text};
use std::os::unix::ffi::OsStringExt;

pub fn run(args: LnArgs, session: &mut Session, output: Output) -> Result<()> {
    // The target of a symbolic link is stored unchanged, relative or not.
    let (target, target_b64) = if args.symbolic {
        to_text(args.target.into_vec())
    } else {
        paths::in_vault(&args.target)
    };
    let (path, path_b64) = paths::in_vault(&args.path);
    let linked = session.call(&Ln {
        target,
        target_b64,
        path,
        path_b64,
        symbolic: args.symbolic,
    })?;
    output.answer(&linked, |linked| {
        let (path, target) = (printable(&linked.path), printable(&linked.target));
        if linked.symbolic {
            format!("linked {path} -> {target}")
        } else {
            format!("{path} is now a hard link to {target}")
        }
    })
}
