//! `avfs write`: write a file of the vault.

use super::paths;
use crate::args::WriteArgs;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::output::table::size;
use crate::session::Session;
use avfs_api::wire::{Write, to_text};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

pub fn run(args: WriteArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let content = match args.content {
        Some(content) => content.into_vec(),
        None => {
            let mut content = Vec::new();
            std::io::stdin()
                .read_to_end(&mut content)
                .map_err(Error::io("cannot read standard input"))?;
            content
        }
    };
    let (content, content_b64) = to_text(content);
    // The exact bytes are enough, and half as many.
    let content = if content_b64.is_some() {
        String::new()
    } else {
        content
    };
    let request = Write {
        path,
        path_b64,
        content,
        content_b64,
        append: args.append,
    };
    let written = session.call(&request)?;
    output.answer(&written, |written| {
        let verb = if written.appended {
            "appended to"
        } else {
            "wrote"
        };
        format!("{verb} {} ({})", written.path, size(written.size))
    })
}
