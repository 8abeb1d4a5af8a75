//! `avfs touch`: set a file's times to now; create the file if it does not exist.

use super::paths;
use crate::args::TouchArgs;
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable;
use crate::session::Session;
use avfs_api::wire::Touch;

pub fn run(args: TouchArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let touched = session.call(&Touch {
        path,
        path_b64,
        no_create: args.no_create,
    })?;
    output.answer(&touched, |touched| {
        let verb = if touched.created { "made" } else { "touched" };
        format!("{verb} {}", printable(&touched.path))
    })
}
