//! Content of any size as byte streams: only a few pieces are in memory.

use super::Ask;
use super::failure::Failure;
use super::files::{at, store, vault_path, write_options};
use super::handler::{Opened, Reply};
use crate::wire::{ReadContent, WriteContent};
use avfs_runtime::{Select, Tags, Watcher, WriteCondition};
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
    let mut options = write_options(request.append, request.parents, request.mode.as_deref())?;
    options.only_if = WriteCondition {
        has: request.if_match.as_deref().map(tags).transpose()?,
        has_not: request.if_none_match.as_deref().map(tags).transpose()?,
    };
    store(ask, vault, &path, content, &options)
}

/// Ids of contents, as a request or a header lists them: `*`, `"ID"`, `ID`, separated by commas. A weak one (`W/"ID"`)
/// fits nothing, because ids are compared exactly.
pub(crate) fn tags(text: &str) -> Result<Tags, Failure> {
    if text.trim() == "*" {
        return Ok(Tags::Any);
    }
    let mut tags = Vec::new();
    for tag in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let is_weak = tag.starts_with("W/");
        let quoted = tag.strip_prefix("W/").unwrap_or(tag);
        let inner = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        let id = inner.unwrap_or(quoted);
        if id.is_empty() || id.contains(['"', '*', ' ']) {
            return Err(Failure::invalid(format!("{tag:?} is no id of content")));
        }
        if !is_weak {
            tags.push(id.to_owned());
        }
    }
    Ok(Tags::Of(tags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_headers_write_them() {
        let of = |ids: &[&str]| Tags::Of(ids.iter().map(|it| (*it).to_owned()).collect());
        for (text, expected) in [
            ("*", Tags::Any),
            (" * ", Tags::Any),
            ("\"a\"", of(&["a"])),
            ("a", of(&["a"])),
            ("\"a\", \"b\"", of(&["a", "b"])),
            ("W/\"a\"", of(&[])),
            ("", of(&[])),
        ] {
            assert_eq!(tags(text).unwrap(), expected, "{text}");
        }
        for text in ["\"a", "a\"", "*, \"a\"", "\"\"", "a b"] {
            assert!(tags(text).is_err(), "{text}");
        }
    }
}
