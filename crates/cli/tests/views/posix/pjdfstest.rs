//! pjdfstest: every call that names files, and every error it may give.

use super::exceptions::listed;
use super::{bring, programs};
use crate::AVFS;
use avfs_testkit::{Shown, Way};
use std::collections::{BTreeMap, BTreeSet};

/// Everything the suite can be told to try on Linux.
const FEATURES: &str = r#"
[features]
posix_fallocate = {}
rename_ctime = {}
stat_st_birthtime = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.01
[dummy_auth]
"#;

/// Cases that passed, those that did not, and how many were not tried, by reason.
#[derive(Debug, Default)]
struct Outcome {
    passed: usize,
    failed: BTreeMap<String, String>,
    skipped: BTreeMap<String, usize>,
}

#[test]
fn every_case_passes_but_for_those_listed() {
    let Some(programs) = programs() else { return };
    for shown in Shown::in_every_way(AVFS) {
        bring(&shown, &programs, "pjdfstest");
        // Users to switch to, and another filesystem.
        let (users, other) = match shown.is_mounted() {
            true => (r#"["nobody", "nogroup"], ["daemon", "daemon"]"#, "/dev/shm"),
            false => (r#"["agent", "agent"], ["nobody", "nogroup"]"#, "/tmp"),
        };
        let config = format!("{FEATURES}entries = [{users}]\n");
        shown.home.ok(&["write", "/pjdfstest.toml", &config]);
        shown.home.ok(&["mkdir", "/w"]);
        let [program, config, dir] =
            ["/programs/pjdfstest", "/pjdfstest.toml", "/w"].map(|path| shown.at(path));
        let ran = shown.run("/", &[&program, "-c", &config, "-p", &dir, "-s", other]);
        let outcome = read(&ran.stdout);
        let failed: BTreeSet<String> = outcome.failed.keys().cloned().collect();
        let expected = listed("pjdfstest", shown.way());
        assert_eq!(failed, expected, "{:?}: {outcome:#?}", shown.way());
        let skipped: Vec<(&str, usize)> = outcome
            .skipped
            .iter()
            .map(|(reason, count)| (reason.as_str(), *count))
            .collect();
        let (tried, not_tried) = expectation(shown.way());
        assert_eq!(skipped, not_tried, "{:?}", shown.way());
        assert_eq!(outcome.passed + failed.len(), tried, "{outcome:#?}");
    }
}

/// How many cases are tried, and why others are not.
fn expectation(way: Way) -> (usize, &'static [(&'static str, usize)]) {
    match way {
        Way::ExecRoot | Way::ExecUser | Way::FuseUser => (
            254,
            &[
                (
                    "Cannot get value for LINK_MAX: filesystem limit is unknown",
                    1,
                ),
                (
                    "process doesn't have the CAP_SYS_ADMIN cap to mount the dummy file system",
                    1,
                ),
                ("requires root privileges", 142),
            ],
        ),
        Way::OverlayRoot | Way::FuseRoot => (
            384,
            &[
                (
                    "Cannot get value for LINK_MAX: filesystem limit is unknown",
                    1,
                ),
                (
                    "Remounts (allow_remount) are not allowed in the configuration file",
                    13,
                ),
            ],
        ),
    }
}

/// Each case is a line; lines that begin with a tab say more about the one before.
fn read(output: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let mut said = Vec::new();
        while let Some(more) = lines.next_if(|line| line.starts_with('\t')) {
            said.push(more.trim());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "ok"] => outcome.passed += 1,
            [name, "FAILED"] => {
                outcome.failed.insert(name.to_owned(), said.join("; "));
            }
            [_, "skipped"] => {
                let reason = said.first().expect("a skipped case says why");
                *outcome.skipped.entry((*reason).to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
    outcome
}
