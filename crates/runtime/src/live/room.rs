//! A full disk: who may go on with the help of the reserve, and what is tried again once there is room.

use std::sync::atomic::Ordering;

use avfs_store::{Room, WayOut};
use avfs_view::Layer;

use crate::live::engine::Engine;
use crate::runtime::Runtime;
use crate::{Error, Result};

/// With so much more room than before, something that did not fit is tried again.
const WORTH_A_TRY: Room = Room {
    bytes: 1 << 20,
    files: 16,
};

impl Runtime {
    /// Whether some vault may have work that is not in its head.
    pub fn may_have_uncommitted(&self) -> bool {
        self.inner.uncommitted.load(Ordering::Acquire)
    }

    /// Work that gets out of a full disk. Where it finds no room, the reserve is given up and it is tried again.
    pub(crate) fn way_out<T>(&self, way: WayOut, work: impl FnMut() -> Result<T>) -> Result<T> {
        let store = self.inner.vaults.trees().store();
        let home = &self.inner.config.home;
        let is_full = |error: &Error| error.is_full() || error.is_note_without_room(home);
        store
            .way_out(way, is_full, work)
            .map_err(|error| match error.is_note_without_room(home) {
                true => store.shortage().into(),
                false => error,
            })
    }

    /// What a daemon has to do to start, which may use the reserve.
    pub fn starting<T, E>(
        &self,
        is_full: impl Fn(&E) -> bool,
        work: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let store = self.inner.vaults.trees().store();
        store.way_out(WayOut::Large, is_full, work)
    }

    /// Refuses work that stores something where there is no room for it, before it has begun.
    pub(crate) fn check_room(&self) -> Result<()> {
        let store = self.inner.vaults.trees().store();
        store.admit()?;
        match store.room().is_none() {
            true => Err(store.shortage().into()),
            false => Ok(()),
        }
    }

    /// Whether something failed because the home takes nothing: SQLite does not always say why it cannot make a file.
    pub(crate) fn is_without_room(&self, error: &Error) -> bool {
        let store = self.inner.vaults.trees().store();
        error.is_full() || store.frozen().is_some() || store.room().is_none()
    }

    /// How much room is missing, in words.
    pub fn shortage(&self) -> String {
        self.inner.vaults.trees().store().shortage().to_string()
    }

    /// What is free on the disk of the home.
    pub fn room(&self) -> Room {
        self.inner.vaults.trees().store().room()
    }

    /// How many bytes of the reserve are missing.
    pub fn reserve_missing(&self) -> u64 {
        self.inner.vaults.trees().store().missing_reserve()
    }

    /// Whether there is hardly more room than there was when something did not fit.
    pub(crate) fn is_as_full_as(&self, then: Room) -> bool {
        let now = self.room();
        now.bytes < then.bytes.saturating_add(WORTH_A_TRY.bytes)
            && now.files < then.files.saturating_add(WORTH_A_TRY.files)
    }
}

/// A commit that did not fit: says how much room all of the layer takes.
pub(crate) fn weighed(engine: &Engine, layer: &Layer, mut error: Error) -> Error {
    if let Some(shortage) = error.shortage()
        && let Ok(totals) = engine.scanner.measure(layer.upper(), &|| false)
    {
        let more = totals.bytes.saturating_sub(shortage.room.bytes);
        shortage.missing = shortage.missing.max(more);
    }
    error
}
