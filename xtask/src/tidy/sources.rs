//! Rules for Rust files: a first line that says what the file is, short functions, short files, no printing.

use std::path::Path;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const FUNCTION_LINES_MAX: usize = 70;
/// A test that tells a story may take longer, because cutting a story in two helps nobody.
const TEST_LINES_MAX: usize = 100;
/// Lines of one file, its tests, comments and blank lines included.
const FILE_LINES_MAX: usize = 500;

pub fn check(top: &Path, files: &[String]) -> Vec<String> {
    let sources = files.iter().filter(|file| file.ends_with(".rs"));
    let checked = sources.flat_map(|file| {
        let text = std::fs::read_to_string(top.join(file)).unwrap_or_default();
        check_file(file, &text)
    });
    checked.collect()
}

/// What is wrong with one file.
fn check_file(file: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if !text.starts_with("//!") {
        complaints.push(format!(
            "{file}: does not begin with a //! sentence on what it is"
        ));
    }
    for word in ["todo!(", "unimplemented!(", "#[ignore]", "allow(dead_code)"] {
        if text.contains(word) && !file.starts_with("xtask/") {
            complaints.push(format!("{file}: has {word}"));
        }
    }
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        complaints.push(format!(
            "{file}: {lines} lines, and a file has up to {FILE_LINES_MAX}: split it"
        ));
    }
    match syn::parse_file(text) {
        Ok(parsed) => check_shape(file, &parsed, &mut complaints),
        Err(error) => complaints.push(format!("{file}: {error}")),
    }
    complaints
}

fn check_shape(file: &str, parsed: &syn::File, complaints: &mut Vec<String>) {
    let mut shape = Shape::new(if is_test(file) {
        TEST_LINES_MAX
    } else {
        FUNCTION_LINES_MAX
    });
    shape.visit_file(parsed);
    for (name, lines) in &shape.long {
        complaints.push(format!("{file}: function {name} has {lines} lines"));
    }
    if is_test(file) {
        return;
    }
    let printers = [
        "crates/cli/",
        "crates/agentvfs/examples/",
        "benches/",
        "xtask/",
    ];
    let may_print = printers.iter().any(|room| file.starts_with(room));
    if !may_print {
        complaints.extend(
            shape
                .prints
                .iter()
                .map(|line| format!("{file}:{line}: prints")),
        );
    }
}

fn is_test(file: &str) -> bool {
    file.contains("/tests/") || file.ends_with("/tests.rs")
}

/// What a file is made of, as far as the rules care.
struct Shape {
    lines_max: usize,
    long: Vec<(String, usize)>,
    prints: Vec<usize>,
}

impl Shape {
    fn new(lines_max: usize) -> Shape {
        let (long, prints) = (Vec::new(), Vec::new());
        Shape {
            lines_max,
            long,
            prints,
        }
    }

    fn function(&mut self, name: &syn::Ident, whole: Span) {
        let lines = length(whole);
        if lines > self.lines_max {
            self.long.push((name.to_string(), lines));
        }
    }
}

impl<'a> Visit<'a> for Shape {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        let is_test = module.attrs.iter().any(|attribute| {
            let meta = &attribute.meta;
            attribute.path().is_ident("cfg")
                && matches!(meta, syn::Meta::List(list) if list.tokens.to_string() == "test")
        });
        if is_test {
            // Tests may print; their functions still have to be short.
            let mut inner = Shape::new(TEST_LINES_MAX);
            visit::visit_item_mod(&mut inner, module);
            self.long.extend(inner.long);
        } else {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.function(&function.sig.ident, function.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.function(&function.sig.ident, function.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        let name = call.path.segments.last().map(|part| part.ident.to_string());
        let prints = ["print", "println", "eprint", "eprintln", "dbg"];
        if name.is_some_and(|name| prints.contains(&name.as_str())) {
            self.prints.push(call.span().start().line);
        }
    }
}

fn length(span: Span) -> usize {
    span.end().line - span.start().line + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_file_counts() {
        let head = "//! A file.\n";
        let in_tests = |lines: usize| {
            let blank = "\n".repeat(lines - 4);
            format!("{head}#[cfg(test)]\nmod tests {{\n{blank}}}\n")
        };
        let comments = |lines: usize| head.repeat(lines);
        for file in [
            "crates/a/src/lib.rs",
            "crates/a/src/b/tests.rs",
            "crates/a/tests/c.rs",
            "benches/src/main.rs",
            "xtask/src/main.rs",
        ] {
            for text in [&in_tests as &dyn Fn(usize) -> String, &comments] {
                let none: [&str; 0] = [];
                assert_eq!(check_file(file, &text(FILE_LINES_MAX)), none, "{file}");
                let said = check_file(file, &text(FILE_LINES_MAX + 1));
                let wanted = format!("{file}: 501 lines, and a file has up to 500: split it");
                assert_eq!(said, [wanted]);
            }
        }
    }
}
