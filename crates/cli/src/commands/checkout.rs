//! `avfs checkout` and `avfs revert`: restore a path from an older version.

use super::paths;
use crate::args::{CheckoutArgs, RevertArgs};
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable;
use crate::session::Session;
use avfs_api::wire::{Checkout, Revert};

pub fn run(args: CheckoutArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let version = args.version;
    let done = session.call(&Checkout {
        path,
        path_b64,
        version,
    })?;
    output.answer(&done, |done| {
        let path = printable(&done.path);
        let (old, new) = (done.restored_version, done.new_version);
        format!("restored {path} from v{old} (now v{new})")
    })
}

pub fn revert(args: RevertArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let done = session.call(&Revert { path, path_b64 })?;
    output.answer(&done, |done| {
        let path = printable(&done.path);
        let (from, to) = (done.reverted_from, done.reverted_to);
        format!(
            "{path} is as it was from v{to} until v{from} (now v{})",
            done.new_version
        )
    })
}
