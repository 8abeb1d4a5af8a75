//! Single paths.

use super::files::{at, vault_path};
use super::items;
use super::{Ask, Reply, parse};
use crate::wire::{
    Chmod, Copied, Cp, Edit, Edited, Linked, Ln, ModeChanged, Stat, StatItem, Touch, Touched, Tree,
    TreeEntry, TreeListing, TypeWord, from_text, to_text,
};
use avfs_runtime::{Content, Depth, Kind, Missing, NewLink, Occurrences, Select};

pub(crate) fn stat(ask: &Ask, vault: Select, request: Stat) -> Reply<Stat> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let stat = ask.session.stat(vault, &path).map_err(at(&path))?;
    let (path, path_b64) = items::path(&stat.path);
    let content_id = match &stat.entry.kind {
        Kind::File { content, .. } if *content != Content::EMPTY => {
            let (Content::Object(id) | Content::Chunks(id)) = content;
            Some(id.to_string())
        }
        _ => None,
    };
    let names = match &stat.names[..] {
        [_] => Vec::new(),
        names => names.iter().map(ToString::to_string).collect(),
    };
    Ok(StatItem {
        path,
        path_b64,
        attributes: items::attributes(&stat.entry),
        changed: items::time(stat.entry.meta.ctime),
        content_id,
        nlink: stat.names.len(),
        names,
        tags: stat.labels.tags,
        metadata: stat.labels.metadata,
        version: stat.version,
    })
}

pub(crate) fn tree(ask: &Ask, vault: Select, request: Tree) -> Reply<Tree> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let listed = ask
        .session
        .tree(vault, &path, request.level)
        .map_err(at(&path))?;
    let (path, path_b64) = items::path(&listed.path);
    let entries: Vec<_> = listed.nodes.into_iter().map(items::tree_entry).collect();
    // The directory itself is not among its entries; a file is.
    let is_directory = |entry: &TreeEntry| entry.kind == TypeWord::Directory;
    let files = entries.iter().filter(|entry| !is_directory(entry)).count();
    let directories = entries[1..]
        .iter()
        .filter(|entry| is_directory(entry))
        .count();
    Ok(TreeListing {
        path,
        path_b64,
        files,
        directories,
        entries,
        truncated: listed.truncated,
        version: listed.version,
    })
}

pub(crate) fn cp(ask: &Ask, vault: Select, request: Cp) -> Reply<Cp> {
    let source = vault_path(&request.source, request.source_b64.as_ref())?;
    let destination = vault_path(&request.destination, request.destination_b64.as_ref())?;
    let placed = ask
        .session
        .cp(vault, &source, &destination, depth(request.recursive))
        .map_err(at(&source))?;
    let (source, source_b64) = items::path(&source);
    let (destination, destination_b64) = items::path(&placed.path);
    Ok(Copied {
        source,
        source_b64,
        destination,
        destination_b64,
        copied: true,
        version: placed.version,
    })
}

pub(crate) fn ln(ask: &Ask, vault: Select, request: Ln) -> Reply<Ln> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let link = if request.symbolic {
        NewLink::Symbolic(from_text(&request.target, request.target_b64.as_ref()))
    } else {
        NewLink::Hard(vault_path(&request.target, request.target_b64.as_ref())?)
    };
    let placed = ask.session.ln(vault, &link, &path).map_err(at(&path))?;
    let (path, path_b64) = items::path(&placed.path);
    let (target, target_b64) = match link {
        NewLink::Symbolic(target) => to_text(target),
        NewLink::Hard(target) => items::path(&target),
    };
    Ok(Linked {
        path,
        path_b64,
        target,
        target_b64,
        symbolic: request.symbolic,
        version: placed.version,
    })
}

pub(crate) fn chmod(ask: &Ask, vault: Select, request: Chmod) -> Reply<Chmod> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let mode = parse(&request.mode)?;
    let changed = ask
        .session
        .chmod(vault, &path, &mode, depth(request.recursive))
        .map_err(at(&path))?;
    let (path, path_b64) = items::path(&changed.path);
    Ok(ModeChanged {
        path,
        path_b64,
        mode: format!("{:04o}", changed.mode),
        changed: changed.changed,
        version: changed.version,
    })
}

pub(crate) fn touch(ask: &Ask, vault: Select, request: Touch) -> Reply<Touch> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let touched = ask.session.touch(vault, &path, missing(request.no_create));
    let touched = touched.map_err(at(&path))?;
    let (path, path_b64) = items::path(&touched.path);
    Ok(Touched {
        path,
        path_b64,
        created: touched.created,
        version: touched.version,
    })
}

pub(crate) fn edit(ask: &Ask, vault: Select, request: Edit) -> Reply<Edit> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let old = from_text(&request.old, request.old_b64.as_ref());
    let new = from_text(&request.new, request.new_b64.as_ref());
    let which = occurrences(request.all);
    let replaced = ask.session.edit(vault, &path, &old, &new, which);
    let replaced = replaced.map_err(at(&path))?;
    let (path, path_b64) = items::path(&replaced.path);
    Ok(Edited {
        path,
        path_b64,
        replacements: replaced.replacements,
        size: replaced.size,
        version: replaced.version,
    })
}

fn missing(no_create: bool) -> Missing {
    match no_create {
        true => Missing::Leave,
        false => Missing::Create,
    }
}

fn occurrences(all: bool) -> Occurrences {
    match all {
        true => Occurrences::All,
        false => Occurrences::TheOnly,
    }
}

pub(super) fn depth(recursive: bool) -> Depth {
    if recursive {
        Depth::Recursive
    } else {
        Depth::Single
    }
}
