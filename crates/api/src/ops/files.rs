//! Files.

use super::failure::Failure;
use super::items;
use super::{Ask, Reply, parse};
use crate::wire::{
    Base64, Cat, FileBody, Listing, Ls, MadeDirectory, Mkdir, Moved, Mv, Removed, Rm, Write,
    Written, from_text, from_text_if_any, to_text,
};
use avfs_runtime::{
    Depth, ErrorKind, ListRequest, Parents, ReadOptions, Select, VaultPath, WriteCondition,
    WriteMode, WriteOptions,
};
use std::io::Read;

pub(crate) fn ls(ask: &Ask, vault: Select, request: Ls) -> Reply<Ls> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let asked = ListRequest {
        after: from_text_if_any(request.after.as_deref(), request.after_b64.as_ref()),
        limit: request.limit,
    };
    let listing = ask.session.ls(vault, &path, &asked).map_err(at(&path))?;
    Ok(Listing {
        entries: listing.entries.into_iter().map(items::listed).collect(),
        more: listing.more,
    })
}

pub(crate) fn cat(ask: &Ask, vault: Select, request: Cat) -> Reply<Cat> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let options = ReadOptions {
        version: request.version,
        offset: request.offset,
        limit: request.limit,
    };
    let file = ask.session.cat(vault, &path, &options).map_err(at(&path))?;
    let end = request.offset.saturating_add(file.bytes.len() as u64);
    let (path, path_b64) = items::path(&file.path);
    let (content, content_b64) = to_text(file.bytes);
    Ok(FileBody {
        path,
        path_b64,
        content,
        content_b64,
        size: file.size,
        offset: request.offset,
        more: end < file.size,
        hint: (end < file.size).then(|| {
            format!("ask again with the offset {end}; `avfs cat` without --json gives all of it")
        }),
        version: file.version,
    })
}

pub(crate) fn write(ask: &Ask, vault: Select, request: Write) -> Reply<Write> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let mut content = match &request.content_b64 {
        Some(exact) => &exact.0[..],
        None => request.content.as_bytes(),
    };
    let options = write_options(request.append, request.parents, request.mode.as_deref())?;
    store(ask, vault, &path, &mut content, &options)
}

pub(crate) fn write_options(
    append: bool,
    make_parents: bool,
    mode: Option<&str>,
) -> Result<WriteOptions, Failure> {
    Ok(WriteOptions {
        how: if append {
            WriteMode::Append
        } else {
            WriteMode::Replace
        },
        parents: parents(make_parents),
        mode: mode.map(parse).transpose()?,
        only_if: WriteCondition::default(),
    })
}

/// Writes what `content` yields.
pub(crate) fn store(
    ask: &Ask,
    vault: Select,
    path: &VaultPath,
    content: &mut dyn Read,
    options: &WriteOptions,
) -> Result<Written, Failure> {
    let written = ask.session.write(vault, path, content, options);
    let written = written.map_err(at(path))?;
    let (path, path_b64) = items::path(&written.path);
    Ok(Written {
        path,
        path_b64,
        size: written.size,
        appended: options.how == WriteMode::Append,
        version: written.version,
        content_id: written.tag,
    })
}

pub(crate) fn mkdir(ask: &Ask, vault: Select, request: Mkdir) -> Reply<Mkdir> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    ask.session
        .mkdir(vault, &path, parents(request.parents))
        .map_err(at(&path))?;
    let (path, path_b64) = items::path(&path);
    Ok(MadeDirectory {
        path,
        path_b64,
        created: true,
    })
}

pub(crate) fn rm(ask: &Ask, vault: Select, request: Rm) -> Reply<Rm> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    // A missing vault is an error even with `force`.
    ask.session.vault_info(vault.clone())?;
    let depth = if request.recursive {
        Depth::Recursive
    } else {
        Depth::Single
    };
    let removed = match ask.session.rm(vault, &path, depth) {
        Ok(()) => true,
        Err(error) if request.force && error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(at(&path)(error)),
    };
    let (path, path_b64) = items::path(&path);
    Ok(Removed {
        path,
        path_b64,
        removed,
    })
}

pub(crate) fn mv(ask: &Ask, vault: Select, request: Mv) -> Reply<Mv> {
    let source = vault_path(&request.source, request.source_b64.as_ref())?;
    let destination = vault_path(&request.destination, request.destination_b64.as_ref())?;
    let ended_at = ask
        .session
        .mv(vault, &source, &destination)
        .map_err(at(&source))?;
    let (source, source_b64) = items::path(&source);
    let (destination, destination_b64) = items::path(&ended_at);
    Ok(Moved {
        source,
        source_b64,
        destination,
        destination_b64,
        moved: true,
    })
}

fn parents(make: bool) -> Parents {
    if make {
        Parents::Make
    } else {
        Parents::Require
    }
}

/// A path of the vault from its text, or from its exact bytes if given.
pub(crate) fn vault_path(text: &str, exact: Option<&Base64>) -> Result<VaultPath, Failure> {
    parse_path(&from_text(text, exact), text)
}

/// A path that may be left out.
pub(crate) fn vault_path_if_any(
    text: Option<&str>,
    exact: Option<&Base64>,
) -> Result<Option<VaultPath>, Failure> {
    let bytes = from_text_if_any(text, exact);
    let path = bytes.map(|bytes| parse_path(&bytes, text.unwrap_or_default()));
    path.transpose()
}

fn parse_path(bytes: &[u8], shown: &str) -> Result<VaultPath, Failure> {
    VaultPath::parse(bytes)
        .map_err(|error| Failure::from(avfs_runtime::Error::from(error)).at(shown))
}

pub(crate) fn at(path: &VaultPath) -> impl Fn(avfs_runtime::Error) -> Failure {
    move |error| Failure::from(error).at(&path.to_string())
}
