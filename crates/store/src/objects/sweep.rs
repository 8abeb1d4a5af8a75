//! Letting go: rows of dead objects are deleted, and packs that are mostly dead are written anew.
//!
//! Bytes are removed only after a synced transaction in which no row refers to them.

use super::leases::Leases;
use super::out::LOG_BYTES;
use super::record;
use super::reserve::WayOut;
use super::store::{Inner, Store};
use crate::engine::RecordLocation;
use crate::ledger::{Durability, ObjectRow, Rows};
use crate::{Error, Failure, ObjectId, Result, Room};

/// Less than this between two records is not given back by itself.
const HOLE_WORTH: u64 = 8 << 10;
/// Objects in a page of `pages`.
const PAGE: usize = 10_000;
/// What is left free beside what is written.
const SLACK: u64 = 1 << 20;

/// Where the packs ended when a mark began: nothing stored since then is swept.
#[derive(Copy, Clone, Debug)]
pub struct Mark(RecordLocation);

/// An object in the index.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    pub id: ObjectId,
    /// After compression.
    pub stored: u64,
    pub size: u64,
}

/// What a sweep took out of the index.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub objects: u64,
    /// After compression.
    pub bytes: u64,
}

/// What a compaction gave back.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    pub packs: u64,
    pub bytes: u64,
    /// Packs that are mostly dead and wait for room in which their live records can be written.
    pub waiting: u64,
}

/// What lies on the disk.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    pub packs: u64,
    pub pack_bytes: u64,
    pub loose: u64,
    pub loose_bytes: u64,
    pub database_bytes: u64,
}

impl Store {
    /// To be taken before the first root is read that a sweep goes by.
    pub fn mark(&self) -> Mark {
        Mark(self.inner.engine.end())
    }

    /// Whether anything can have gone since this store was opened.
    pub fn any_sweep(&self) -> bool {
        self.inner.leases.any_sweep()
    }

    /// Indexed objects in the order of their ids, from behind `after`.
    pub fn list(&self, after: Option<ObjectId>, limit: usize) -> Result<Vec<Stored>> {
        let rows = self.read(|rows| rows.objects_after(after, limit))?;
        let stored = |(id, row): (ObjectId, ObjectRow)| Stored {
            id,
            stored: row.stored,
            size: row.size,
        };
        Ok(rows.into_iter().map(stored).collect())
    }

    /// All indexed objects in the order of their ids, some thousands at a time. What others store meanwhile may be left
    /// out. After an error there is nothing more.
    pub fn pages(&self) -> impl Iterator<Item = Result<Vec<Stored>>> + use<> {
        let (store, mut after, mut failed) = (self.clone(), None, false);
        std::iter::from_fn(move || {
            if failed {
                return None;
            }
            let page = store.list(after, PAGE);
            failed = page.is_err();
            if let Ok(page) = &page {
                after = Some(page.last()?.id);
            }
            Some(page)
        })
    }

    /// Deletes those of `dead` that `still_dead` confirms in the transaction itself, and that
    /// neither the mark nor a lease protects. Nobody can publish in between.
    pub fn sweep<E: Failure>(
        &self,
        mark: Mark,
        dead: Vec<ObjectId>,
        still_dead: impl FnOnce(&Rows<'_>, Vec<ObjectId>) -> Result<Vec<ObjectId>, E>,
    ) -> Result<Swept, E> {
        let inner = &*self.inner;
        inner.admit()?;
        let sweep = Sweep(&inner.leases);
        let swept = inner.database.write(Durability::Full, |transaction| {
            let dead = still_dead(transaction, dead)?;
            let mut places = transaction.places(&dead)?;
            let staged = inner.staged();
            // Its row is about to leave the staged ones, and until then it counts as there.
            places.retain(|(id, _)| !staged.rows.contains_key(id));
            drop(staged);
            let doomed = inner.leases.doom(&places, mark.0);
            inner.damaged.drop_rows(transaction, &doomed)?;
            Ok::<_, E>((transaction.remove_objects(&doomed)?, doomed))
        });
        let (removed, doomed) = swept.map_err(inner.measured(LOG_BYTES))?;
        drop(sweep);
        inner.damaged.dropped(&doomed);
        for id in doomed {
            inner.forget(id)?;
        }
        if !inner.reserve.is_whole() {
            // Many sweeps must not fill the disk with their log. If it stays, the next one tries again.
            let _ = inner.database.empty_log();
        }
        Ok(Swept {
            objects: removed.objects,
            bytes: removed.bytes,
        })
    }

    /// Removes packs without live records, then writes those anew of which half or more is dead: the ones with the
    /// least to write first, each removed before the next is begun, and only as far as there is room.
    pub fn compact(&self) -> Result<Compacted> {
        self.way_out(WayOut::Large, Error::is_full, || self.compact_once())
    }

    fn compact_once(&self) -> Result<Compacted> {
        let inner = &*self.inner;
        inner.admit()?;
        inner.remove_unknown_files()?;
        let header = record::HEADER as u64;
        let live = inner.database.read(|rows| rows.live_bytes(header))?;
        let foreign = inner.foreign_packs()?;
        let mut packs: Vec<(u64, u32, u64)> = Vec::new();
        for (pack, length) in inner.engine.packs()? {
            let live = live.get(&pack).copied().unwrap_or(0);
            let mostly_dead = length > 0 && live <= length / 2;
            let stays = foreign.contains(&pack) || mostly_dead && inner.may_repair(pack)?;
            if mostly_dead && !stays {
                packs.push((live, pack, length));
            }
        }
        packs.sort_unstable();
        let mut done = Compacted::default();
        for (live, pack, length) in packs {
            if live > 0 && !inner.has_room_for(live) {
                done.waiting += 1;
                done.bytes += inner.hollow_out(pack, length)?;
                continue;
            }
            match inner.rewrite(pack) {
                Ok(true) => {
                    done.packs += 1;
                    done.bytes += length - live;
                }
                Ok(false) => {}
                Err(error) if live > 0 && error.is_full() => done.waiting += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Gives free pages of the database back to the disk, if there is room to write it once more.
    pub fn vacuum(&self) -> Result<()> {
        self.way_out(WayOut::Large, Error::is_full, || self.vacuum_once())
    }

    fn vacuum_once(&self) -> Result<()> {
        let inner = &*self.inner;
        inner.admit()?;
        // First as a copy, then through the log.
        let needed = inner.database.database_bytes()?.saturating_mul(2);
        match inner.has_room_for(needed) {
            true => inner.database.vacuum(),
            false => inner.database.empty_log(),
        }
    }

    /// What the store takes on the disk, dead bytes included.
    pub fn disk_usage(&self) -> Result<DiskUsage> {
        let inner = &*self.inner;
        let mut usage = DiskUsage::default();
        for (_, length) in inner.engine.packs()? {
            usage.packs += 1;
            usage.pack_bytes += length;
        }
        for (_, length) in inner.engine.kept()? {
            usage.loose += 1;
            usage.loose_bytes += length;
        }
        usage.database_bytes = inner.database.database_bytes()?;
        Ok(usage)
    }
}

/// Ends a sweep also when it fails.
struct Sweep<'a>(&'a Leases);

impl Drop for Sweep<'_> {
    fn drop(&mut self) {
        self.0.swept();
    }
}

impl Inner {
    /// Removes what is left of an object whose row is gone, unless it has been stored anew.
    fn forget(&self, id: ObjectId) -> Result<()> {
        self.cache.remove(id);
        let _files = self.loose_files();
        match self.find(id)? {
            Some(_) => Ok(()),
            None => self.engine.remove_kept(id),
        }
    }

    /// Removes large records that are not in the index.
    fn remove_unknown_files(&self) -> Result<()> {
        let _files = self.loose_files();
        for (id, _) in self.engine.kept()? {
            if self.find(id)?.is_none() {
                self.engine.remove_kept(id)?;
            }
        }
        Ok(())
    }

    /// Whether so much can be written, with the reserve given up where that helps.
    fn has_room_for(&self, bytes: u64) -> bool {
        let is_enough = || Room::of(&self.home).bytes >= bytes.saturating_add(SLACK);
        while !is_enough() {
            if !self.reserve.give(WayOut::Large) {
                return false;
            }
        }
        true
    }

    /// Moves the live records of a pack behind the others, then removes it. A pack with a damaged
    /// record is left as it is.
    fn rewrite(&self, pack: u32) -> Result<bool> {
        self.check_health()?;
        let losses = self.health.losses();
        if !self.seal(pack)? {
            return Ok(false);
        }
        let mut moved = Vec::new();
        for (id, row) in self.rows_of(pack)? {
            let length = row.stored + record::HEADER as u64;
            let record = self.engine.read(id, row.place(), length)?;
            let whole = record.filter(|record| record::open_record(id, record).is_ok());
            let Some(record) = whole else {
                return Ok(false);
            };
            let appended = self.engine.append(&record);
            moved.push((id, row.place(), self.kept_or_given_up(appended)?));
        }
        let synced = self.sync();
        self.kept_or_given_up(synced)?;
        let written = self.database.write(Durability::Full, |transaction| {
            transaction.move_objects(&moved)?;
            // What was appended may have been cut off by somebody who met a full disk.
            self.health.nothing_lost_since(losses)?;
            transaction.count_objects_in(pack)
        });
        let left = self.kept_or_given_up(written)?;
        if left == 0 {
            self.engine.remove(pack)?;
        }
        Ok(left == 0)
    }

    /// Where there is no room to write live records anew, gives back what lies between them. Gives how many bytes.
    fn hollow_out(&self, pack: u32, length: u64) -> Result<u64> {
        if !self.seal(pack)? {
            return Ok(0);
        }
        // Something is written, so that all before it is synced: no row of what goes can come back.
        self.database
            .write(Durability::Full, |transaction| transaction.touch())?;
        let rows = self.rows_of(pack)?.into_iter();
        let live = rows.map(|(_, row)| {
            let end = row.offset + row.stored + record::HEADER as u64;
            (row.offset, end)
        });
        let (mut dead_from, mut freed) = (0, 0);
        for (begin, end) in live.chain([(length, length)]) {
            if begin >= dead_from + HOLE_WORTH {
                self.engine.free(pack, dead_from..begin)?;
                freed += begin - dead_from;
            }
            dead_from = dead_from.max(end);
        }
        Ok(freed)
    }

    /// Whether nothing more comes into the pack, also no row of what is in it already.
    fn seal(&self, pack: u32) -> Result<bool> {
        let staged = self.staged();
        self.engine.seal(pack)?;
        Ok(!staged.rows.values().any(|row| row.pack == pack))
    }

    /// After a step of a rewrite that met a full disk: what the steps before have appended goes at once.
    fn kept_or_given_up<T>(&self, step: Result<T>) -> Result<T> {
        if let Err(error) = &step {
            self.give_up_after(error);
            self.reclaim();
        }
        step
    }

    fn rows_of(&self, pack: u32) -> Result<Vec<(ObjectId, ObjectRow)>> {
        self.database.read(|rows| rows.objects_in(pack))
    }
}
