//! `avfs transfer`: import from and export to the transfer directory.

use super::{export, import, paths};
use crate::args::TransferVerb;
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable;
use crate::session::Session;
use avfs_api::wire::{TransferIn, TransferOut, TransferSet, TransferShow, TransferState, to_text};
use std::os::unix::ffi::OsStringExt;

pub fn run(verb: TransferVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        TransferVerb::In(args) => {
            let (path, path_b64) = paths::in_vault(&args.path);
            let (name, name_b64) = to_text(args.name.into_vec());
            let request = TransferIn {
                name,
                name_b64,
                path,
                path_b64,
                exclude: args.exclude,
                gitignore: args.gitignore,
                max_depth: args.max_depth,
            };
            let imported = session.call_watched(&request, output, "importing")?;
            output.answer(&imported, import::text)
        }
        TransferVerb::Out(args) => {
            let (path, path_b64) = paths::in_vault(&args.path);
            let (name, name_b64) = to_text(args.name.into_vec());
            let request = TransferOut {
                path,
                path_b64,
                name,
                name_b64,
            };
            let exported = session.call_watched(&request, output, "exporting")?;
            output.answer(&exported, export::text)
        }
        TransferVerb::Show => output.answer(&session.call(&TransferShow {})?, text),
        TransferVerb::Set(args) => {
            let (dir, dir_b64) = paths::on_host(&args.dir)?;
            let request = TransferSet {
                dir: Some(dir.into()),
                dir_b64,
            };
            output.answer(&session.call(&request)?, text)
        }
        TransferVerb::Off => output.answer(&session.call(&TransferSet::default())?, text),
    }
}

fn text(state: &TransferState) -> String {
    match &state.dir {
        Some(dir) => format!("agents may import from and export to {}", printable(dir)),
        None => "there is no transfer directory; `avfs transfer set DIR` sets one".into(),
    }
}
