//! Bytes by hash, named roots, transactions: packs, SQLite, the on-disk format.

mod cache;
mod damage;
mod database;
mod engine;
mod error;
mod files;
mod foreign;
mod fresh;
mod health;
mod id;
mod leases;
mod loose;
mod packs;
mod record;
mod store;
mod sweep;

pub use cache::Cache;
pub use engine::{Engine, Place};
pub use error::{Error, Result};
pub use files::Files;
pub use fresh::fresh_uuid;
pub use id::ObjectId;
pub use leases::Lease;
/// The engine's own types, which appear in the closures of [`Store::write`] and [`Store::read`].
pub use rusqlite;
pub use store::{Durability, Store, StoreStats};
pub use sweep::{Compacted, DiskUsage, Mark, Stored, Swept};
