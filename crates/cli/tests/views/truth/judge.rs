//! What differs between two scans by a script of its own, and the same as a report tells it.

use std::collections::BTreeMap;

use avfs_testkit::Home;
use serde_json::Value;

pub type Scan = BTreeMap<String, Value>;

/// What is below `/w` of a vault: `words` choose it, as `--vault` does.
pub fn scan(home: &Home, words: &[&str]) -> Scan {
    let command = ["exec", "--", "/usr/bin/python3", "/scan.py", "/w"];
    let envelope = home.json(&[words, &command].concat());
    assert_eq!(envelope["result"]["exit_code"], 0, "{envelope:#}");
    assert_eq!(
        envelope["result"]["changed_files"],
        serde_json::json!([]),
        "looking changes nothing"
    );
    let text = envelope["result"]["stdout"].as_str().expect("text");
    serde_json::from_str(text).expect("the scan prints JSON")
}

/// Path → created, deleted, modified or mode, from two scans.
pub fn differences(before: &Scan, after: &Scan) -> BTreeMap<String, &'static str> {
    let mut found = BTreeMap::new();
    for path in before.keys().chain(after.keys()) {
        let word = match (before.get(path), after.get(path)) {
            (None, _) => "created",
            (_, None) => "deleted",
            (Some(old), Some(new)) if old == new => continue,
            (Some(old), Some(new)) if same_but_mode(old, new) => "mode",
            _ => "modified",
        };
        found.insert(path.clone(), word);
    }
    found
}

fn same_but_mode(old: &Value, new: &Value) -> bool {
    old[0] == new[0] && old[0] != "symlink" && (old[2] == new[2] && old[3] == new[3])
}

/// A path as the scan names it: text where it is UTF-8, else base64.
fn path(change: &Value, key: &str) -> String {
    match change[format!("{key}_b64")].as_str() {
        Some(bytes) => format!("b64:{bytes}"),
        None => change[key].as_str().expect("text").to_owned(),
    }
}

/// The differences that a report names; a rename is a deletion and a creation. Extended attributes are not scanned.
pub fn reported(envelope: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for change in envelope["result"]["changes"].as_array().expect("a list") {
        let to = path(change, "path");
        match change["kind"].as_str().expect("text") {
            "renamed" => {
                found.insert(path(change, "from"), "deleted".into());
                found.insert(to, "created".into());
            }
            "xattrs" => {}
            kind => drop(found.insert(to, kind.to_owned())),
        }
    }
    found
}
