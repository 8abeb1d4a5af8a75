//! The vault's quota, updated as files change.

use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard};

use rustix::io::Errno;

use super::Room;
use super::host::{self, Io};
use super::view::View;

/// A reservation for an operation that may still fail; dropped, it is returned.
#[must_use]
pub struct Charge<'a> {
    room: &'a Mutex<Room>,
    files: i64,
    bytes: i64,
}

impl Charge<'_> {
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        lock(self.room).add(self.files, self.bytes);
    }
}

impl Room {
    fn add(&mut self, files: i64, bytes: i64) {
        self.files = self.files.map(|left| left.saturating_add(files));
        self.bytes = self.bytes.map(|left| left.saturating_add(bytes));
    }

    fn take(&mut self, files: i64, bytes: i64) -> Io<()> {
        let lacks =
            |left: Option<i64>, wanted: i64| wanted > 0 && left.is_some_and(|left| left < wanted);
        if lacks(self.files, files) || lacks(self.bytes, bytes) {
            return Err(Errno::DQUOT);
        }
        self.add(-files, -bytes);
        Ok(())
    }
}

impl View {
    pub fn room(&self) -> Room {
        *lock(&self.room)
    }

    pub fn set_room(&self, room: Room) {
        *lock(&self.room) = room;
    }

    /// Reserves `files` more names and `bytes` more bytes; either may be negative.
    pub fn charge(&self, files: i64, bytes: i64) -> Io<Charge<'_>> {
        lock(&self.room).take(files, bytes)?;
        Ok(Charge {
            room: &self.room,
            files,
            bytes,
        })
    }

    /// Reserves one more name of a file of this size.
    pub fn charge_name(&self, size: u64) -> Io<Charge<'_>> {
        self.charge(1, clamped(size))
    }

    /// Returns the share of one name.
    pub fn refund_name(&self, size: u64) {
        lock(&self.room).add(1, clamped(size));
    }

    pub fn refund_bytes(&self, bytes: u64) {
        lock(&self.room).add(0, clamped(bytes));
    }

    /// Reserves for a file that is about to have the size `new`.
    pub fn charge_size(&self, file: impl AsFd, new: u64) -> Io<Charge<'_>> {
        let room = self.room();
        if room.bytes.is_none() && room.file_bytes.is_none() {
            return self.charge(0, 0);
        }
        let stat = host::stat_open(file)?;
        let old = stat.stx_size;
        if new > old && room.file_bytes.is_some_and(|most| new > most) {
            return Err(Errno::FBIG);
        }
        let growth = clamped(new) - clamped(old);
        self.charge(0, growth.saturating_mul(i64::from(stat.stx_nlink)))
    }

    /// Reserves for a file that is about to reach at least `end`.
    pub fn charge_end(&self, file: impl AsFd, end: u64) -> Io<Charge<'_>> {
        let room = self.room();
        if room.bytes.is_none() && room.file_bytes.is_none() {
            return self.charge(0, 0);
        }
        let old = host::stat_open(&file)?.stx_size;
        self.charge_size(file, end.max(old))
    }
}

fn clamped(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn lock(room: &Mutex<Room>) -> MutexGuard<'_, Room> {
    room.lock().expect("no holder of this lock panics")
}
