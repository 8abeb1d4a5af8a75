//! What a failed sync means: nobody knows what is on the disk, and a second sync of the same bytes may lie.
//!
//! So everything that no sync has covered is given up, the work that counted on it fails, and the store goes on in a
//! new pack as soon as one can be made. Nobody has to restart anything once the disk is well again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::store::Inner;
use crate::{Error, Result};

#[derive(Default)]
pub(crate) struct Health {
    /// A descriptor's sync error is told to one caller only, so syncs come one after another.
    syncing: Mutex<()>,
    /// A sync has failed and no new pack could be begun since.
    sick: AtomicBool,
    /// How often a sync has failed.
    failures: AtomicU64,
    /// How often staged objects were given up because the disk was full.
    given_up: AtomicU64,
    /// Whether packs may end with records of work that met a full disk.
    untidy: AtomicBool,
}

/// What had been lost at some moment.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) struct Losses {
    failures: u64,
    given_up: u64,
}

impl Health {
    pub fn losses(&self) -> Losses {
        Losses {
            failures: self.failures.load(Ordering::Acquire),
            given_up: self.given_up.load(Ordering::Acquire),
        }
    }

    /// An error if anything was lost since `before`: a transaction may refer to it.
    pub fn nothing_lost_since(&self, before: Losses) -> Result<()> {
        let now = self.losses();
        match (now.failures == before.failures, now == before) {
            (false, _) => Err(Error::SyncFailed),
            (true, false) => Err(Error::Full),
            (true, true) => Ok(()),
        }
    }

    /// Notes that staged objects are given up.
    pub fn give_up(&self) {
        self.given_up.fetch_add(1, Ordering::AcqRel);
    }

    pub fn is_tidy(&self) -> bool {
        !self.untidy.load(Ordering::Acquire)
    }

    pub fn tidied(&self) {
        self.untidy.store(false, Ordering::Release);
    }

    fn syncing(&self) -> MutexGuard<'_, ()> {
        self.syncing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Makes all records last, or gives up what may not.
    pub fn sync(&self) -> Result<()> {
        let _one_at_a_time = self.health.syncing();
        self.heal()?;
        let synced = self.engine.sync();
        if let Err(error) = &synced {
            if matches!(error, Error::Io { action: "sync", .. }) {
                self.lose_unsynced();
                // If this fails too, the next write tries again.
                let _ = self.heal();
            }
            self.give_up_after(error);
        }
        synced
    }

    /// An error while nothing can be written.
    pub fn check_health(&self) -> Result<()> {
        if !self.health.sick.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one_at_a_time = self.health.syncing();
        self.heal()
    }

    fn heal(&self) -> Result<()> {
        if self.health.sick.load(Ordering::Acquire) {
            self.engine.abandon().map_err(|_| Error::SyncFailed)?;
            self.health.sick.store(false, Ordering::Release);
        }
        Ok(())
    }

    fn lose_unsynced(&self) {
        let mut staged = self.staged();
        staged.rows.clear();
        self.health.sick.store(true, Ordering::Release);
        self.health.failures.fetch_add(1, Ordering::AcqRel);
        // Whoever has counted on it finds out when it is published, as after a sweep.
        self.leases.swept();
    }

    /// When the disk is full, what was not yet written is given up: kept, it would have to be
    /// written before anything else could be, also before a removal. Whoever has counted on it
    /// finds out when it is published, as after a sweep.
    pub fn give_up_after(&self, error: &Error) {
        if !error.is_full() {
            return;
        }
        let mut staged = self.staged();
        self.health.give_up();
        self.health.untidy.store(true, Ordering::Release);
        let end = self.engine.discard();
        staged
            .rows
            .retain(|_, row| row.place().is_loose() || row.place() < end);
        self.leases.swept();
    }
}
