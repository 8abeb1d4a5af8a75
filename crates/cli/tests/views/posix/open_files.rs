//! Open files: descriptors, truncation, names that go, memory, locks; new files and stored ones.

use super::exceptions::listed;
use crate::AVFS;
use avfs_testkit::{Ran, Shown};
use std::collections::{BTreeMap, BTreeSet};

/// The script, as a directory of modules.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts/open_files");

/// Fewer would mean that something was not tried.
const CHECKS: usize = 45;

#[test]
fn new_files_behave_as_posix_says() {
    for shown in Shown::in_every_way(AVFS) {
        bring_script(&shown);
        let failed = failures(&run(&shown, "/w", "all"));
        let expected = listed("New files", shown.way());
        assert_eq!(names(&failed), expected, "{:?}: {failed:#?}", shown.way());
    }
}

#[test]
fn stored_files_behave_as_posix_says_or_as_listed() {
    for shown in Shown::in_every_way(AVFS) {
        bring_script(&shown);
        run(&shown, "/w", "prepare");
        shown.reopen();
        let failed = failures(&run(&shown, "/w", "check"));
        let expected = listed("Stored files", shown.way());
        assert_eq!(names(&failed), expected, "{:?}: {failed:#?}", shown.way());
    }
}

/// Brings the script into the vault, as `/open_files`.
fn bring_script(shown: &Shown) {
    // From the home, which the user can read for certain.
    let here = shown.home.path().join("open_files");
    std::fs::create_dir_all(&here).expect("a directory");
    for module in std::fs::read_dir(SCRIPT).expect("the script is there") {
        let module = module.expect("a listing").path();
        if let Some(name) = module.file_name().filter(|_| module.is_file()) {
            std::fs::copy(&module, here.join(name)).expect("a copy");
        }
    }
    let here = here.to_str().expect("a path of ours is text");
    shown.home.ok(&["import", here, "/open_files"]);
}

fn run(shown: &Shown, dir: &str, what: &str) -> Ran {
    let (script, dir) = (shown.at("/open_files"), shown.at(dir));
    let ran = shown.run("/", &["python3", &script, &dir, what]);
    ran.ok();
    ran
}

fn failures(ran: &Ran) -> BTreeMap<String, String> {
    let said: BTreeMap<String, Option<String>> =
        serde_json::from_str(&ran.stdout).expect("the script prints JSON");
    assert!(said.len() >= CHECKS, "only {} checks", said.len());
    said.into_iter()
        .filter_map(|(name, failure)| Some((name, failure?)))
        .collect()
}

fn names(failed: &BTreeMap<String, String>) -> BTreeSet<String> {
    failed.keys().cloned().collect()
}
