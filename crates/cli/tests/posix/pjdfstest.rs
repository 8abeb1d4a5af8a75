//! pjdfstest: every call that names files, and every error it may give.

use crate::exceptions::listed;
use crate::{AVFS, bring, programs};
use avfs_testkit::Shown;
use std::collections::{BTreeMap, BTreeSet};

/// Everything the suite can be told to try on Linux. Commands are one ordinary user, so nobody is
/// switched to; `/tmp` is another filesystem.
const CONFIG: &str = r#"
[features]
posix_fallocate = {}
rename_ctime = {}
stat_st_birthtime = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.01
[dummy_auth]
entries = [["agent", "agent"], ["nobody", "nogroup"]]
"#;

/// Cases that passed, those that did not, and how many were not tried, by reason.
#[derive(Debug, Default)]
struct Outcome {
    passed: usize,
    failed: BTreeMap<String, String>,
    skipped: BTreeMap<String, usize>,
}

#[test]
fn the_unprivileged_cases_pass_but_for_those_listed() {
    let Some(programs) = programs() else { return };
    for shown in Shown::in_every_way(AVFS) {
        bring(&shown, &programs, "pjdfstest");
        shown.home.ok(&["write", "/pjdfstest.toml", CONFIG]);
        shown.home.ok(&["mkdir", "/w"]);
        let ran = shown.run(
            "/",
            &[
                "/programs/pjdfstest",
                "-c",
                "/pjdfstest.toml",
                "-p",
                "/w",
                "-s",
                "/tmp",
            ],
        );
        let outcome = read(&ran.stdout);
        let failed: BTreeSet<String> = outcome.failed.keys().cloned().collect();
        let expected = listed("pjdfstest", shown.way());
        assert_eq!(failed, expected, "{:?}: {outcome:#?}", shown.way());
        assert_eq!(outcome.passed + failed.len(), 254, "{outcome:#?}");
        let skipped: Vec<(&str, usize)> = outcome
            .skipped
            .iter()
            .map(|(reason, count)| (reason.as_str(), *count))
            .collect();
        assert_eq!(skipped, NOT_TRIED, "{:?}", shown.way());
    }
}

/// What only a superuser could try; how many cases are listed under their first reason.
const NOT_TRIED: &[(&str, usize)] = &[
    (
        "Cannot get value for LINK_MAX: filesystem limit is unknown",
        1,
    ),
    (
        "process doesn't have the CAP_SYS_ADMIN cap to mount the dummy file system",
        1,
    ),
    ("requires root privileges", 142),
];

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
