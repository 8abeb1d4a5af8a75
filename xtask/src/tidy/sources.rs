//! Rules for Rust files: a first line that says what the file is, short functions, short files, no printing.

use std::path::Path;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const FUNCTION_LINES_MAX: usize = 70;
/// A test that tells a story may take longer, because cutting a story in two helps nobody.
const TEST_LINES_MAX: usize = 100;
/// Lines of product code in one file.
const FILE_LINES_MAX: usize = 500;
/// Lines of tests in one file.
const FILE_TEST_LINES_MAX: usize = 600;
/// Files that are longer, each with the lines that it may have at most. The list may only shrink.
const LONG_FILES: [(&str, usize); 0] = [];

pub fn check(top: &Path, files: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let text = std::fs::read_to_string(top.join(file)).unwrap_or_default();
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
        match syn::parse_file(&text) {
            Ok(parsed) => check_shape(file, &text, &parsed, &mut complaints),
            Err(error) => complaints.push(format!("{file}: {error}")),
        }
    }
    let gone = LONG_FILES
        .iter()
        .filter(|(name, _)| !files.iter().any(|file| file == name));
    complaints.extend(gone.map(|(name, _)| {
        format!("{name}: not there: take it from the list in xtask/src/tidy/sources.rs")
    }));
    complaints
}

fn check_shape(file: &str, text: &str, parsed: &syn::File, complaints: &mut Vec<String>) {
    let mut shape = Shape::new(if is_test(file) {
        TEST_LINES_MAX
    } else {
        FUNCTION_LINES_MAX
    });
    shape.visit_file(parsed);
    for (name, lines) in &shape.long {
        complaints.push(format!("{file}: function {name} has {lines} lines"));
    }
    let lines = text.lines().count();
    let tests = match is_test(file) {
        true => lines,
        false => shape.tests.iter().sum(),
    };
    complaints.extend(check_length(file, lines - tests, tests, &LONG_FILES));
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

/// What is wrong with the length of a file, given those that are known to be too long.
fn check_length(
    file: &str,
    product: usize,
    tests: usize,
    known: &[(&str, usize)],
) -> Option<String> {
    let too_long = product > FILE_LINES_MAX || tests > FILE_TEST_LINES_MAX;
    let entry = known.iter().find(|(name, _)| *name == file);
    match entry {
        None if product > FILE_LINES_MAX => {
            Some(format!("{file}: {product} lines of product code"))
        }
        None if too_long => Some(format!("{file}: {tests} lines of tests")),
        Some((_, most)) if product + tests > *most => Some(format!(
            "{file}: {} lines, where it had {most} and should get shorter",
            product + tests
        )),
        Some(_) if !too_long => Some(format!(
            "{file}: short enough: take it from the list in xtask/src/tidy/sources.rs"
        )),
        _ => None,
    }
}

fn is_test(file: &str) -> bool {
    file.contains("/tests/") || file.ends_with("/tests.rs")
}

/// What a file is made of, as far as the rules care.
struct Shape {
    lines_max: usize,
    tests: Vec<usize>,
    long: Vec<(String, usize)>,
    prints: Vec<usize>,
}

impl Shape {
    fn new(lines_max: usize) -> Shape {
        let (tests, long, prints) = (Vec::new(), Vec::new(), Vec::new());
        Shape {
            lines_max,
            tests,
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
            self.tests.push(length(module.span()));
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
    fn long_files_are_reported_and_known_ones_may_only_shrink() {
        let known = [("old.rs", 700)];
        let said = |file, product, tests| check_length(file, product, tests, &known);
        assert_eq!(said("new.rs", FILE_LINES_MAX, FILE_TEST_LINES_MAX), None);
        assert!(said("new.rs", FILE_LINES_MAX + 1, 0).is_some());
        assert!(said("new.rs", 0, FILE_TEST_LINES_MAX + 1).is_some());
        assert_eq!(said("old.rs", 0, 700), None);
        assert!(said("old.rs", 0, 701).is_some());
        assert!(said("old.rs", 0, 600).is_some_and(|text| text.contains("take it from the list")));
    }
}
