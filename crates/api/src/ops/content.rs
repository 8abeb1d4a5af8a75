//! Content of any size as a stream of bytes, in and out: never more than some pieces of it are in memory.

use super::Ask;
use super::failure::Failure;
use super::files::{at, store, vault_path, write_options};
use super::handler::Reply;
use crate::wire::{ReadContent, WriteContent};
use avfs_runtime::{Select, Watcher};
use std::io::{Read, Write};

/// What is read of a file at once.
const PIECE: u64 = 64 << 10;

pub(crate) fn read(
    ask: &Ask,
    vault: Select,
    request: ReadContent,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let file = ask.session.open_file(vault, &path, request.version);
    let file = file.map_err(at(&path))?;
    let end = match request.limit {
        Some(limit) => file.size.min(request.offset.saturating_add(limit)),
        None => file.size,
    };
    let mut offset = request.offset;
    while offset < end {
        let length = usize::try_from((end - offset).min(PIECE)).unwrap_or(usize::MAX);
        let piece = file.read_at(offset, length).map_err(at(&path))?;
        if piece.is_empty() {
            let what = format!("{path} ends before its size says so");
            return Err(Failure::new(avfs_runtime::ErrorKind::Corrupt, what));
        }
        if out.write_all(&piece).is_err() {
            // Nobody reads any further.
            return Ok(());
        }
        offset += piece.len() as u64;
    }
    Ok(())
}

pub(crate) fn write(
    ask: &Ask,
    vault: Select,
    request: WriteContent,
    content: &mut dyn Read,
    _: &dyn Watcher,
) -> Reply<WriteContent> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let options = write_options(request.append, request.parents, request.mode.as_deref())?;
    store(ask, vault, &path, content, &options)
}
