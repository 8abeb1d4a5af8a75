//! `avfs tree`: a directory and everything below it.

use super::paths;
use crate::args::TreeArgs;
use crate::error::Result;
use crate::output::changes::printable;
use crate::output::table::count;
use crate::output::{Output, note, style};
use crate::session::Session;
use avfs_api::wire::{Base64, Tree, TreeEntry, TreeListing, TypeWord};
use serde::Serialize;

/// A name with everything below it, in the form of the JSON answer.
#[derive(Serialize)]
struct Node<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_b64: Option<&'a Base64>,
    #[serde(rename = "type")]
    kind: TypeWord,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<Node<'a>>>,
}

pub fn run(args: TreeArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let level = args.level;
    let listing = session.call(&Tree {
        path,
        path_b64,
        level,
    })?;
    if listing.truncated {
        let shown = listing.entries.len();
        note(&format!(
            "note: only the first {shown} names are shown; see --level, or name a directory further down"
        ))?;
    }
    if output.is_json() {
        return match nest(&mut listing.entries.iter().peekable(), 0).pop() {
            Some(top) => output.value(&top),
            None => Ok(()),
        };
    }
    output.answer(&listing, text)
}

type Entries<'a> = std::iter::Peekable<std::slice::Iter<'a, TreeEntry>>;

fn nest<'a>(entries: &mut Entries<'a>, depth: usize) -> Vec<Node<'a>> {
    let mut nodes = Vec::new();
    while let Some(entry) = entries.next_if(|entry| entry.depth == depth) {
        let below = nest(entries, depth + 1);
        nodes.push(Node {
            name: &entry.name,
            name_b64: entry.name_b64.as_ref(),
            kind: entry.kind,
            size: entry.size,
            target: entry.target.as_deref(),
            children: (entry.kind == TypeWord::Directory).then_some(below),
        });
    }
    nodes
}

fn text(listing: &TreeListing) -> String {
    let entries = &listing.entries;
    let mut lines = Vec::with_capacity(entries.len() + 2);
    // For every level above: whether more names follow on it.
    let mut open: Vec<bool> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        open.truncate(entry.depth.saturating_sub(1));
        let mut line = String::new();
        for more in &open {
            line.push_str(if *more { "│   " } else { "    " });
        }
        if entry.depth > 0 {
            let later = entries[at + 1..].iter();
            let more = later
                .take_while(|other| other.depth >= entry.depth)
                .any(|other| other.depth == entry.depth);
            line.push_str(if more { "├── " } else { "└── " });
            open.push(more);
        }
        line.push_str(&name(entry));
        lines.push(line);
    }
    lines.push(String::new());
    lines.push(format!(
        "{}, {}",
        match listing.directories {
            1 => "1 directory".into(),
            number => format!("{number} directories"),
        },
        count(listing.files as u64, "file")
    ));
    lines.join("\n")
}

fn name(entry: &TreeEntry) -> String {
    let shown = printable(&entry.name);
    match (entry.kind, &entry.target) {
        (TypeWord::Directory, _) => style::place(shown).to_string(),
        (_, Some(target)) => format!("{shown} -> {}", printable(target)),
        _ => shown,
    }
}
