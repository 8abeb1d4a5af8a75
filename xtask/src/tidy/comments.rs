//! Rules for doc comments: each says by itself what it is about.

use std::path::Path;

/// How a doc comment may not begin: in rustdoc there is nothing before it that it could mean.
const OPENING: &str = "The same";

/// Doc comments that still begin so, by crate. A number may only fall, and a crate without a row has none.
const BUDGETS: [(&str, usize); 7] = [
    ("benches", 1),
    ("crates/cli", 11),
    ("crates/fuse", 1),
    ("crates/runtime", 19),
    ("crates/sandbox", 6),
    ("crates/testkit", 6),
    ("crates/view", 6),
];

pub fn check(top: &Path, files: &[String]) -> Vec<String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let text = std::fs::read_to_string(top.join(file)).unwrap_or_default();
        let lines = openings(&text).into_iter();
        found.extend(lines.map(|line| (room_of(file), format!("{file}:{line}"))));
    }
    compare(&found, &BUDGETS)
}

/// Holds what was found, `(crate, place)` each, against the budgets.
fn compare(found: &[(&str, String)], budgets: &[(&str, usize)]) -> Vec<String> {
    let budget = |room: &str| budgets.iter().find(|(name, _)| *name == room);
    let count = |room: &str| found.iter().filter(|(other, _)| *other == room).count();
    let over = found.iter().filter(|(room, _)| {
        let most = budget(room).map_or(0, |(_, most)| *most);
        count(room) > most
    });
    let over = over.map(|(room, place)| {
        let most = budget(room).map_or(0, |(_, most)| *most);
        format!(
            "{place}: a doc comment begins with {OPENING:?} ({room} has {}, and may have {most})",
            count(room)
        )
    });
    let lower = budgets.iter().filter(|(room, most)| count(room) < *most);
    let lower = lower.map(|(room, _)| {
        let count = count(room);
        format!("{room}: lower its number in xtask/src/tidy/comments.rs to {count}")
    });
    over.chain(lower).collect()
}

/// The lines at which a doc comment begins in the forbidden way.
fn openings(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let begins = ["///", "//!"].iter().any(|mark| {
            let comment = line.strip_prefix(mark).map(str::trim_start);
            !before.starts_with(mark) && comment.is_some_and(|comment| comment.starts_with(OPENING))
        });
        if begins {
            found.push(number + 1);
        }
        before = line;
    }
    found
}

/// The crate that a file is of, as the workspace names it.
fn room_of(file: &str) -> &str {
    let parts = if file.starts_with("crates/") { 2 } else { 1 };
    let end = file.match_indices('/').nth(parts - 1);
    end.map_or(file, |(at, _)| &file[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_doc_comment_counts() {
        let text = "//! The same.\n\n/// The same for x.\nfn a() {}\n/// One.\n/// The same.\nfn b() {}\n\
            // The same.\n    /// The same.\n";
        assert_eq!(openings(text), [1, 3, 9]);
    }

    #[test]
    fn a_number_may_only_fall() {
        let found = |count| vec![("crates/a", "crates/a/x.rs:1".to_owned()); count];
        let budgets = [("crates/a", 2)];
        assert_eq!(compare(&found(2), &budgets), Vec::<String>::new());
        assert_eq!(compare(&found(3), &budgets).len(), 3);
        assert_eq!(
            compare(&found(1), &budgets),
            ["crates/a: lower its number in xtask/src/tidy/comments.rs to 1"]
        );
        assert_eq!(compare(&found(1), &[]).len(), 1);
    }

    #[test]
    fn a_file_belongs_to_its_crate() {
        assert_eq!(room_of("crates/store/src/lib.rs"), "crates/store");
        assert_eq!(room_of("benches/src/main.rs"), "benches");
    }
}
