//! The commit of a layer with more names than are held in memory at once.

use std::collections::HashMap;

use super::apply::{Applied, Linked, Shared};
use super::contents::{Contents, Reading};
use super::listing::{Bounds, Spilled};
use super::own_work::{self, Arrival, EntryMove};
use super::{CommitInput, Committed, HashCache};
use crate::Result;
use crate::scan::UpperEntry;

/// Commits in slices: edits are stored in between, so that memory does not grow with the layer. Gives the root
/// that committing at once would give.
pub(super) fn large(
    input: &CommitInput<'_>,
    reading: &Reading<'_>,
    listing: &Spilled,
    bounds: &Bounds,
) -> Result<Committed> {
    let base = input.trees.edit(input.base)?;
    let mut linked = Linked::default();
    let (mut ours, mut places) = (Vec::new(), HashMap::new());
    let mut index = 0;
    for part in listing.parts() {
        for entry in part? {
            linked.add(index, &entry)?;
            if own_work::is_candidate(&entry, &input.own_work) {
                places.insert(entry.path.clone(), index);
                ours.push(entry);
            }
            index += 1;
        }
    }
    let arrivals = own_work::separate(&mut ours, &input.own_work);
    let mut work = Large {
        reading,
        bounds,
        links: linked.groups(input, &base)?,
        linked: Vec::new(),
        pending: 0,
        applied: Applied::new(input, base),
        arrivals,
    };
    let ours: Vec<(usize, UpperEntry)> = ours
        .into_iter()
        .map(|entry| (places[&entry.path], entry))
        .collect();
    work.put_some(ours.clone(), EntryMove::Stays)?;
    let mut index = 0;
    for part in listing.parts() {
        let part: Vec<_> = part?
            .into_iter()
            .map(|entry| (next(&mut index), entry))
            .collect();
        let is_theirs =
            |(_, entry): &(usize, UpperEntry)| !own_work::is_candidate(entry, &input.own_work);
        work.put_some(
            part.into_iter().filter(is_theirs).collect(),
            EntryMove::Stays,
        )?;
    }
    // After everything that can be above it.
    work.put_some(ours, EntryMove::Arrives)?;
    let linked = std::mem::take(&mut work.linked);
    work.put(linked)?;
    work.applied.finish(listing.names - 1)
}

fn next(index: &mut usize) -> usize {
    *index += 1;
    *index - 1
}

/// An entry, what it shares with its other names, and whether it has moved.
type Listed = (UpperEntry, Option<Shared>, EntryMove);

struct Large<'a> {
    reading: &'a Reading<'a>,
    bounds: &'a Bounds,
    arrivals: Vec<Arrival>,
    /// By index in the listing.
    links: HashMap<usize, Shared>,
    /// Hard links of one file, which must all be applied before a tree is stored.
    linked: Vec<Listed>,
    pending: usize,
    applied: Applied<'a>,
}

impl Large<'_> {
    /// Applies those that belong to `place`, each with its index in the listing.
    fn put_some(&mut self, listed: Vec<(usize, UpperEntry)>, place: EntryMove) -> Result<()> {
        let mut entries = Vec::new();
        for (index, entry) in listed {
            if own_work::place(&entry, &self.arrivals) != Some(place) {
                continue;
            }
            match self.links.get(&index).cloned() {
                Some(shared) => self.linked.push((entry, Some(shared), place)),
                None => entries.push((entry, None, place)),
            }
        }
        self.pending += entries.len();
        self.put(entries)?;
        if self.pending > self.bounds.pending {
            self.pending = 0;
            self.applied.store()?;
        }
        Ok(())
    }

    fn put(&mut self, listed: Vec<Listed>) -> Result<()> {
        let mut entries = Vec::with_capacity(listed.len());
        let mut how = Vec::with_capacity(listed.len());
        for (entry, shared, place) in listed {
            entries.push(entry);
            how.push((shared, place));
        }
        let nothing = HashCache::default();
        let contents = Contents::read(self.reading, &entries, &nothing.known(&entries))?;
        let contents = entries.into_iter().zip(contents.of);
        for ((mut entry, content), (shared, place)) in contents.zip(how) {
            self.reading.work.check()?;
            let has_moved = place == EntryMove::Arrives;
            if has_moved {
                own_work::arrive(&mut entry, &self.arrivals);
            }
            self.applied
                .apply_or_skip(&entry, content, shared, has_moved)?;
        }
        Ok(())
    }
}
