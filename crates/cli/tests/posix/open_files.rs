//! Open files: descriptors, truncation, names that go, memory, locks; new files and stored ones.

use crate::AVFS;
use crate::exceptions::listed;
use avfs_testkit::{Ran, Shown};
use std::collections::{BTreeMap, BTreeSet};

const SCRIPT: &str = include_str!("../scripts/open_files.py");

/// Fewer would mean that something was not tried.
const CHECKS: usize = 45;

#[test]
fn new_files_behave_as_posix_says() {
    for shown in Shown::in_every_way(AVFS) {
        shown.home.ok(&["write", "/open_files.py", SCRIPT]);
        let failed = failures(&run(&shown, "/w", "all"));
        let expected = listed("New files", shown.way());
        assert_eq!(names(&failed), expected, "{:?}: {failed:#?}", shown.way());
    }
}

#[test]
fn stored_files_behave_as_posix_says_or_as_listed() {
    for shown in Shown::in_every_way(AVFS) {
        shown.home.ok(&["write", "/open_files.py", SCRIPT]);
        run(&shown, "/w", "prepare");
        shown.reopen();
        let failed = failures(&run(&shown, "/w", "check"));
        let expected = listed("Stored files", shown.way());
        assert_eq!(names(&failed), expected, "{:?}: {failed:#?}", shown.way());
    }
}

fn run(shown: &Shown, dir: &str, what: &str) -> Ran {
    let (script, dir) = (shown.at("/open_files.py"), shown.at(dir));
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
