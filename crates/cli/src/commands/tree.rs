//! `avfs tree`: a directory and everything below it.

use super::paths;
use crate::args::TreeArgs;
use crate::error::Result;
use crate::output::changes::printable;
use crate::output::table::count;
use crate::output::{self, Notes, Output, note, style};
use crate::session::Session;
use avfs_api::wire::{Base64, SCHEMA_VERSION, Tree, TreeEntry, TreeListing, TypeWord};
use serde::Serialize;

/// Deeper levels of the JSON answer are indented no further: the text would grow with the square of the depth.
const DEEPEST_INDENT: usize = 64;

/// A name in the form of the JSON answer, without what is below it.
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
    #[serde(flatten)]
    notes: Notes,
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
        let mut notes = output::notes();
        notes.insert("schema_version".into(), SCHEMA_VERSION.into());
        let json = nested(&listing.entries, notes).map_err(output::unwritten)?;
        return output::raw(json.as_bytes());
    }
    output.answer(&listing, text)
}

/// The JSON answer: names with everything below them. It is written with a list instead of recursion, because a tree may be
/// deeper than the stack.
fn nested(entries: &[TreeEntry], mut notes: Notes) -> serde_json::Result<String> {
    let mut text = String::new();
    // For the last name and every one above it: whether it is a directory, and whether something in it is written.
    let mut open: Vec<(bool, bool)> = Vec::new();
    for entry in entries {
        close(&mut text, &mut open, entry.depth);
        let level = open.len();
        if let Some((_, begun)) = open.last_mut() {
            let list = match std::mem::replace(begun, true) {
                true => String::new(),
                false => format!("\n{}\"children\": [", indent(2 * level - 1)),
            };
            text.push_str(&format!(",{list}\n{}", indent(2 * level)));
        } else if !text.is_empty() {
            break;
        }
        let object = serde_json::to_string_pretty(&Node {
            name: &entry.name,
            name_b64: entry.name_b64.as_ref(),
            kind: entry.kind,
            size: entry.size,
            target: entry.target.as_deref(),
            notes: std::mem::take(&mut notes),
        })?;
        let fields = object.strip_suffix("\n}").unwrap_or(&object);
        text.push_str(&fields.replace('\n', &format!("\n{}", indent(2 * level))));
        open.push((entry.kind == TypeWord::Directory, false));
    }
    close(&mut text, &mut open, 0);
    if !text.is_empty() {
        text.push('\n');
    }
    Ok(text)
}

/// Ends the names that are at this depth or deeper.
fn close(text: &mut String, open: &mut Vec<(bool, bool)>, depth: usize) {
    while open.len() > depth
        && let Some((is_directory, begun)) = open.pop()
    {
        let inner = indent(2 * open.len() + 1);
        match (begun, is_directory) {
            (true, _) => text.push_str(&format!("\n{inner}]")),
            (false, true) => text.push_str(&format!(",\n{inner}\"children\": []")),
            (false, false) => {}
        }
        text.push_str(&format!("\n{}}}", indent(2 * open.len())));
    }
}

fn indent(steps: usize) -> String {
    "  ".repeat(steps.min(2 * DEEPEST_INDENT))
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn entry(depth: usize, name: &str, kind: TypeWord) -> TreeEntry {
        let plain = json!({ "depth": depth, "name": name, "type": kind, "size": 1 });
        serde_json::from_value(plain).unwrap()
    }

    /// A tree made by recursion, to compare with.
    fn expected(entries: &mut std::iter::Peekable<std::slice::Iter<TreeEntry>>) -> Vec<Value> {
        let mut nodes = Vec::new();
        let depth = entries.peek().map_or(0, |entry| entry.depth);
        while let Some(entry) = entries.next_if(|entry| entry.depth == depth) {
            let mut node = json!({ "name": entry.name, "type": entry.kind, "size": entry.size });
            let is_above = |next: &&TreeEntry| next.depth > depth;
            let below = match entries.peek().is_some_and(is_above) {
                true => expected(entries),
                false => Vec::new(),
            };
            if entry.kind == TypeWord::Directory {
                node["children"] = below.into();
            }
            nodes.push(node);
        }
        nodes
    }

    #[test]
    fn the_json_is_nested_and_pretty() {
        use TypeWord::{Directory, File};
        let of = |list: &[(usize, &str, TypeWord)]| -> Vec<TreeEntry> {
            let entries = list.iter();
            entries
                .map(|(at, name, kind)| entry(*at, name, *kind))
                .collect()
        };
        for entries in [
            of(&[(0, "/", Directory)]),
            of(&[(0, "a \"b\"\n", File)]),
            of(&[(0, "/", Directory), (1, "a", File), (1, "b", Directory)]),
            of(&[
                (0, "/", Directory),
                (1, "a", Directory),
                (2, "b", Directory),
                (3, "c", File),
                (3, "d", Directory),
                (1, "e", File),
                (1, "f", Directory),
                (2, "g", File),
            ]),
        ] {
            let text = nested(&entries, Notes::new()).unwrap();
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value, expected(&mut entries.iter().peekable()).remove(0));
            let again = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(text.lines().count(), again.lines().count());
        }
        assert_eq!(nested(&[], Notes::new()).unwrap(), "");
    }

    #[test]
    fn notes_are_fields_of_the_top_alone() {
        let entries = [
            entry(0, "/", TypeWord::Directory),
            entry(1, "a", TypeWord::File),
        ];
        let notes = Notes::from_iter([("uncommitted".to_owned(), json!("why"))]);
        let value: Value = serde_json::from_str(&nested(&entries, notes).unwrap()).unwrap();
        assert_eq!(value["uncommitted"], "why");
        assert_eq!(value["children"][0].get("uncommitted"), None);
    }

    #[test]
    fn a_deep_tree_is_written_with_little_stack() {
        let entries: Vec<_> = (0..10_000)
            .map(|at| entry(at, "d", TypeWord::Directory))
            .collect();
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let written = thread.spawn(move || nested(&entries, Notes::new()).unwrap());
        let text = written.unwrap().join().unwrap();
        assert_eq!(text.matches('{').count(), 10_000);
        assert_eq!(text.matches('}').count(), 10_000);
        assert!(text.len() < 30 << 20, "{}", text.len());
    }
}
