//! Content of any size as byte streams: only a few pieces are in memory.

use super::Ask;
use super::failure::Failure;
use super::files::{at, store, vault_path, write_options};
use super::handler::{Opened, Reply};
use crate::wire::{ReadContent, WriteContent};
use avfs_runtime::{Select, Watcher};
use std::io::Read;
use std::ops::Range;

/// What is read of a file at once.
const PIECE: usize = 256 << 10;

pub(crate) fn read(ask: &Ask, vault: Select, request: ReadContent) -> Result<Opened, Failure> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let file = ask.session.open_file(vault, &path, request.version);
    let file = file.map_err(at(&path))?;
    let end = match request.limit {
        Some(limit) => file.size.min(request.offset.saturating_add(limit)),
        None => file.size,
    };
    let part = request.offset..end;
    let first = match piece_length(&part) {
        0 => Vec::new(),
        length => file.read_at(part.start, length).map_err(at(&path))?,
    };
    Ok(Opened { file, part, first })
}

/// How much of a part is read at once.
pub(crate) fn piece_length(part: &Range<u64>) -> usize {
    let left = part.end.saturating_sub(part.start);
    usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))
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
