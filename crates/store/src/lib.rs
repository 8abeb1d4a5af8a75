//! Bytes by hash, named roots, transactions: packs, SQLite, the on-disk format.

mod cache;
mod connect;
mod damage;
mod database;
mod engine;
mod error;
mod files;
mod foreign;
mod fresh;
mod health;
mod id;
mod index;
mod leases;
mod loose;
mod out;
mod packs;
mod rebuild;
mod record;
mod reserve;
mod room;
mod salvage;
mod store;
mod sweep;
mod timer;

pub use cache::Cache;
pub use database::Frozen;
pub use engine::{Engine, Place};
pub use error::{Error, Failure, Result, Shortage};
pub use files::Files;
pub use fresh::fresh_uuid;
pub use id::ObjectId;
pub use leases::Lease;
pub use out::give_up_reserve;
pub use reserve::WayOut;
pub use room::Room;
/// The engine's own types, which appear in the closures of [`Store::write`] and [`Store::read`].
pub use rusqlite;
pub use store::{Durability, Store, StoreStats};
pub use sweep::{Compacted, DiskUsage, Mark, Stored, Swept};
