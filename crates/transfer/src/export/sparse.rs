//! Files with holes in an archive, in the way of GNU tar: a map of where the data belongs, and the data.

use avfs_vault::{Content, Trees};
use tar::{EntryType, GnuExtSparseHeader, Header};

use crate::bounds::PIECES_MAX;
use crate::error::Result;

/// Offsets and lengths of the data of a file that has holes.
pub struct Map {
    data: Vec<(u64, u64)>,
    size: u64,
}

pub enum Shape {
    /// There is no hole in it.
    Plain,
    Sparse(Map),
    /// More than [`PIECES_MAX`], which the import would refuse.
    TooManyPieces,
}

impl Shape {
    pub fn of(trees: &Trees, content: Content, size: u64) -> Result<Shape> {
        if trees.next_hole(content, size, 0)? >= size {
            return Ok(Shape::Plain);
        }
        let (mut data, mut end) = (Vec::new(), 0);
        while let Some(begin) = trees.next_data(content, size, end)? {
            end = trees.next_hole(content, size, begin)?;
            data.push((begin, end - begin));
            if data.len() == PIECES_MAX {
                return Ok(Shape::TooManyPieces);
            }
        }
        // A hole at the end is written as an empty piece at the end of the file.
        if end < size {
            data.push((size, 0));
        }
        Ok(Shape::Sparse(Map { data, size }))
    }
}

impl Map {
    /// Bytes that the archive holds of it.
    pub fn stored(&self) -> u64 {
        self.data.iter().map(|(_, length)| length).sum()
    }

    /// Writes the beginning of the map into a header; gives what follows the header of it.
    pub fn write(&self, header: &mut Header) -> Vec<u8> {
        header.set_entry_type(EntryType::GNUSparse);
        let mut pieces = self.data.iter();
        if let Some(gnu) = header.as_gnu_mut() {
            gnu.set_real_size(self.size);
            for (place, (offset, length)) in gnu.sparse.iter_mut().zip(pieces.by_ref()) {
                place.set_offset(*offset);
                place.set_length(*length);
            }
            gnu.set_is_extended(pieces.len() > 0);
        }
        let mut more = Vec::new();
        while pieces.len() > 0 {
            let mut block = GnuExtSparseHeader::new();
            for (place, (offset, length)) in block.sparse_mut().iter_mut().zip(pieces.by_ref()) {
                place.set_offset(*offset);
                place.set_length(*length);
            }
            block.set_is_extended(pieces.len() > 0);
            more.extend_from_slice(block.as_bytes());
        }
        more
    }
}
