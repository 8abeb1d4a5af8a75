//! The way out of a full disk: who may use the reserve, and what is given back after work that failed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::record;
use super::reserve::{OnTheWay, Reserve, WayOut};
use super::store::{Inner, Store};
use crate::engine::RecordLocation;
use crate::ledger::Frozen;
use crate::{Error, Failure, Result, Room, Shortage};

/// What a small transaction adds to the log.
pub(crate) const LOG_BYTES: u64 = 64 << 10;
/// The least that a disk gives.
const BLOCK: u64 = 4096;

/// Whether the database is open for writing. It becomes so once.
pub(crate) struct Writable {
    yes: AtomicBool,
    opening: Mutex<()>,
}

impl Writable {
    pub fn new(yes: bool) -> Writable {
        Writable {
            yes: AtomicBool::new(yes),
            opening: Mutex::new(()),
        }
    }
}

/// Gives up a part of the reserve of a home that nobody has open. False when there is none.
pub fn give_up_reserve(home: &Path) -> bool {
    Reserve::of(home).give(WayOut::Large)
}

impl Store {
    /// Work that gets out of a full disk. Where there is no room for it, a part of the reserve is given up and the work
    /// is tried again; what is left afterwards goes back to the reserve. A thread that is on its way already just works.
    pub fn way_out<T, E>(
        &self,
        way: WayOut,
        is_full: impl Fn(&E) -> bool,
        mut work: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let reserve = &self.inner.reserve;
        let Some(on_the_way) = OnTheWay::begin(reserve, way) else {
            return work();
        };
        let mut done = work();
        for _ in 0..way.steps() {
            if !done.as_ref().is_err_and(&is_full) || !reserve.give(way) {
                break;
            }
            done = work();
        }
        drop(on_the_way);
        if !reserve.is_whole() {
            self.inner.refill();
        }
        done
    }

    /// Makes the reserve whole and the database writable, if there is room again. True if both are.
    pub fn regain(&self) -> bool {
        let inner = &*self.inner;
        inner.reclaim();
        (inner.reserve.is_whole() || inner.refill()) && inner.open_for_writing().is_ok()
    }

    /// An error where ordinary work cannot be stored: the reserve was used, and there is no room to make it again.
    pub fn admit(&self) -> Result<()> {
        self.inner.admit()
    }

    /// What is free on the disk of the home.
    pub fn room(&self) -> Room {
        Room::of(&self.inner.home)
    }

    /// What is missing for a small piece of work.
    pub fn shortage(&self) -> Error {
        Error::NoRoom(self.inner.shortage(LOG_BYTES))
    }

    /// How many bytes of the reserve are missing.
    pub fn missing_reserve(&self) -> u64 {
        self.inner.reserve.missing()
    }

    /// Why nothing can be written, where that is so.
    pub fn frozen(&self) -> Option<Frozen> {
        self.inner.database.frozen()
    }
}

impl Inner {
    /// An error where the work of this thread cannot be stored.
    pub fn admit(&self) -> Result<()> {
        let admitted = self.reserve.admit().and_then(|()| self.open_for_writing());
        admitted.map_err(self.measured(LOG_BYTES))
    }

    /// For `map_err`: says how much room is missing for `bytes`, where that is the matter.
    pub fn measured<E: Failure>(&self, bytes: u64) -> impl Fn(E) -> E + use<'_, E> {
        move |mut error| {
            if let Some(error) = error.of_store()
                && !matches!(error, Error::NoRoom(_))
                && (error.is_full() || error.is_failed_write() && self.reserve.finds_no_room())
            {
                *error = Error::NoRoom(self.shortage(bytes));
            }
            error
        }
    }

    fn shortage(&self, bytes: u64) -> Shortage {
        let (room, reserve) = (Room::of(&self.home), self.reserve.missing());
        Shortage {
            home: self.home.clone(),
            room,
            // Somebody may have made room meanwhile, but some was missing.
            missing: (bytes + reserve).saturating_sub(room.bytes).max(BLOCK),
            reserve,
        }
    }

    fn open_for_writing(&self) -> Result<()> {
        let Writable { yes, opening } = &self.writable;
        if yes.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one_at_a_time = opening.lock().unwrap_or_else(PoisonError::into_inner);
        self.database.thaw()?;
        self.find_foreign_packs()?;
        yes.store(true, Ordering::Release);
        Ok(())
    }

    /// Puts what is free back into the reserve. True if that is whole.
    fn refill(&self) -> bool {
        // A log that cannot be emptied now is emptied later.
        let _ = self.database.empty_log();
        self.reserve.fill()
    }

    /// After work that met a full disk: cuts off what it has appended to packs and no transaction refers to. Does
    /// nothing while a transaction is under way; whoever is next does it then.
    pub fn reclaim(&self) -> bool {
        if self.health.is_tidy() {
            return true;
        }
        let cut = self.database.between_transactions(|| self.cut_unindexed());
        let done = matches!(cut, Some(Ok(())));
        if done {
            self.health.tidied();
        }
        done
    }

    fn cut_unindexed(&self) -> Result<()> {
        let mut staged = self.staged();
        // Whoever counted on these finds out when it publishes, as after a sweep.
        staged.rows.retain(|_, row| row.place().is_loose());
        self.health.give_up();
        self.engine.abandon()?;
        self.leases.swept();
        drop(staged);
        let foreign = self.foreign_packs()?;
        // Never before the last record that is indexed: a power cut may bring back an earlier row of an object, and with
        // it an earlier place.
        let last = self.last_indexed()?;
        for (pack, length) in self.engine.packs()? {
            if pack < last.pack || foreign.contains(&pack) {
                continue;
            }
            if pack > last.pack {
                self.engine.remove(pack)?;
            } else if length > last.offset {
                self.engine.cut(pack, last.offset)?;
            }
        }
        Ok(())
    }

    /// Where the last record that is in the index ends.
    fn last_indexed(&self) -> Result<RecordLocation> {
        let last = self.database.read(|rows| rows.last_object())?;
        Ok(last.map_or(RecordLocation::LOOSE, |last| RecordLocation {
            offset: last.offset + record::HEADER as u64,
            ..last
        }))
    }
}
