//! Our own work in a layer: skipped by the commit, or completed by it.
//!
//! Without root, the mover exchanges stored directories by copying them. If the sandbox ends after an exchange was decided,
//! the names have the content of the copies, however much of the old content is left.

use std::collections::BTreeMap;

use super::contents::{Contents, Hashed};
use super::{OwnWork, Staging, StagingUse, is_within, vault_path};
use crate::scan::{UpperEntry, UpperKind};

/// A copy in the layer, and its destination; neither has a leading slash.
pub(super) struct Arrival {
    copy: Vec<u8>,
    goal: Vec<u8>,
}

/// Removes our own work from a listing, except for copies that are not in place yet.
pub(super) fn separate(entries: &mut Vec<UpperEntry>, own_work: &OwnWork<'_>) -> Vec<Arrival> {
    match own_work {
        OwnWork::None => Vec::new(),
        OwnWork::Names(token) => {
            let is_ours = |name: &[u8]| name.starts_with(token);
            entries.retain(|entry| !entry.path.split(|byte| *byte == b'/').any(is_ours));
            Vec::new()
        }
        OwnWork::Staging(staging) => {
            let top = [staging.hidden, b"/", staging.name].concat();
            let arrivals = match staging.used {
                StagingUse::InUse => Vec::new(),
                StagingUse::Abandoned => decided(entries, staging, &top),
            };
            let is_staged = |path: &[u8]| is_within(path, &top);
            // Then only the staging directory put it into the layer, and the vault need not have it.
            let is_only_ours = {
                let beneath = entries.iter().map(|entry| &*entry.path);
                let beneath = beneath.filter(|path| is_within(path, staging.hidden));
                let mut beneath = beneath.filter(|path| *path != staging.hidden).peekable();
                beneath.peek().is_some() && beneath.all(is_staged)
            };
            let arrives = |path: &[u8]| arrivals.iter().any(|it| is_within(path, &it.copy));
            entries.retain(|entry| {
                let path = &*entry.path;
                let is_ours = is_staged(path) || is_only_ours && path == staging.hidden;
                !is_ours || arrives(path)
            });
            arrivals
        }
    }
}

/// The decided copies that are not in place yet.
fn decided(entries: &[UpperEntry], staging: &Staging<'_>, top: &[u8]) -> Vec<Arrival> {
    let mut noted: BTreeMap<&[u8], [Option<&[u8]>; 2]> = BTreeMap::new();
    for entry in entries {
        let UpperKind::Symlink { target } = &entry.kind else {
            continue;
        };
        let (directory, name) = parted(&entry.path);
        if parted(directory).0 != top {
            continue;
        }
        let end = staging.exchange_ends.iter().position(|end| *end == name);
        let goal = target.strip_prefix(b"/").filter(|goal| {
            !goal.is_empty() && vault_path(goal).is_some() && !is_within(goal, staging.hidden)
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
        let goals = goals.zip(staging.exchange_copies);
        Some(goals.map(move |(goal, name)| Arrival {
            copy: [directory, b"/", name].concat(),
            goal: goal.to_vec(),
        }))
    });
    let is_there = |arrival: &Arrival| entries.iter().any(|entry| entry.path == arrival.copy);
    decided.flatten().filter(is_there).collect()
}

/// Whether an entry can only be classified together with others.
pub(super) fn is_candidate(entry: &UpperEntry, own_work: &OwnWork<'_>) -> bool {
    match own_work {
        OwnWork::None => false,
        OwnWork::Names(token) => {
            let mut names = entry.path.split(|byte| *byte == b'/');
            names.any(|name| name.starts_with(token))
        }
        OwnWork::Staging(staging) => is_within(&entry.path, staging.hidden),
    }
}

/// The path of an entry after all copies are in place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryMove {
    Stays,
    Arrives,
}

/// The path of an entry; `None` if it is replaced.
pub(super) fn place(entry: &UpperEntry, arrivals: &[Arrival]) -> Option<EntryMove> {
    let is_at = |top: &Vec<u8>| is_within(&entry.path, top);
    if arrivals.iter().any(|arrival| is_at(&arrival.copy)) {
        return Some(EntryMove::Arrives);
    }
    let makes_way = arrivals.iter().any(|arrival| is_at(&arrival.goal));
    (!makes_way).then_some(EntryMove::Stays)
}

/// Moves an entry of a copy to the copy's destination.
pub(super) fn arrive(entry: &mut UpperEntry, arrivals: &[Arrival]) {
    let is_at = |arrival: &&Arrival| is_within(&entry.path, &arrival.copy);
    let Some(arrival) = arrivals.iter().find(is_at) else {
        return;
    };
    let is_top = entry.path == arrival.copy;
    if let UpperKind::Directory { opaque, .. } = &mut entry.kind {
        *opaque |= is_top;
    }
    entry.path = [&arrival.goal, &entry.path[arrival.copy.len()..]].concat();
}

/// A listing with all copies in place.
pub(super) struct Settled {
    pub entries: Vec<UpperEntry>,
    pub contents: Contents,
    /// How many entries have not moved; moved ones come last, when all their parents are known.
    pub staying: usize,
}

/// The listing with all copies in place.
pub(super) fn settle(
    entries: Vec<UpperEntry>,
    contents: Contents,
    arrivals: &[Arrival],
) -> Settled {
    let mut staying: Vec<(UpperEntry, Hashed)> = Vec::new();
    let mut arriving = Vec::new();
    for (mut entry, content) in entries.into_iter().zip(contents.of) {
        match place(&entry, arrivals) {
            Some(EntryMove::Arrives) => {
                arrive(&mut entry, arrivals);
                arriving.push((entry, content));
            }
            Some(EntryMove::Stays) => staying.push((entry, content)),
            None => {}
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

/// The directory and the last name of a path.
fn parted(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}
