//! Two names that were being exchanged when the layer was looked at.
//!
//! Without root, the sandbox exchanges stored directories by copying them. Once that is decided, what the names mean is
//! what the copies hold, however much of the old is still there.

use std::collections::BTreeMap;

use super::contents::{Contents, Hashed};
use super::{Unfinished, is_within, vault_path};
use crate::scan::{UpperEntry, UpperKind};

/// A copy in the layer, and the path that it is for; neither has a leading slash.
pub(super) struct Arrival {
    copy: Vec<u8>,
    goal: Vec<u8>,
}

/// What has been decided and is not done yet.
pub(super) fn find(entries: &[UpperEntry], unfinished: &Unfinished<'_>) -> Vec<Arrival> {
    if unfinished.prefix.is_empty() {
        return Vec::new();
    }
    let mut noted: BTreeMap<&[u8], [Option<&[u8]>; 2]> = BTreeMap::new();
    for entry in entries {
        let UpperKind::Symlink { target } = &entry.kind else {
            continue;
        };
        let (directory, name) = parted(&entry.path);
        if !parted(directory).1.starts_with(unfinished.prefix) {
            continue;
        }
        let end = unfinished.exchange_ends.iter().position(|end| *end == name);
        // Anybody can make such links: what is no path of the vault's says nothing.
        let goal = target.strip_prefix(b"/").filter(|goal| {
            !goal.is_empty() && vault_path(goal).is_some() && !is_within(goal, directory)
        });
        if let (Some(end), Some(goal)) = (end, goal) {
            noted.entry(directory).or_default()[end] = Some(goal);
        }
    }
    let decided = noted.into_iter().filter_map(|(directory, ends)| {
        let [Some(first), Some(second)] = ends else {
            return None;
        };
        let goals = [first, second].into_iter();
        Some(
            goals
                .zip(unfinished.exchange_copies)
                .map(move |(goal, name)| Arrival {
                    copy: [directory, b"/", name].concat(),
                    goal: goal.to_vec(),
                }),
        )
    });
    let is_there = |arrival: &Arrival| entries.iter().any(|entry| entry.path == arrival.copy);
    decided.flatten().filter(is_there).collect()
}

/// A listing without anything unfinished.
pub(super) struct Settled {
    pub entries: Vec<UpperEntry>,
    pub contents: Contents,
    /// How many of the entries have not moved; those that have come last, when all that can be above them is known.
    pub staying: usize,
}

/// The listing as it will be when all of them have arrived.
pub(super) fn settle(
    entries: Vec<UpperEntry>,
    contents: Contents,
    arrivals: &[Arrival],
) -> Settled {
    let mut staying: Vec<(UpperEntry, Hashed)> = Vec::new();
    let mut arriving = Vec::new();
    for (mut entry, content) in entries.into_iter().zip(contents.of) {
        let is_at = |top: &Vec<u8>| is_within(&entry.path, top);
        if let Some(arrival) = arrivals.iter().find(|arrival| is_at(&arrival.copy)) {
            let is_top = entry.path == arrival.copy;
            if let UpperKind::Directory { opaque, .. } = &mut entry.kind {
                *opaque |= is_top;
            }
            entry.path = [&arrival.goal, &entry.path[arrival.copy.len()..]].concat();
            arriving.push((entry, content));
        } else if !arrivals.iter().any(|arrival| is_at(&arrival.goal)) {
            staying.push((entry, content));
        }
    }
    let count = staying.len();
    let (entries, of) = staying.into_iter().chain(arriving).unzip();
    Settled {
        entries,
        contents: Contents { of },
        staying: count,
    }
}

/// A path's directory and its last name.
fn parted(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}
