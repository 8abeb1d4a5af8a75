//! What changed, one line each, and patches.

use super::style;
use avfs_api::wire::{ChangeItem, ChangeWord, EntryItem};

/// How many lines a report shows before it counts the rest.
const SHOWN: usize = 20;

/// All changes, one line each.
pub fn lines(changes: &[ChangeItem]) -> Vec<String> {
    changes.iter().map(line).collect()
}

/// The first changes, one line each, and how many more there are.
pub fn first_lines(changes: &[ChangeItem]) -> Vec<String> {
    let mut lines: Vec<String> = changes.iter().take(SHOWN).map(line).collect();
    if changes.len() > SHOWN {
        lines.push(style::faint(format!("… and {} more", changes.len() - SHOWN)).to_string());
    }
    lines
}

fn line(change: &ChangeItem) -> String {
    let path = printable(&change.path);
    match change.kind {
        ChangeWord::Created => format!("{} {path}", style::good("A")),
        ChangeWord::Deleted => format!("{} {path}", style::bad("D")),
        ChangeWord::Modified => format!("{} {path}", style::notable("M")),
        ChangeWord::Mode => {
            format!("{} {path} (mode {})", style::notable("M"), modes(change))
        }
        ChangeWord::Xattrs => format!("{} {path} (attributes)", style::notable("M")),
        ChangeWord::Times => format!("{} {path} (times)", style::notable("M")),
        ChangeWord::Renamed => {
            let from = printable(change.from.as_deref().unwrap_or_default());
            format!("{} {from} → {path}", style::place("R"))
        }
    }
}

fn modes(change: &ChangeItem) -> String {
    let mode = |entry: &Option<EntryItem>| {
        entry
            .as_ref()
            .map_or_else(|| "?".to_owned(), |entry| entry.mode.clone())
    };
    format!("{} → {}", mode(&change.before), mode(&change.after))
}

/// A name can hold anything, and a terminal obeys control characters: show them instead.
pub fn printable(text: &str) -> String {
    if text.chars().any(char::is_control) {
        text.chars()
            .flat_map(|c| {
                let shown: Vec<char> = if c.is_control() {
                    c.escape_default().collect()
                } else {
                    vec![c]
                };
                shown
            })
            .collect()
    } else {
        text.to_owned()
    }
}

/// A patch with its lines coloured by what they are.
pub fn patch(text: &str) -> String {
    let mut coloured = String::with_capacity(text.len());
    for line in text.lines() {
        let styled = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => style::strong(line).to_string(),
            [b'd', b'i', b'f', b'f', ..] => style::strong(line).to_string(),
            [b'+', ..] => style::good(line).to_string(),
            [b'-', ..] => style::bad(line).to_string(),
            [b'@', b'@', ..] => style::place(line).to_string(),
            _ => line.to_owned(),
        };
        coloured.push_str(&styled);
        coloured.push('\n');
    }
    coloured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(path: &str) -> ChangeItem {
        ChangeItem {
            path: path.into(),
            path_b64: None,
            kind: ChangeWord::Created,
            from: None,
            from_b64: None,
            before: None,
            after: None,
        }
    }

    #[test]
    fn a_long_report_is_cut_and_counted() {
        let changes: Vec<ChangeItem> = (0..25).map(|i| created(&format!("/{i}"))).collect();
        let lines = first_lines(&changes);
        assert_eq!(lines.len(), 21);
        assert!(lines[20].contains("and 5 more"), "{}", lines[20]);
        assert_eq!(super::lines(&changes).len(), 25);
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(printable("/a\u{1b}[2Jb"), "/a\\u{1b}[2Jb");
        assert_eq!(printable("/né"), "/né");
    }
}
