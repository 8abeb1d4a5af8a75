//! Rules for documents: every file and folder of the repository that they name exists.

use std::collections::BTreeSet;
use std::path::Path;

pub fn check(top: &Path, files: &[String]) -> Vec<String> {
    let tree = Tree::of(files);
    let mut complaints = Vec::new();
    // The changelog tells of paths that are gone.
    let is_checked = |file: &&String| file.ends_with(".md") && *file != "CHANGELOG.md";
    for file in files.iter().filter(is_checked) {
        let text = std::fs::read_to_string(top.join(file)).unwrap_or_default();
        let missing = named(&text).into_iter().filter(|(_, path)| !tree.has(path));
        complaints
            .extend(missing.map(|(line, path)| format!("{file}:{line}: {path} does not exist")));
    }
    complaints
}

/// The files of the repository, and the folders that they are in.
struct Tree<'f> {
    paths: BTreeSet<&'f str>,
}

impl<'f> Tree<'f> {
    fn of(files: &'f [String]) -> Tree<'f> {
        let parents = |file: &'f String| {
            let ends = file.match_indices('/').map(|(at, _)| at);
            ends.chain([file.len()]).map(|end| &file[..end])
        };
        let paths = files.iter().flat_map(parents).collect();
        Tree { paths }
    }

    /// Whether a path is there, from the top or from any folder further down: `exec.rs`, `view/src/layer.rs`.
    fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let ends = |known: &&str| {
            let before = known.strip_suffix(path);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        self.paths.iter().any(ends)
    }
}

/// The paths of the repository that a text names in code spans, each with its line. Blocks of code are left out.
fn named(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let spans = line.split('`').skip(1).step_by(2);
            let paths = spans.filter(|span| is_source_path(span));
            found.extend(paths.map(|path| (number + 1, path.to_owned())));
        }
    }
    found
}

/// Whether a code span is meant to be a path of the repository, and not of a vault or of the host.
fn is_source_path(span: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if !span.chars().all(plain) || span.starts_with(['/', '.']) {
        return false;
    }
    let parts: Vec<&str> = span.split('/').collect();
    let top = [
        "benches", "crates", "docs", "examples", "scripts", "src", "tests", "xtask",
    ];
    match parts.as_slice() {
        [first, _, ..] if top.contains(first) => true,
        [_, "src" | "tests", ..] => true,
        _ => span.ends_with(".rs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_code_spans_with_their_lines() {
        let text = "# A\nsee `cli/src/args.rs`, `docs/x.md`, `exec.rs` and `src/lib.rs`\n\
            not `/etc/hosts`, `store.db`, `packs/`, `a b/src/x.rs`, `runtime/src/<noun>.rs`, `./x.rs`\n\
            ```\n`crates/no`\n```\n`policy/tests/` `crates/store`\n";
        let found = named(text);
        let wanted = [
            (2, "cli/src/args.rs"),
            (2, "docs/x.md"),
            (2, "exec.rs"),
            (2, "src/lib.rs"),
            (7, "policy/tests/"),
            (7, "crates/store"),
        ];
        assert_eq!(found, wanted.map(|(line, path)| (line, path.to_owned())));
    }

    #[test]
    fn a_path_counts_only_as_a_whole() {
        let files = ["crates/cli/src/args.rs", "docs/exec.md"].map(str::to_owned);
        let tree = Tree::of(&files);
        for path in [
            "crates/cli/src/args.rs",
            "cli/src/args.rs",
            "args.rs",
            "cli/src/",
            "cli/src",
            "docs/exec.md",
        ] {
            assert!(tree.has(path), "{path}");
        }
        for path in ["gs.rs", "cli/src/arg.rs", "i/src", "docs/exec", "src/args"] {
            assert!(!tree.has(path), "{path}");
        }
    }
}
