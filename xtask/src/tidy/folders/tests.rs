//! The arrows between folders: what is reported, and where it cannot hide.

use super::*;

const ROWS: &[Row] = &[
    ("low", &[]),
    ("middle", &["low"]),
    ("high", &["low", "middle"]),
];

const LIB: &str = "mod high;\nmod low;\nmod middle;\npub use high::{Roof as Top, Tile};\n";

/// What is said about a crate with this text in `file`, beside files of all three folders.
fn said(file: &str, text: &str) -> Vec<String> {
    let mut sources: Vec<(&str, String)> = vec![
        ("crates/x/src/lib.rs", LIB.to_owned()),
        ("crates/x/src/low/mod.rs", String::new()),
        ("crates/x/src/middle/mod.rs", String::new()),
        ("crates/x/src/high/mod.rs", String::new()),
    ];
    sources.push((file, text.to_owned()));
    check_crate("crates/x", ROWS, None, &sources)
}

fn is_refused(text: &str, line: usize) {
    let said = said("crates/x/src/low/a.rs", text);
    let wanted = format!(
        "crates/x/src/low/a.rs:{line}: low uses high, which its row in xtask/src/tidy/folders.rs does not allow"
    );
    assert_eq!(said, [wanted], "{text}");
}

#[test]
fn a_bad_arrow_is_reported_with_file_and_line() {
    is_refused("\n\nuse crate::high::Roof;\n", 3);
    is_refused("use crate::{\n    low::A,\n    high::{Roof, },\n};\n", 3);
    is_refused("use\n  crate\n  ::\n  high::b;\n", 4);
    is_refused("use super::super::high;\n", 1);
    is_refused("use super::{b, super::high::Roof};\n", 1);
    is_refused("fn f() -> crate::high::Roof {\n    todo()\n}\n", 1);
    is_refused(
        "fn f() {\n    let x = super::super::high::roof::<u8>();\n}\n",
        2,
    );
    is_refused("fn f() {\n    format!(\"{}\", crate::high::X);\n}\n", 2);
    is_refused("macro_rules! m { () => {\n $crate::high::X } }\n", 2);
    is_refused("mod inner {\n    use super::super::super::high::X;\n}\n", 2);
    is_refused("/* low */ use crate::/* low */high::X;\n", 1);
    is_refused("pub(in crate::high) struct X;\n", 1);
}

#[test]
fn a_name_at_the_root_counts_for_the_folder_that_it_is_from() {
    is_refused("use crate::Tile;\n", 1);
    is_refused("use crate::Top;\n", 1);
    is_refused("use crate::{low::A, Tile as Stone};\n", 1);
    let unknown = said("crates/x/src/low/a.rs", "use crate::Other;\n");
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    assert!(unknown[0].starts_with("crates/x/src/low/a.rs:1: low uses crate::Other"));
}

#[test]
fn the_root_cannot_be_taken_as_a_whole() {
    for text in [
        "use crate::*;",
        "use crate as all;",
        "use crate::{self as all};",
        "use super::super::*;",
        "use super::super::{self as all};",
    ] {
        let said = said("crates/x/src/low/a.rs", text);
        assert_eq!(said.len(), 1, "{text}: {said:?}");
        assert!(said[0].contains("a.rs:1: low takes the root"), "{said:?}");
    }
}

#[test]
fn allowed_arrows_comments_texts_and_tests_are_not_reported() {
    let fine = "//! See crate::high::X.\nuse super::b;\nuse crate::low::c::{self, D};\n\
        // use crate::high::X;\npub(crate) struct S { a: &'static str }\n\
        impl S { pub(super) fn f(&self) -> Self { self::g(\"crate::high::X\"); Self::h() } }\n\
        #[cfg(test)]\nuse crate::high::X;\n\
        #[cfg(test)]\nmod tests { use super::*; use crate::high::X; }\n";
    assert_eq!(said("crates/x/src/low/a.rs", fine), Vec::<String>::new());
    let middle = "use crate::{low::A, middle::B};\nfn f(_: crate::low::C) {}\n";
    assert_eq!(
        said("crates/x/src/middle/a.rs", middle),
        Vec::<String>::new()
    );
    let tests = "use crate::high::X;\n";
    assert_eq!(
        said("crates/x/src/low/tests.rs", tests),
        Vec::<String>::new()
    );
}

#[test]
fn every_module_has_a_row_and_no_row_points_down() {
    let said = said("crates/x/src/extra.rs", "");
    assert_eq!(
        said,
        ["crates/x: module extra has no row in xtask/src/tidy/folders.rs"]
    );
    let rows: &[Row] = &[("low", &["high"]), ("high", &["low"])];
    let said = check_crate("crates/x", rows, None, &[]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("low may not use high"), "{said:?}");
}

#[test]
fn a_hub_names_what_its_list_has_and_nothing_else() {
    let hub: Hub = ("low", &["high::Roof", "middle::B"]);
    let said = |file: &str, text: &str| {
        let sources = [
            ("crates/x/src/lib.rs", LIB),
            ("crates/x/src/high.rs", ""),
            (file, text),
        ];
        let sources = sources.map(|(file, text)| (file, text.to_owned()));
        check_crate("crates/x", ROWS, Some(&hub), &sources)
    };
    let both = "use crate::high::Roof;\nuse crate::middle::B;\n";
    assert_eq!(said("crates/x/src/low.rs", both), Vec::<String>::new());
    let more = said(
        "crates/x/src/low.rs",
        &format!("{both}use crate::high::Tile;\n"),
    );
    assert_eq!(more.len(), 1, "{more:?}");
    assert!(more[0].starts_with("crates/x/src/low.rs:3: "), "{more:?}");
    // Nobody else may name it, and a name that is not used has to go.
    let other = said("crates/x/src/middle.rs", "use crate::high::Roof;\n");
    assert_eq!(other.len(), 3, "{other:?}");
    assert!(other[0].contains("middle uses high"), "{other:?}");
}

#[test]
fn the_table_is_about_crates_that_are_there() {
    let top = crate::tidy::top();
    for (room, rows) in FOLDERS {
        for (module, _) in *rows {
            let folder = top.join(room).join("src").join(module);
            assert!(
                folder.is_dir() || folder.with_extension("rs").is_file(),
                "{room}: {module}"
            );
        }
    }
}
