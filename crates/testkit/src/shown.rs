//! A vault shown as a directory, in each of the ways there are, and programs run in it.

use crate::Home;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

/// More than any program of the tests says.
const OUTPUT_LIMIT: &str = "16777216";

/// A vault that programs see as a directory.
pub struct Shown {
    pub home: Home,
    way: Way,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// As the root directory of a sandbox, to commands of a daemon of root's.
    ExecRoot,
    /// The same of an ordinary user's.
    ExecUser,
}

impl Way {
    /// What it is called in tables.
    pub fn word(self) -> &'static str {
        match self {
            Way::ExecRoot => "exec-root",
            Way::ExecUser => "exec-user",
        }
    }
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i64>,
    pub stdout: String,
    pub stderr: String,
    /// What the report of it says.
    pub report: Value,
}

impl Ran {
    /// The program must have succeeded; gives its standard output.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert_eq!(
            self.code,
            Some(0),
            "{}\n{}{}",
            self.report["command"],
            self.stdout,
            self.stderr
        );
        &self.stdout
    }
}

impl Shown {
    /// A fresh vault in every way that this test can have it.
    pub fn in_every_way(binary: &str) -> Vec<Shown> {
        Home::of_every_user(binary)
            .into_iter()
            .map(Shown::by_exec)
            .collect()
    }

    /// A fresh vault in that home, seen by its commands.
    pub fn by_exec(home: Home) -> Shown {
        home.ok(&["vault", "create", "v"]);
        let way = if home.is_root() {
            Way::ExecRoot
        } else {
            Way::ExecUser
        };
        Shown { home, way }
    }

    pub fn way(&self) -> Way {
        self.way
    }

    /// Where programs find a path of the vault.
    pub fn at(&self, path: &str) -> String {
        match self.way {
            Way::ExecRoot | Way::ExecUser => path.to_owned(),
        }
    }

    /// Runs a program in a directory of the vault.
    pub fn run<S: AsRef<OsStr>>(&self, cwd: &str, words: &[S]) -> Ran {
        let options = ["proxy", "exec", "--cwd", cwd, "--timeout", "600000"];
        let mut all: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        all.extend(["--output-limit", OUTPUT_LIMIT, "--"].map(OsStr::new));
        all.extend(words.iter().map(AsRef::as_ref));
        let mut envelope = self.home.json(&all);
        let report = envelope["result"].take();
        assert!(report.is_object(), "{envelope:#}");
        let text = |key: &str| report[key].as_str().unwrap_or_default().to_owned();
        Ran {
            code: report["exit_code"].as_i64(),
            stdout: text("stdout"),
            stderr: text("stderr"),
            report,
        }
    }

    /// Runs shell text, which must succeed, in a directory of the vault.
    #[track_caller]
    pub fn shell(&self, cwd: &str, text: &str) -> Ran {
        let ran = self.run(cwd, &["/bin/bash", "-ec", text]);
        ran.ok();
        ran
    }

    /// Stores everything and shows it anew, from what is stored alone.
    pub fn reopen(&self) {
        // Where a file verb has moved the head, the next command gets a view of its own.
        self.home.ok(&["write", "/.fresh", "x"]);
        self.home.ok(&["rm", "/.fresh"]);
    }
}

/// Programs and packages that tests use and no system package brings; `scripts/test` puts them there.
///
/// Nothing, and a word about it, when they are not there and nobody said that they are.
pub fn tools(manifest_dir: &str) -> Option<PathBuf> {
    if let Some(told) = std::env::var_os("AVFS_TEST_TOOLS") {
        return Some(told.into());
    }
    let beside = Path::new(manifest_dir).join("../../target/tools");
    let found = beside.canonicalize().ok();
    if found.is_none() {
        skip("there is no target/tools; scripts/test makes it");
    }
    found
}

/// Says that something is not tried, and why, past what keeps the words of passing tests to itself.
pub fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
