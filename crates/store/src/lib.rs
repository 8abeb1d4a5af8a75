//! Bytes by hash, named roots, transactions: packs, SQLite, the on-disk format.

mod error;
mod id;

pub use error::{Error, Result};
pub use id::ObjectId;
/// The engine's own types, which appear in the closures of [`Store::write`] and [`Store::read`].
pub use rusqlite;

use std::path::Path;
use std::sync::Arc;

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Durability {
    /// Survives kill -9 of this process; a power cut may lose it.
    Relaxed,
    /// On the disk when the call returns, with everything before it.
    Full,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct StoreStats {
    pub objects: u64,
    pub bytes_stored: u64,
}

#[derive(Clone)]
pub struct Store;

impl Store {
    pub fn open(_home: &Path) -> Result<Store> {
        todo!()
    }
    pub fn put(&self, _bytes: &[u8]) -> Result<ObjectId> {
        todo!()
    }
    pub fn get(&self, _id: ObjectId) -> Result<Arc<[u8]>> {
        todo!()
    }
    pub fn contains(&self, _id: ObjectId) -> Result<bool> {
        todo!()
    }
    pub fn stats(&self) -> Result<StoreStats> {
        todo!()
    }
    pub fn write<T, E: From<Error>>(
        &self,
        _durability: Durability,
        _f: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        todo!()
    }
    pub fn read<T, E: From<Error>>(
        &self,
        _f: impl FnOnce(&rusqlite::Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        todo!()
    }
    pub fn flush(&self) -> Result<()> {
        todo!()
    }
}
