//! `avfs ls`: list a directory of the vault.

use super::paths;
use crate::args::LsArgs;
use crate::error::Result;
use crate::output::changes::printable;
use crate::output::table::time;
use crate::output::{Output, style};
use crate::session::Session;
use avfs_api::wire::{ListedEntry, Ls, TypeWord};

pub fn run(args: LsArgs, session: &mut Session, output: Output) -> Result<()> {
    let entries = Ls::new(paths::in_vault(&args.path)).all(|page| session.call(page))?;
    output.answer(&entries, |entries| {
        let shown: Vec<&ListedEntry> = entries
            .iter()
            .filter(|entry| args.all || !entry.name.starts_with('.'))
            .collect();
        if args.long {
            long_text(&shown)
        } else {
            short_text(&shown)
        }
    })
}

fn short_text(entries: &[&ListedEntry]) -> String {
    let names: Vec<String> = entries.iter().map(|entry| name(entry)).collect();
    names.join("\n")
}

fn long_text(entries: &[&ListedEntry]) -> String {
    let width = entries
        .iter()
        .map(|entry| entry.attributes.size.to_string().len())
        .max()
        .unwrap_or(0);
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            let target = entry.attributes.target.as_deref().map(printable);
            let arrow = target
                .map(|target| format!(" -> {target}"))
                .unwrap_or_default();
            format!(
                "{}{} {:>5} {:>5} {:>width$} {} {}{arrow}",
                type_letter(entry.attributes.kind),
                permissions(&entry.attributes.mode),
                entry.attributes.uid,
                entry.attributes.gid,
                entry.attributes.size,
                time(&entry.attributes.modified),
                name(entry),
            )
        })
        .collect();
    lines.join("\n")
}

fn name(entry: &ListedEntry) -> String {
    let shown = printable(&entry.name);
    match entry.attributes.kind {
        TypeWord::Directory => format!("{}/", style::place(shown)),
        TypeWord::File | TypeWord::Symlink | TypeWord::Fifo => shown,
    }
}

fn type_letter(kind: TypeWord) -> char {
    match kind {
        TypeWord::File => '-',
        TypeWord::Directory => 'd',
        TypeWord::Symlink => 'l',
        TypeWord::Fifo => 'p',
    }
}

/// `0754` as `rwxr-xr--`, with set-id and sticky bits where `ls` shows them.
fn permissions(octal: &str) -> String {
    let mode = u32::from_str_radix(octal, 8).unwrap_or(0);
    let mut text: Vec<char> = "rwxrwxrwx"
        .chars()
        .enumerate()
        .map(|(i, letter)| {
            if mode & (0o400 >> i) != 0 {
                letter
            } else {
                '-'
            }
        })
        .collect();
    for (bit, place, letter) in [(0o4000, 2, 's'), (0o2000, 5, 's'), (0o1000, 8, 't')] {
        if mode & bit != 0 {
            text[place] = if text[place] == 'x' {
                letter
            } else {
                letter.to_ascii_uppercase()
            };
        }
    }
    text.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_as_in_ls() {
        assert_eq!(permissions("0754"), "rwxr-xr--");
        assert_eq!(permissions("0000"), "---------");
        assert_eq!(permissions("4755"), "rwsr-xr-x");
        assert_eq!(permissions("1777"), "rwxrwxrwt");
        assert_eq!(permissions("2640"), "rw-r-S---");
    }
}
