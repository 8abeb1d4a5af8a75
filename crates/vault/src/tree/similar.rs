//! Files that moved and were changed on the way: paired by how many lines they share.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hasher;

use crate::{Change, ChangeKind, Kind, Result, Trees};

/// Larger files are not looked into.
const SIZE_MAX: u64 = 1 << 20;
/// More pairs than this are not compared: a guess is not worth any price.
const PAIRS_MAX: usize = 40_000;
/// Half of the bytes must be in lines that both have.
const SHARED_MIN: f64 = 0.5;

/// The bytes in lines of each kind; lines are known by their hash.
struct Lines {
    at: usize,
    bytes: u64,
    lines: HashMap<u64, u64>,
}

impl Trees {
    /// Joins a deleted and a created file that share most of their lines into one `Renamed`, the
    /// most similar first. To be done after [`crate::pair_renames`], which needs no content.
    pub fn pair_similar(&self, mut changes: Vec<Change>) -> Result<Vec<Change>> {
        let places = |kind: &ChangeKind| -> Vec<usize> {
            let all = changes.iter().enumerate();
            all.filter(|(_, change)| change.kind == *kind && text_size(change).is_some())
                .map(|(at, _)| at)
                .collect()
        };
        let (gone, come) = (places(&ChangeKind::Deleted), places(&ChangeKind::Created));
        if gone.is_empty() || come.is_empty() || gone.len() * come.len() > PAIRS_MAX {
            return Ok(changes);
        }
        let read = |places: Vec<usize>| -> Result<Vec<Lines>> {
            let lines = places.into_iter().map(|at| self.lines(&changes, at));
            Ok(lines
                .collect::<Result<Vec<_>>>()?
                .into_iter()
                .flatten()
                .collect())
        };
        let pairs = best_pairs(&changes, &read(gone)?, &read(come)?);
        let mut paired = BTreeSet::new();
        for (old, new) in pairs {
            let before = changes[old].before.clone();
            let from = changes[old].path.clone();
            changes[new].kind = ChangeKind::Renamed { from };
            changes[new].before = before;
            paired.insert(old);
        }
        let mut at = 0;
        changes.retain(|_| {
            at += 1;
            !paired.contains(&(at - 1))
        });
        Ok(changes)
    }

    fn lines(&self, changes: &[Change], at: usize) -> Result<Option<Lines>> {
        let entry = changes[at].after.as_ref().or(changes[at].before.as_ref());
        let Some(Kind::File { content, size, .. }) = entry.map(|entry| &entry.kind) else {
            return Ok(None);
        };
        let bytes = self.read(*content, 0, *size as usize)?;
        if bytes.contains(&0) {
            return Ok(None);
        }
        let mut lines: HashMap<u64, u64> = HashMap::new();
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let mut hasher = DefaultHasher::new();
            hasher.write(line);
            *lines.entry(hasher.finish()).or_default() += line.len() as u64;
        }
        let bytes = bytes.len() as u64;
        Ok(Some(Lines { at, bytes, lines }))
    }
}

/// The size of a file that may be text worth comparing.
fn text_size(change: &Change) -> Option<u64> {
    let entry = change.after.as_ref().or(change.before.as_ref())?;
    let size = entry.size();
    (entry.is_file() && size > 0 && size <= SIZE_MAX).then_some(size)
}

/// Each file at most once, the most similar pairs first; the same name decides between equals.
fn best_pairs(changes: &[Change], gone: &[Lines], come: &[Lines]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for old in gone {
        for new in come {
            let shared = similarity(old, new);
            if shared >= SHARED_MIN {
                let names = (
                    changes[old.at].path.file_name(),
                    changes[new.at].path.file_name(),
                );
                pairs.push((shared, names.0 == names.1, old.at, new.at));
            }
        }
    }
    pairs.sort_by(|a, b| {
        let by_score = b.0.total_cmp(&a.0).then(b.1.cmp(&a.1));
        by_score.then((a.2, a.3).cmp(&(b.2, b.3)))
    });
    let mut taken = BTreeSet::new();
    pairs.retain(|(_, _, old, new)| {
        let free = !taken.contains(old) && !taken.contains(new);
        if free {
            taken.extend([*old, *new]);
        }
        free
    });
    pairs
        .into_iter()
        .map(|(_, _, old, new)| (old, new))
        .collect()
}

fn similarity(old: &Lines, new: &Lines) -> f64 {
    let larger = old.bytes.max(new.bytes);
    if (old.bytes.min(new.bytes) as f64) < larger as f64 * SHARED_MIN {
        return 0.0;
    }
    let shared: u64 = old
        .lines
        .iter()
        .filter_map(|(line, bytes)| Some(*bytes.min(new.lines.get(line)?)))
        .sum();
    shared as f64 / larger as f64
}
