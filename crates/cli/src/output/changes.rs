//! Changes, one line each, and patches.

use super::style;
use avfs_api::wire::{ChangeItem, ChangeWord, EntryItem, TypeWord};
use std::borrow::Cow;
use std::io::IsTerminal;

/// All changes, one line each.
pub fn lines(changes: &[ChangeItem]) -> Vec<String> {
    changes.iter().map(line).collect()
}

/// How many of `total` paths are not listed; a rename is listed once and counts twice.
pub fn unlisted(total: u64, listed: &[ChangeItem]) -> u64 {
    let renamed = |change: &&ChangeItem| change.kind == ChangeWord::Renamed;
    let paths = listed.len() + listed.iter().filter(renamed).count();
    total.saturating_sub(paths as u64)
}

/// One change.
pub(super) fn line(change: &ChangeItem) -> String {
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

/// A letter and the path, for programs that read lines.
pub fn name_status(changes: &[ChangeItem]) -> Vec<String> {
    let line = |change: &ChangeItem| {
        let path = printable(&change.path);
        match change.kind {
            ChangeWord::Created => format!("A\t{path}"),
            ChangeWord::Deleted => format!("D\t{path}"),
            ChangeWord::Modified | ChangeWord::Mode | ChangeWord::Xattrs | ChangeWord::Times => {
                format!("M\t{path}")
            }
            ChangeWord::Renamed => {
                let from = printable(change.from.as_deref().unwrap_or_default());
                format!("R\t{from}\t{path}")
            }
        }
    };
    changes.iter().map(line).collect()
}

/// Added and removed lines of each file, and the totals.
pub fn stat(changes: &[ChangeItem]) -> String {
    let counted: Vec<&ChangeItem> = changes.iter().filter(|it| !is_directory(it)).collect();
    let name = |change: &ChangeItem| match &change.from {
        Some(from) => format!("{} → {}", printable(from), printable(&change.path)),
        None => printable(&change.path),
    };
    let width = counted.iter().map(|it| name(it).chars().count()).max();
    let width = width.unwrap_or(0);
    let (mut added, mut removed) = (0, 0);
    let mut text = String::new();
    for change in &counted {
        let plus = change.additions.unwrap_or(0);
        let minus = change.deletions.unwrap_or(0);
        (added, removed) = (added + plus, removed + minus);
        let bar = if change.binary == Some(true) {
            "binary".to_owned()
        } else {
            let (long, short) = bar(plus, minus);
            let (long, short) = ("+".repeat(long), "-".repeat(short));
            let total = plus + minus;
            format!("{total:>5} {}{}", style::good(long), style::bad(short))
        };
        text.push_str(&format!(" {:<width$} | {bar}\n", name(change)));
    }
    let files = super::table::count(counted.len() as u64, "file");
    text + &format!(" {files} changed, {added}(+), {removed}(-)\n")
}

fn is_directory(change: &ChangeItem) -> bool {
    let entry = change.after.as_ref().or(change.before.as_ref());
    entry.is_some_and(|entry| entry.kind == TypeWord::Directory)
}

/// How many `+` and `-` signs to draw for a number of lines.
fn bar(plus: u32, minus: u32) -> (usize, usize) {
    const LENGTH: u32 = 40;
    let total = plus + minus;
    if total <= LENGTH {
        return (plus as usize, minus as usize);
    }
    let share = |lines: u32| (u64::from(lines) * u64::from(LENGTH)).div_ceil(u64::from(total));
    (share(plus) as usize, share(minus) as usize)
}

fn modes(change: &ChangeItem) -> String {
    let mode = |entry: &Option<EntryItem>| {
        entry
            .as_ref()
            .map_or_else(|| "?".to_owned(), |entry| entry.mode.clone())
    };
    format!("{} → {}", mode(&change.before), mode(&change.after))
}

/// Escapes control characters, bidirectional controls, line breaks and invisible characters, so that a name cannot send
/// commands to the terminal or look like another.
pub fn printable(text: &str) -> String {
    if !text.chars().any(deceives) {
        return text.to_owned();
    }
    let mut shown = String::new();
    for character in text.chars() {
        match deceives(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// Escapes several lines and indents all but the first, so that none looks like a line of avfs.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable_line).collect();
    lines.join("\n  ")
}

/// Escapes control characters except tabs.
pub fn printable_line(line: &str) -> String {
    let parts: Vec<String> = line.split('\t').map(printable).collect();
    parts.join("\t")
}

fn deceives(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// A patch with coloured lines. On a terminal control characters are escaped; elsewhere it is exact, so that it can be
/// applied.
pub fn patch(text: &str) -> String {
    let safe = std::io::stdout().is_terminal();
    let mut coloured = String::with_capacity(text.len());
    for line in text.split_terminator('\n') {
        let line = &*match safe {
            true => Cow::Owned(printable_line(line)),
            false => Cow::Borrowed(line),
        };
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

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(printable("/a\u{1b}[2Jb"), "/a\\u{1b}[2Jb");
        assert_eq!(printable("/né"), "/né");
        assert_eq!(printable("a\u{202e}b\u{2028}"), "a\\u{202e}b\\u{2028}");
        assert_eq!(printable("a\u{85}\r\n"), "a\\u{85}\\r\\n");
        assert_eq!(printable_lines("no\nhint: \u{1b}x"), "no\n  hint: \\u{1b}x");
    }
}
