//! The tables of `docs/posix.md`.

use avfs_testkit::Way;
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../../../docs/posix.md");

/// The names listed for a view in the table below a heading. A row is some names, the views it is about,
/// and the reason.
pub fn listed(heading: &str, way: Way) -> BTreeSet<String> {
    let start = DOCUMENT
        .find(&format!("## {heading}\n"))
        .unwrap_or_else(|| panic!("docs/posix.md has no heading {heading:?}"));
    let section = DOCUMENT[start + 2..].split("\n#").next().expect("itself");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let mut found = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, names, ways, reason, _] = cells[..] else {
            panic!("{row}: a row has names, the views and a reason");
        };
        assert!(reason.len() > 10, "{row}: says no reason");
        if ways.split(", ").any(|word| word == way.word()) {
            let names = names.split(", ").map(|name| name.trim_matches('`'));
            found.extend(names.map(str::to_owned));
        }
    }
    found
}
