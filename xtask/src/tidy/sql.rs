//! Where SQL may be: rows are known in the store alone, so that they can later be kept by another database.

use std::path::Path;

use syn::visit::{self, Visit};

/// The crates that may use SQLite: the store, and what tests change a database with.
const CRATES: [&str; 2] = ["crates/store", "crates/testkit"];
const LIBRARY: &str = "rusqlite";
/// What a statement begins with, and what else it has in it.
const STATEMENTS: [&[&str]; 8] = [
    &["SELECT ", " FROM "],
    &["INSERT ", "INTO "],
    &["UPDATE ", " SET "],
    &["DELETE FROM "],
    &["CREATE ", "TABLE "],
    &["ALTER TABLE "],
    &["PRAGMA "],
    &["VACUUM"],
];

pub fn check(top: &Path, files: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    let outside = |file: &&String| {
        let inside = CRATES.iter().any(|room| in_crate(file, room));
        !inside && !in_crate(file, "xtask")
    };
    for file in files.iter().filter(outside) {
        let text = || std::fs::read_to_string(top.join(file)).unwrap_or_default();
        if file.ends_with("/Cargo.toml") {
            complaints.extend(check_manifest(file, &text()));
        } else if file.ends_with(".rs") && file.contains("/src/") && !is_test(file) {
            complaints.extend(check_source(file, &text()));
        }
    }
    complaints
}

fn in_crate(file: &str, room: &str) -> bool {
    file.strip_prefix(room)
        .is_some_and(|rest| rest.starts_with('/'))
}

fn is_test(file: &str) -> bool {
    file.contains("/tests/") || file.ends_with("tests.rs")
}

fn check_manifest(file: &str, text: &str) -> Option<String> {
    let names = text.lines().any(|line| line.starts_with(LIBRARY));
    names.then(|| format!("{file}: depends on {LIBRARY}, which only {CRATES:?} may use"))
}

fn check_source(file: &str, text: &str) -> Vec<String> {
    let Ok(parsed) = syn::parse_file(text) else {
        return Vec::new();
    };
    let mut found = Found::default();
    found.visit_file(&parsed);
    let lines = found.lines.iter();
    lines
        .map(|line| format!("{file}:{line}: SQL outside crates/store"))
        .collect()
}

/// The lines of string literals that are SQL.
#[derive(Default)]
struct Found {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Found {
    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        if is_sql(&literal.value()) {
            self.lines.push(literal.span().start().line);
        }
        visit::visit_lit_str(self, literal);
    }
}

fn is_sql(text: &str) -> bool {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_meant = |parts: &&[&str]| {
        let begins = text.starts_with(parts[0]);
        begins && parts.iter().all(|part| text.contains(part))
    };
    STATEMENTS.iter().any(is_meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_from_prose() {
        for sql in [
            "SELECT * FROM vault",
            "\n    SELECT id\n    FROM vault",
            "INSERT OR IGNORE INTO damaged (id) VALUES (?1)",
            "UPDATE vault SET name = ?2",
            "DELETE FROM journal",
            "\n  CREATE VIRTUAL TABLE word USING fts5",
            "PRAGMA user_version",
            "VACUUM INTO ?1",
        ] {
            assert!(is_sql(sql), "{sql}");
        }
        for prose in [
            "Select one from many",
            "the UPDATE of a SET",
            "SELECT",
            "SELECTED",
        ] {
            assert!(!is_sql(prose), "{prose}");
        }
    }

    #[test]
    fn only_literals_count_and_only_outside_of_the_store() {
        let text = "// SELECT * FROM x\nfn f() -> &'static str {\n    \"DELETE FROM x\"\n}\n";
        let file = "crates/vault/src/a.rs";
        assert_eq!(
            check_source(file, text),
            ["crates/vault/src/a.rs:3: SQL outside crates/store"]
        );
        assert!(check_manifest("crates/vault/Cargo.toml", "rusqlite.workspace = true").is_some());
        assert!(check_manifest("crates/vault/Cargo.toml", "serde.workspace = true").is_none());
        assert!(in_crate("crates/store/src/lib.rs", "crates/store"));
        assert!(!in_crate("crates/storeroom/src/lib.rs", "crates/store"));
    }
}
