//! `avfs stat`: details of one path.

use super::paths;
use crate::args::PathArg;
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable;
use crate::output::table::{count, size, table, time};
use crate::session::Session;
use avfs_api::wire::{Stat, StatItem, TypeWord};

pub fn run(args: PathArg, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let stat = session.call(&Stat { path, path_b64 })?;
    output.answer(&stat, text)
}

fn text(stat: &StatItem) -> String {
    let attributes = &stat.attributes;
    let kind = match attributes.kind {
        TypeWord::File => "file",
        TypeWord::Directory => "directory",
        TypeWord::Symlink => "symbolic link",
        TypeWord::Fifo => "named pipe",
    };
    let mut rows = vec![
        ("path", printable(&stat.path)),
        ("type", kind.to_owned()),
        ("size", size(attributes.size)),
        ("mode", attributes.mode.clone()),
        ("owner", format!("{}:{}", attributes.uid, attributes.gid)),
        ("modified", time(&attributes.modified)),
        ("changed", time(&stat.changed)),
    ];
    let optional = [
        ("target", attributes.target.as_deref().map(printable)),
        ("holds", attributes.files.map(|files| count(files, "file"))),
        ("content", stat.content_id.clone()),
    ];
    for (name, value) in optional {
        rows.extend(value.map(|value| (name, value)));
    }
    if stat.nlink > 1 {
        let names: Vec<String> = stat.names.iter().map(|name| printable(name)).collect();
        rows.push(("names", names.join(" ")));
    }
    if !stat.tags.is_empty() {
        rows.push(("tags", stat.tags.join(" ")));
    }
    for (key, value) in &stat.metadata {
        rows.push(("metadata", format!("{key}={}", printable(value))));
    }
    rows.push(("version", stat.version.to_string()));
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![name.into(), value])
        .collect();
    table(&[], rows).trim_fmt()
}
