//! The judge: what avfs reports of each step must be what two walks of the tree differ in.

use crate::AVFS;
use avfs_testkit::{Ran, Shown, Way};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::process::Command;

const SCAN: &str = include_str!("../../scripts/scan.py");

/// Where the walks begin.
const TOP: &str = "/workspace";

/// What a walk found: by path its kind, mode, size and digest or target, then times, attributes and links.
type Walk = BTreeMap<String, Vec<Value>>;

/// A vault in which tools work on `/workspace`.
pub struct Bench {
    pub shown: Shown,
    last: Walk,
}

impl Bench {
    /// One for every way a vault is shown.
    pub fn every() -> Vec<Bench> {
        let ways = Shown::in_every_way(AVFS).into_iter();
        ways.map(Bench::new).collect()
    }

    /// One for each way that differs in kind, for tools that take long.
    pub fn most() -> Vec<Bench> {
        let ways = without_likes(Shown::in_every_way(AVFS)).into_iter();
        ways.map(Bench::new).collect()
    }

    pub fn new(shown: Shown) -> Bench {
        shown.home.ok(&["write", "/scan.py", SCAN]);
        shown.home.ok(&["mkdir", TOP]);
        shown.home.ok(&["checkpoint", "save", "empty"]);
        let last = walk(&shown, "v");
        Bench { shown, last }
    }

    /// Runs shell text in a directory of the workspace; it must succeed, and be reported as it was.
    #[track_caller]
    pub fn step(&mut self, cwd: &str, text: &str) -> Ran {
        let ran = self.shown.shell(cwd, text);
        let after = walk(&self.shown, "v");
        let expected = differences(&self.last, &after);
        let told = reported(&ran.changes);
        assert_eq!(told, expected, "{:?}: {text}", self.shown.way());
        self.last = after;
        ran
    }

    /// Opens a new view of what is stored, then does a step in it.
    #[track_caller]
    pub fn stored_step(&mut self, cwd: &str, text: &str) -> Ran {
        self.shown.reopen();
        self.step(cwd, text)
    }

    /// All of it is stored, entry by entry, whoever looks; and `uses`, shell texts that change nothing
    /// that counts, still work in a fork and under a new daemon.
    #[track_caller]
    pub fn still_there(self, cwd: &str, uses: &[&str]) {
        let home = &self.shown.home;
        self.total_is_told();
        home.ok(&["vault", "fork", "v", "fork"]);
        self.same("a fork", &walk(&self.shown, "fork"));
        let out = home.path().join("out");
        home.ok(&["export", TOP, out.to_str().expect("a path of ours is text")]);
        self.same("an export", &walk_of_host(&out));
        self.shown.restart();
        self.same("another daemon", &walk(&self.shown, "v"));
        for text in uses {
            self.shown.shell(cwd, text);
            // What tools have noted by its full path is elsewhere for a command in a sandbox.
            if !self.shown.is_mounted() {
                let words = ["--vault", "fork", "exec", "--cwd", cwd, "--"];
                let envelope = home.json(&[&words[..], &["/bin/bash", "-ec", text]].concat());
                assert_eq!(envelope["result"]["exit_code"], 0, "{text}: {envelope:#}");
            }
        }
    }

    /// What `avfs diff` says of everything since the beginning.
    #[track_caller]
    fn total_is_told(&self) {
        let total = self.shown.home.json(&["diff", "empty", "HEAD"]);
        let in_workspace = |(path, _): &(String, String)| path.starts_with(TOP);
        let told: BTreeMap<String, String> = reported(&total["changes"])
            .into_iter()
            .filter(in_workspace)
            .collect();
        let top = (TOP.to_owned(), self.last[TOP].clone());
        assert_eq!(told, differences(&Walk::from([top]), &self.last));
    }

    #[track_caller]
    fn same(&self, who: &str, found: &Walk) {
        let way = self.shown.way();
        for path in self.last.keys().chain(found.keys()) {
            let (live, stored) = (self.last.get(path), found.get(path));
            if way == Way::ExecUser {
                // A new name of a stored file shows another inode there (docs/posix.md).
                let (live, stored) = (
                    live.map(|it| without_links(it)),
                    stored.map(|it| without_links(it)),
                );
                assert_eq!(live, stored, "{way:?}: {path} in {who}");
            } else {
                assert_eq!(live, stored, "{way:?}: {path} in {who}");
            }
        }
    }
}

fn without_links(entry: &[Value]) -> Vec<Value> {
    let mut entry = entry.to_owned();
    if let Some(Value::Object(more)) = entry.last_mut() {
        more.remove("same_as");
    }
    entry
}

/// Leaves root's overlay mount out, which shows programs what commands of root's daemon see, unless all
/// is asked for.
pub fn without_likes(mut all: Vec<Shown>) -> Vec<Shown> {
    let whole = std::env::var_os("AVFS_TOOLS_EVERYWHERE").is_some();
    all.retain(|shown| whole || shown.way() != Way::OverlayRoot);
    all
}

fn walk(shown: &Shown, vault: &str) -> Walk {
    if shown.is_mounted() && vault == "v" {
        return walk_of_host(shown.at(TOP).as_ref());
    }
    let command = "exec python3 /scan.py /workspace --all > /tmp/walk";
    let envelope = shown
        .home
        .json(&["--vault", vault, "exec", "--shell", command]);
    assert_eq!(envelope["result"]["exit_code"], 0, "{envelope:#}");
    assert_eq!(
        envelope["result"]["changed_files"],
        serde_json::json!([]),
        "looking changes nothing"
    );
    let text = shown.home.ok(&["--vault", vault, "cat", "/tmp/walk"]);
    serde_json::from_str(&text).expect("the walk prints JSON")
}

/// Walks a directory of the host, and names paths as the vault does.
fn walk_of_host(dir: &std::path::Path) -> Walk {
    let mut python = Command::new("python3");
    let output = python.args(["-c", SCAN]).arg(dir).arg("--all").output();
    let output = output.expect("python3");
    assert!(output.status.success(), "{output:?}");
    let found: Walk = serde_json::from_slice(&output.stdout).expect("the walk prints JSON");
    let dir = dir.to_str().expect("a path of ours is text");
    let in_vault = |path: &str| path.replacen(dir, TOP, 1);
    let rename = |(path, mut entry): (String, Vec<Value>)| {
        let more = entry.last_mut().expect("an entry ends with its times");
        if let Some(first) = more.get_mut("same_as") {
            *first = in_vault(first.as_str().expect("a path")).into();
        }
        (in_vault(&path), entry)
    };
    found.into_iter().map(rename).collect()
}

/// Path → the word for its change, from two walks.
fn differences(before: &Walk, after: &Walk) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for path in before.keys().chain(after.keys()) {
        let word = match (before.get(path), after.get(path)) {
            (None, _) => "created",
            (_, None) => "deleted",
            (Some(old), Some(new)) => match word(old, new) {
                Some(word) => word,
                None => continue,
            },
        };
        found.insert(path.clone(), word.to_owned());
    }
    found
}

fn word(old: &[Value], new: &[Value]) -> Option<&'static str> {
    let ((old_more, old), (new_more, new)) = (old.split_last()?, new.split_last()?);
    let without_mode = |entry: &[Value]| [&entry[..1], &entry[2..]].concat();
    if old == new {
        // Times alone are no change; who wants them asks for them.
        return (old_more["xattrs"] != new_more["xattrs"]).then_some("xattrs");
    }
    let a_mode = old[0] != "symlink" && old[0] == new[0];
    if a_mode && without_mode(old) == without_mode(new) {
        return Some("mode");
    }
    Some("modified")
}

/// The differences that a report names; a rename is a deletion and a creation.
fn reported(changes: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for change in changes.as_array().expect("a list") {
        let change: &Map<String, Value> = change.as_object().expect("an object");
        let text = |key: &str| change[key].as_str().expect("text").to_owned();
        match change["kind"].as_str().expect("text") {
            "renamed" => {
                found.insert(text("from"), "deleted".to_owned());
                found.insert(text("path"), "created".to_owned());
            }
            kind => drop(found.insert(text("path"), kind.to_owned())),
        }
    }
    found
}
