//! `avfs tag`, `untag` and `meta`: labels of paths.

use super::paths;
use crate::args::{MetaArgs, TagArgs, UntagArgs};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::output::changes::printable;
use crate::output::table::{align_right, count, table};
use crate::session::Session;
use avfs_api::wire::{
    AllTags, MetaChanged, MetaDelete, MetaGet, MetaImport, MetaList, MetaListing, MetaSet, Tag,
    TagDelete, TagList, TagListAll, TagRename, Tagged, Untag,
};
use std::collections::BTreeMap;

pub fn tag(args: TagArgs, session: &mut Session, output: Output) -> Result<()> {
    if let Some(tag) = args.create {
        return Err(Error::Invalid {
            text: format!("a tag cannot be created without a path: {tag:?}"),
            hint: Some(format!("run `avfs tag PATH {tag}`, which creates the tag")),
        });
    }
    if let Some(tag) = args.delete {
        let deleted = session.call(&TagDelete { tag })?;
        return output.answer(&deleted, |deleted| {
            let paths = count(deleted.file_count as u64, "path");
            format!("deleted tag {} from {paths}", printable(&deleted.tag))
        });
    }
    if let Some(names) = &args.rename {
        return rename(names, session, output);
    }
    let Some(path) = args.path else {
        let all = session.call(&TagListAll {})?;
        return output.answer(&all, all_text);
    };
    let (path, path_b64) = paths::in_vault(&path);
    let Some(tag) = args.tag else {
        let listing = session.call(&TagList { path, path_b64 })?;
        return output.answer(&listing, |listing| {
            let tags: Vec<String> = listing.tags.iter().map(|tag| printable(tag)).collect();
            tags.join("\n")
        });
    };
    let tagged = session.call(&Tag {
        path,
        path_b64,
        tag,
    })?;
    output.answer(&tagged, tagged_text)
}

fn rename(names: &str, session: &mut Session, output: Output) -> Result<()> {
    let Some((old, new)) = names.split_once(':') else {
        return Err(Error::Invalid {
            text: format!("{names:?} is not of the form OLD:NEW"),
            hint: Some("for example `avfs tag --rename draft:final`".into()),
        });
    };
    let renamed = session.call(&TagRename {
        old_name: old.into(),
        new_name: new.into(),
    })?;
    output.answer(&renamed, |renamed| {
        let (old, new) = (printable(&renamed.old_name), printable(&renamed.new_name));
        let paths = count(renamed.file_count as u64, "path");
        format!("renamed tag {old} to {new} on {paths}")
    })
}

pub fn untag(args: UntagArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let tag = args.tag;
    let tagged = session.call(&Untag {
        path,
        path_b64,
        tag,
    })?;
    output.answer(&tagged, tagged_text)
}

pub fn meta(args: MetaArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    if let Some(text) = &args.import {
        let metadata = object_of_strings(text)?;
        let imported = session.call(&MetaImport {
            path,
            path_b64,
            metadata,
        })?;
        return output.answer(&imported, |imported| {
            format!(
                "{}: {} set",
                printable(&imported.path),
                count(imported.imported as u64, "value")
            )
        });
    }
    let Some(key) = args.key else {
        let listing = session.call(&MetaList { path, path_b64 })?;
        if args.export && !output.is_json() {
            // Keys of the caller, to be imported again: nothing is added to them.
            return output.exact(&listing.metadata);
        }
        return output.answer(&listing, list_text);
    };
    match (args.value, args.delete) {
        (Some(value), _) => {
            let changed = session.call(&MetaSet {
                path,
                path_b64,
                key,
                value,
            })?;
            output.answer(&changed, changed_text)
        }
        (None, true) => {
            let changed = session.call(&MetaDelete {
                path,
                path_b64,
                key,
            })?;
            output.answer(&changed, changed_text)
        }
        (None, false) => {
            let found = session.call(&MetaGet {
                path,
                path_b64,
                key,
            })?;
            output.answer(&found, |found| found.value.clone())
        }
    }
}

fn object_of_strings(text: &str) -> Result<BTreeMap<String, String>> {
    serde_json::from_str(text).map_err(|error| Error::Invalid {
        text: format!("the metadata is not a JSON object of strings: {error}"),
        hint: Some("write it as '{\"key\": \"value\"}'".into()),
    })
}

fn tagged_text(tagged: &Tagged) -> String {
    let (path, tag) = (printable(&tagged.path), printable(&tagged.tag));
    format!("{} tag {tag}: {path}", tagged.action)
}

fn changed_text(changed: &MetaChanged) -> String {
    let (path, key) = (printable(&changed.path), printable(&changed.key));
    format!("{} {key}: {path}", changed.action)
}

fn list_text(listing: &MetaListing) -> String {
    let lines = listing.metadata.iter();
    let lines = lines.map(|(key, value)| format!("{}={}", printable(key), printable(value)));
    lines.collect::<Vec<_>>().join("\n")
}

fn all_text(all: &AllTags) -> String {
    if all.tags.is_empty() {
        return "there are no tags; add one with `avfs tag PATH TAG`".into();
    }
    let tags = all.tags.iter();
    let rows = tags.map(|tag| vec![printable(&tag.name), tag.file_count.to_string()]);
    let mut table = table(&["TAG", "PATHS"], rows.collect());
    align_right(&mut table, 1);
    table.trim_fmt()
}
