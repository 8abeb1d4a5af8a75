//! Directory listings in the kernel's format.

use rustix::fs::FileType;
use zerocopy::IntoBytes;

use crate::answer::entry;
use crate::filesystem::FileAttr;
use crate::wire::DirEntry;

/// Whether an entry fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    Added,
    /// It did not; the listing is full.
    Full,
}

/// Names with their kinds.
#[derive(Debug)]
pub struct Listing(Packed);

/// Names with all their attributes.
#[derive(Debug)]
pub struct ListingPlus(Packed);

#[derive(Debug)]
struct Packed {
    bytes: Vec<u8>,
    most: usize,
}

impl Listing {
    pub(crate) fn new(most: u32) -> Listing {
        Listing(Packed::new(most))
    }

    /// Adds a name; `position` is where the next listing continues.
    pub fn add(&mut self, position: u64, name: &[u8], number: u64, kind: FileType) -> Fill {
        self.0.add(&[], position, name, number, kind)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0.bytes
    }
}

impl ListingPlus {
    pub(crate) fn new(most: u32) -> ListingPlus {
        ListingPlus(Packed::new(most))
    }

    /// Adds a name; `position` is where the next listing continues.
    pub fn add(&mut self, position: u64, name: &[u8], attr: &FileAttr) -> Fill {
        let entry = entry(attr);
        self.0
            .add(entry.as_bytes(), position, name, attr.number, attr.kind)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0.bytes
    }
}

impl Packed {
    fn new(most: u32) -> Packed {
        Packed {
            bytes: Vec::new(),
            most: most as usize,
        }
    }

    fn add(
        &mut self,
        before: &[u8],
        position: u64,
        name: &[u8],
        number: u64,
        kind: FileType,
    ) -> Fill {
        let entry = DirEntry {
            number,
            position,
            name_len: name.len() as u32,
            kind: kind.as_raw_mode() >> 12,
        };
        let length = before.len() + size_of::<DirEntry>() + name.len();
        let padded = length.next_multiple_of(8);
        if self.bytes.len() + padded > self.most {
            return Fill::Full;
        }
        self.bytes.extend_from_slice(before);
        self.bytes.extend_from_slice(entry.as_bytes());
        self.bytes.extend_from_slice(name);
        self.bytes.resize(self.bytes.len() + padded - length, 0);
        Fill::Added
    }
}
