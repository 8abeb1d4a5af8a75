//! Rules for doc comments: each says by itself what it is about.

use std::path::Path;

/// How a doc comment may not begin: in rustdoc there is nothing before it that it could mean.
const OPENING: &str = "The same";

pub fn check(top: &Path, files: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let text = std::fs::read_to_string(top.join(file)).unwrap_or_default();
        let lines = openings(&text).into_iter();
        complaints.extend(
            lines.map(|line| format!("{file}:{line}: a doc comment begins with {OPENING:?}")),
        );
    }
    complaints
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_doc_comment_counts() {
        let text = "//! The same.\n\n/// The same for x.\nfn a() {}\n/// One.\n/// The same.\nfn b() {}\n\
            // The same.\n    /// The same.\n";
        assert_eq!(openings(text), [1, 3, 9]);
    }
}
