//! `avfs write`: write a file of the vault.

use super::paths;
use crate::args::WriteArgs;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::output::table::size;
use crate::session::Session;
use avfs_api::wire::{Daemon, Write, WriteContent, Written, to_text};
use std::fs::File;
use std::io::{Cursor, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// Longer content is sent as a stream.
const INLINE_MAX: u64 = 16 << 10;

/// The content to write.
enum Content {
    Bytes(Vec<u8>),
    Stream(Box<dyn Read + Send>),
}

pub fn run(args: WriteArgs, session: &mut Session, output: Output) -> Result<()> {
    let content = match (args.content, &args.from_file) {
        (Some(content), _) => take(Cursor::new(content.into_vec()), "the content")?,
        (None, Some(file)) => from_file(file)?,
        (None, None) => take(std::io::stdin(), "standard input")?,
    };
    let (path, path_b64) = paths::in_vault(&args.path);
    let written: Written = match content {
        Content::Bytes(bytes) => {
            let (text, exact) = to_text(bytes);
            session.call(&Write {
                path,
                path_b64,
                // The exact bytes as base64 suffice.
                content: if exact.is_some() { String::new() } else { text },
                content_b64: exact,
                append: args.append,
                parents: args.parents,
                mode: args.mode,
            })?
        }
        Content::Stream(bytes) => {
            let request = WriteContent {
                path,
                path_b64,
                append: args.append,
                parents: args.parents,
                mode: args.mode,
                ..WriteContent::default()
            };
            // A stream can be sent only once, so a daemon of another version is replaced before.
            session.call(&Daemon {})?;
            session.upload(&request, bytes, output, "writing")?
        }
    };
    output.answer(&written, |written| {
        let verb = if written.appended {
            "appended to"
        } else {
            "wrote"
        };
        format!("{verb} {} ({})", written.path, size(written.size))
    })
}

fn from_file(path: &Path) -> Result<Content> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(Error::io(format!("cannot read {name}")))?;
    take(file, &name)
}

/// Short content goes into the request; longer content is read while it is sent.
fn take(mut stream: impl Read + Send + 'static, name: &str) -> Result<Content> {
    let mut bytes = Vec::new();
    (&mut stream)
        .take(INLINE_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(Error::io(format!("cannot read {name}")))?;
    if bytes.len() as u64 <= INLINE_MAX {
        return Ok(Content::Bytes(bytes));
    }
    Ok(Content::Stream(Box::new(Cursor::new(bytes).chain(stream))))
}
