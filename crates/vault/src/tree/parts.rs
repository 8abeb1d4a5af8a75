//! What a large file is made of: chunks and holes in order, in lists of bounded length.
//!
//! A list of lists stands above when there are more parts than one holds, so neither writing nor reading
//! takes memory that grows with the file.

use std::collections::HashSet;
use std::sync::Arc;

use avfs_store::{ObjectId, Store};

use super::codec;
use super::trees::Cached;
use crate::{Error, Result, Trees};

/// Part of the format, as are the sizes of chunks.
pub const PARTS_MAX: usize = 4096;
/// Deeper than any file of 2^64 bytes has to be.
pub const DEPTH_MAX: usize = 8;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Chunk {
        id: ObjectId,
        length: u64,
    },
    /// Zeros that are stored nowhere.
    Hole {
        length: u64,
    },
    /// Further parts, `data` bytes of them in chunks.
    List {
        id: ObjectId,
        length: u64,
        data: u64,
    },
}

impl Part {
    pub fn length(&self) -> u64 {
        match self {
            Part::Chunk { length, .. } | Part::Hole { length } | Part::List { length, .. } => {
                *length
            }
        }
    }

    /// Bytes that are stored.
    pub fn data(&self) -> u64 {
        match self {
            Part::Chunk { length, .. } => *length,
            Part::Hole { .. } => 0,
            Part::List { data, .. } => *data,
        }
    }
}

/// A list as it was read: each part with where it begins in the list.
pub struct PartList {
    parts: Vec<(u64, Part)>,
}

impl PartList {
    fn new(parts: Vec<Part>) -> PartList {
        let mut begin = 0;
        let place = |part: Part| {
            let placed = (begin, part);
            // Decoding made sure that the sum is a number.
            begin += part.length();
            placed
        };
        PartList {
            parts: parts.into_iter().map(place).collect(),
        }
    }

    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().map(|(_, part)| part)
    }

    /// The parts from the one on that holds `offset`.
    fn from(&self, offset: u64) -> &[(u64, Part)] {
        let first = self
            .parts
            .partition_point(|(begin, part)| begin + part.length() <= offset);
        &self.parts[first..]
    }
}

/// A stretch of a file that is one chunk, or one hole.
pub struct Extent {
    pub begin: u64,
    pub length: u64,
    /// None for a hole.
    pub chunk: Option<ObjectId>,
}

impl Trees {
    pub(crate) fn part_list(&self, id: ObjectId) -> Result<Arc<PartList>> {
        let load = || {
            let parts = codec::decode_parts(&self.store().get(id)?);
            let list = PartList::new(parts.ok_or_else(|| corrupt(id))?);
            let weight = list.parts.len() * size_of::<(u64, Part)>() + 64;
            Ok((Cached::Parts(Arc::new(list)), weight))
        };
        match self.cached(id, load)? {
            Cached::Parts(list) => Ok(list),
            _ => Err(corrupt(id)),
        }
    }

    /// The chunk or hole that holds `offset`; none behind the end.
    pub(crate) fn extent(&self, list: ObjectId, offset: u64) -> Result<Option<Extent>> {
        let (mut id, mut base) = (list, 0);
        for depth in 0..DEPTH_MAX {
            let found = self.part_list(id)?;
            let (begin, length, chunk) = match found.from(offset - base).first() {
                None if depth == 0 => return Ok(None),
                None => return Err(corrupt(id)),
                Some((begin, Part::List { id: below, .. })) => {
                    (id, base) = (*below, base + begin);
                    continue;
                }
                Some((begin, Part::Chunk { id, length })) => (begin, *length, Some(*id)),
                Some((begin, Part::Hole { length })) => (begin, *length, None),
            };
            return Ok(Some(Extent {
                begin: base + begin,
                length,
                chunk,
            }));
        }
        Err(corrupt(list))
    }

    /// Where the first hole at or behind `from` begins.
    pub(crate) fn hole_in(&self, list: ObjectId, from: u64) -> Result<Option<u64>> {
        self.hole_beneath(list, from, 0)
    }

    fn hole_beneath(&self, list: ObjectId, from: u64, depth: usize) -> Result<Option<u64>> {
        if depth == DEPTH_MAX {
            return Err(corrupt(list));
        }
        for (begin, part) in self.part_list(list)?.from(from) {
            let inside = from.saturating_sub(*begin);
            match part {
                Part::Hole { .. } => return Ok(Some(begin + inside)),
                Part::List { id, length, data } if data < length => {
                    if let Some(found) = self.hole_beneath(*id, inside, depth + 1)? {
                        return Ok(Some(begin + found));
                    }
                }
                Part::Chunk { .. } | Part::List { .. } => {}
            }
        }
        Ok(None)
    }

    /// The parts of one list; not through the cache, which a walk over all there is would empty.
    pub(crate) fn parts_of(&self, list: ObjectId) -> Result<Vec<Part>> {
        let parts = codec::decode_parts(&self.store().get(list)?);
        parts.ok_or_else(|| corrupt(list))
    }

    /// Names every list and chunk beneath `list`, itself excepted. A list that is there many times is read once.
    pub(crate) fn objects_beneath(
        &self,
        list: ObjectId,
        name: &mut dyn FnMut(ObjectId) -> Result<()>,
    ) -> Result<()> {
        let mut seen = HashSet::from([list]);
        let mut ahead = vec![list];
        while let Some(list) = ahead.pop() {
            for part in self.parts_of(list)? {
                match part {
                    Part::Hole { .. } => {}
                    Part::Chunk { id, .. } => name(id)?,
                    Part::List { id, .. } => {
                        if seen.insert(id) {
                            name(id)?;
                            ahead.push(id);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn corrupt(list: ObjectId) -> Error {
    Error::Corrupt {
        what: format!("chunk list {list}"),
    }
}

/// Takes parts in order and stores them as lists, `PARTS_MAX` in each.
pub struct ListBuilder<'a> {
    trees: &'a Trees,
    /// `levels[n]` fills a list of lists of level n.
    levels: Vec<Vec<Part>>,
}

impl ListBuilder<'_> {
    pub fn new(trees: &Trees) -> ListBuilder<'_> {
        ListBuilder {
            trees,
            levels: vec![Vec::new()],
        }
    }

    pub fn store(&self) -> &Store {
        self.trees.store()
    }

    pub fn push(&mut self, part: Part) -> Result<()> {
        self.push_on(0, part)
    }

    fn push_on(&mut self, level: usize, part: Part) -> Result<()> {
        // A full list is closed only when there is more: what fits in one list is one list.
        if self.levels[level].len() == PARTS_MAX {
            self.close(level)?;
        }
        self.levels[level].push(part);
        Ok(())
    }

    fn close(&mut self, level: usize) -> Result<()> {
        let parts = std::mem::take(&mut self.levels[level]);
        let id = self.trees.store().put(&codec::encode_parts(&parts))?;
        let list = Part::List {
            id,
            length: parts.iter().map(Part::length).sum(),
            data: parts.iter().map(Part::data).sum(),
        };
        if self.levels.len() == level + 1 {
            self.levels.push(Vec::new());
        }
        self.push_on(level + 1, list)
    }

    pub fn finish(mut self) -> Result<ObjectId> {
        let mut level = 0;
        while level + 1 < self.levels.len() {
            self.close(level)?;
            level += 1;
        }
        let top = codec::encode_parts(&self.levels[level]);
        Ok(self.trees.store().put(&top)?)
    }
}
