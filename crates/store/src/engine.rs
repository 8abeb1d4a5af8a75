//! What a store stands on: somewhere to append records, and to read them again.
//!
//! The index of objects and all other rows are in the database; an engine knows nothing of them. It
//! keeps small records one behind another in numbered *packs* and large ones by themselves.

use std::ops::Range;

use crate::{ObjectId, Result};

/// Where a record lies. Pack numbers begin at 1; later records lie behind earlier ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordLocation {
    pub pack: u32,
    pub offset: u64,
}

impl RecordLocation {
    /// In a file of its own instead of a pack.
    pub const LOOSE: RecordLocation = RecordLocation { pack: 0, offset: 0 };

    pub fn is_loose(self) -> bool {
        self.pack == RecordLocation::LOOSE.pack
    }
}

/// One way to keep records. Every method may be called from many threads.
///
/// `tests/engines` holds what any engine must do; a new one is added to the list there.
pub trait Engine: Send + Sync + 'static {
    /// Takes a record in behind all others. It can be read at once, and lasts from the next `sync`
    /// on; an engine that is opened again may or may not have what was not synced.
    fn append(&self, record: &[u8]) -> Result<RecordLocation>;

    /// Takes a large record in by itself, whole or not at all, in place of one with the same id.
    fn keep(&self, id: ObjectId, record: &[u8]) -> Result<()>;

    /// The record of `length` bytes at `place`, or of `id` if it was kept by itself. One that is
    /// not, or not wholly, there is none; whether it is the right one is for others to see.
    fn read(&self, id: ObjectId, place: RecordLocation, length: u64) -> Result<Option<Vec<u8>>>;

    /// Makes all that was taken in so far last. Only a failure of the sync itself is an error with
    /// the action `sync`: after that nobody knows what is on the disk.
    fn sync(&self) -> Result<()>;

    /// Where the next record will lie. It never comes to lie before an earlier one.
    fn end(&self) -> RecordLocation;

    /// Gives up appended records that are only in memory; tells where they began. Their places may be
    /// used again.
    fn discard(&self) -> RecordLocation;

    /// After a failed sync: gives up every appended record that no sync has covered, and goes on in a new
    /// pack, because bytes that a failed sync left may be reported as synced by the next one. Their places
    /// are not used again.
    fn abandon(&self) -> Result<()>;

    /// Every pack and its length, oldest first.
    fn packs(&self) -> Result<Vec<(u32, u64)>>;

    /// All bytes of a pack.
    fn pack(&self, pack: u32) -> Result<Vec<u8>>;

    /// Makes sure that nothing more is appended to `pack`.
    fn seal(&self, pack: u32) -> Result<()>;

    /// Cuts a sealed pack off behind its first `length` bytes.
    fn cut(&self, pack: u32, length: u64) -> Result<()>;

    /// Gives the room of these bytes of a sealed pack back, where that can be done. They read as zeros then, or as before.
    fn free(&self, pack: u32, bytes: Range<u64>) -> Result<()>;

    /// Removes a sealed pack.
    fn remove(&self, pack: u32) -> Result<()>;

    /// Large records and their lengths.
    fn kept(&self) -> Result<Vec<(ObjectId, u64)>>;

    /// Removes a large record; one that is not there is as good.
    fn remove_kept(&self, id: ObjectId) -> Result<()>;
}
