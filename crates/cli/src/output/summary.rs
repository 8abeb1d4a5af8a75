//! Many changes in a few lines: directories are summed until all fits.

use super::changes::{line, printable};
use super::style;
use super::table::count;
use avfs_api::wire::{ChangeItem, ChangeWord, IgnoredChanges, IgnoredItem, TypeWord, human_size};
use std::collections::BTreeMap;

/// Lines that a report has for changes.
const LINES: usize = 10;
/// Names below each other that are told apart; what is deeper is one name. Names come from commands.
const DEPTH: usize = 16;
/// Directories of ignored changes that a report names.
const IGNORED_LINES: usize = 3;

/// The changes in at most ten lines, and one more if they leave something out: `unlisted` is how many changes are not in
/// the list, `exec` the command whose changes these are.
pub fn lines(changes: &[ChangeItem], unlisted: u64, exec: Option<&str>) -> Vec<String> {
    if changes.len() <= LINES && unlisted == 0 {
        return changes.iter().map(line).collect();
    }
    let mut top = Node::default();
    for change in changes {
        top.add(change);
    }
    let mut parts = vec![Part::Below(String::new(), &top)];
    while let Some(at) = next_to_open(&parts) {
        let Part::Below(path, node) = parts.remove(at) else {
            break;
        };
        let opened = node.open(&path);
        parts.splice(at..at, opened);
    }
    let is_summed = parts.iter().any(|part| matches!(part, Part::Below(..)));
    let mut lines: Vec<String> = parts.iter().map(Part::line).collect();
    let all = exec.map(|exec| format!("avfs changes {exec}"));
    let rest = match (unlisted, is_summed, all) {
        (0, false, _) | (0, true, None) => None,
        (0, true, Some(all)) => Some(format!("all of them: {all}")),
        (more, _, Some(all)) => Some(format!("… {more} more: {all}")),
        (more, _, None) => Some(format!("… and {more} more")),
    };
    lines.extend(rest.map(|rest| style::faint(rest).to_string()));
    lines
}

/// The largest directories of ignored changes, one line each.
pub fn ignored_lines(ignored: &IgnoredChanges) -> Vec<String> {
    let mut largest: Vec<(&String, &IgnoredItem)> = ignored.iter().collect();
    largest.sort_by_key(|(_, item)| std::cmp::Reverse(paths(item)));
    let line = |(directory, item): &(&String, &IgnoredItem)| {
        let counted = [
            (item.created, "new"),
            (item.modified, "changed"),
            (item.deleted, "deleted"),
        ];
        let counted = counted.into_iter().filter(|(number, _)| *number > 0);
        let counted: Vec<String> = counted.map(|(n, word)| format!("{n} {word}")).collect();
        let bytes = human_size(item.bytes);
        let directory = printable(directory);
        format!("ignored: {directory} {} ({bytes})", counted.join(", "))
    };
    let mut lines: Vec<String> = largest.iter().take(IGNORED_LINES).map(line).collect();
    if largest.len() > IGNORED_LINES {
        let rest = &largest[IGNORED_LINES..];
        let number = rest.iter().map(|(_, item)| paths(item)).sum();
        lines.push(format!("ignored: {} elsewhere", count(number, "path")));
    }
    lines
}

fn paths(item: &IgnoredItem) -> u64 {
    item.created + item.modified + item.deleted
}

/// A directory or a path with changes at or below it.
#[derive(Default)]
struct Node<'a> {
    own: Option<&'a ChangeItem>,
    below: BTreeMap<&'a str, Node<'a>>,
    created: u64,
    deleted: u64,
    /// Changes of anything but directories.
    files: u64,
    /// All changes, its own included.
    all: u64,
}

/// What one line tells of.
enum Part<'a> {
    One(&'a ChangeItem),
    /// All at and below this path.
    Below(String, &'a Node<'a>),
}

impl<'a> Node<'a> {
    fn add(&mut self, change: &'a ChangeItem) {
        let mut node = self;
        node.count(change);
        let below = change.path.trim_start_matches('/');
        for name in below.splitn(DEPTH, '/').filter(|name| !name.is_empty()) {
            node = node.below.entry(name).or_default();
            node.count(change);
        }
        node.own = Some(change);
    }

    fn count(&mut self, change: &ChangeItem) {
        let entry = change.after.as_ref().or(change.before.as_ref());
        let is_directory = entry.is_some_and(|entry| entry.kind == TypeWord::Directory);
        self.all += 1;
        self.files += u64::from(!is_directory);
        self.created += u64::from(change.kind == ChangeWord::Created);
        self.deleted += u64::from(change.kind == ChangeWord::Deleted);
    }

    /// Itself, where what is below it does not say it already, and what is directly below it.
    fn open(&'a self, path: &str) -> Vec<Part<'a>> {
        let own = self.told_own();
        let below = self.below.iter().map(|(name, node)| {
            let only = node.own.filter(|_| node.below.is_empty());
            match only {
                Some(change) => Part::One(change),
                None => Part::Below(format!("{path}/{name}"), node),
            }
        });
        own.map(Part::One).into_iter().chain(below).collect()
    }

    /// Its own change, unless what is below it says it.
    fn told_own(&self) -> Option<&'a ChangeItem> {
        self.own.filter(|own| {
            let is_said = matches!(own.kind, ChangeWord::Created | ChangeWord::Deleted);
            !is_said || self.below.is_empty()
        })
    }

    /// How many lines it takes when it is open.
    fn width(&self) -> usize {
        self.below.len() + usize::from(self.told_own().is_some())
    }

    fn is_new_or_gone(&self) -> bool {
        self.created == self.all || self.deleted == self.all
    }
}

/// The directory to be shown by what is in it: the one with most changes for which there is room, those that came or went
/// as a whole after all others.
fn next_to_open(parts: &[Part<'_>]) -> Option<usize> {
    let openable = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| match part {
            Part::Below(_, node) if parts.len() - 1 + node.width() <= LINES => {
                Some((!node.is_new_or_gone(), node.all, std::cmp::Reverse(at)))
            }
            _ => None,
        });
    openable.max().map(|(_, _, at)| at.0)
}

impl Part<'_> {
    fn line(&self) -> String {
        let (path, node) = match self {
            Part::One(change) => return line(change),
            Part::Below(path, node) => (path, node),
        };
        let number = match node.files {
            0 => count(node.all, "path"),
            files => count(files, "file"),
        };
        let path = printable(path);
        if node.created == node.all {
            return format!("{} {path}/ {number}", style::good("+"));
        }
        if node.deleted == node.all {
            return format!("{} {path}/ {number}", style::bad("-"));
        }
        let parts = [(node.created, "new"), (node.deleted, "deleted")];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts.map(|(n, word)| format!("{n} {word}")).collect();
        let parts = match parts.is_empty() {
            true => String::new(),
            false => format!(" ({})", parts.join(", ")),
        };
        format!("{} {path}/ {number}{parts}", style::notable("M"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use avfs_api::wire::EntryItem;

    fn change(kind: ChangeWord, path: &str) -> ChangeItem {
        let is_directory = path.ends_with('/');
        let entry = EntryItem {
            kind: match is_directory {
                true => TypeWord::Directory,
                false => TypeWord::File,
            },
            size: 1,
            mode: "0644".into(),
            hash: None,
            target: None,
            target_b64: None,
        };
        ChangeItem {
            path: path.trim_end_matches('/').into(),
            path_b64: None,
            kind,
            from: None,
            from_b64: None,
            before: None,
            after: Some(entry),
            additions: None,
            deletions: None,
            binary: None,
        }
    }

    fn plain(lines: &[String]) -> Vec<String> {
        let strip = |line: &String| anstream::adapter::strip_str(line).to_string();
        lines.iter().map(strip).collect()
    }

    #[test]
    fn few_changes_are_listed_as_they_are() {
        let changes = [
            change(ChangeWord::Created, "/d/"),
            change(ChangeWord::Created, "/d/a"),
        ];
        assert_eq!(plain(&lines(&changes, 0, Some("e"))), ["A /d", "A /d/a"]);
    }

    #[test]
    fn many_changes_are_summed_by_directory() {
        let mut changes = vec![change(ChangeWord::Created, "/src/new/")];
        for number in 0..12 {
            changes.push(change(ChangeWord::Created, &format!("/src/new/{number}")));
        }
        changes.push(change(ChangeWord::Modified, "/src/main.rs"));
        changes.push(change(ChangeWord::Deleted, "/README"));
        let told = plain(&lines(&changes, 0, Some("e")));
        let expected = [
            "D /README",
            "M /src/main.rs",
            "+ /src/new/ 12 files",
            "all of them: avfs changes e",
        ];
        assert_eq!(told, expected);
        let told = plain(&lines(&changes, 7, Some("e")));
        assert_eq!(told.last().unwrap(), "… 7 more: avfs changes e");
    }

    #[test]
    fn whatever_there_is_fits() {
        for (wide, deep) in [(1, 5_000), (5_000, 1), (70, 70)] {
            let mut changes = Vec::new();
            for across in 0..wide {
                let below: Vec<String> = (0..deep).map(|at| at.to_string()).collect();
                let path = format!("/{across}/{}", below.join("/"));
                changes.push(change(ChangeWord::Modified, &path));
                changes.push(change(ChangeWord::Created, &format!("{path}x")));
            }
            let told = lines(&changes, 0, None);
            assert!((1..=LINES).contains(&told.len()), "{wide} {deep}");
        }
    }

    #[test]
    fn ignored_changes_take_a_few_lines() {
        let item = |created| IgnoredItem {
            created,
            bytes: 2048,
            ..IgnoredItem::default()
        };
        let ignored = (1..9).map(|n| (format!("/{n}/"), item(n))).collect();
        let told = ignored_lines(&ignored);
        assert_eq!(told.len(), 4);
        assert!(told[0].starts_with("ignored: /8/ 8 new ("), "{}", told[0]);
        assert_eq!(told[3], "ignored: 15 paths elsewhere");
    }
}
