//! `avfs cat`: print a file of the vault.

use super::paths;
use crate::args::CatArgs;
use crate::error::Result;
use crate::output::{Output, raw};
use crate::session::Session;
use avfs_api::wire::{Cat, FileBody};

/// A large file is printed in pieces of this many bytes.
const PIECE: u64 = 4 << 20;

pub fn run(args: CatArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let mut request = Cat {
        path,
        path_b64,
        version: args.version,
        offset: args.offset,
        limit: args.limit,
    };
    if output.is_json() {
        return output.value(&session.call(&request)?);
    }
    let mut left = args.limit.unwrap_or(u64::MAX);
    loop {
        request.limit = Some(left.min(PIECE));
        let file = session.call(&request)?;
        let bytes = content(&file);
        raw(bytes)?;
        let length = bytes.len() as u64;
        left = left.saturating_sub(length);
        if !file.more || left == 0 || length == 0 {
            return Ok(());
        }
        request.offset += length;
        // The rest must be of the same time as the beginning; scratch files have no past.
        if !file.path.starts_with("/tmp/") {
            request.version = Some(file.version);
        }
    }
}

fn content(file: &FileBody) -> &[u8] {
    match &file.content_b64 {
        Some(exact) => &exact.0,
        None => file.content.as_bytes(),
    }
}
