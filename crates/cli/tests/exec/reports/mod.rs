//! What a report lists, what it counts, and how all of it is had: `avfs changes`.

mod ends;
mod scanned;
mod short;

use crate::AVFS;
use serde_json::Value;

/// The paths of a list of changes, both names of what was renamed.
fn paths(changes: &Value) -> Vec<String> {
    let changes = changes.as_array().expect("a list");
    let names = changes.iter().flat_map(|it| [&it["from"], &it["path"]]);
    let names = names.filter_map(Value::as_str).map(str::to_owned);
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
