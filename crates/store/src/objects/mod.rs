//! Bytes by hash: objects go in and come out by their id, and transactions make them last.

mod cache;
mod damage;
mod files;
mod foreign;
mod health;
mod leases;
mod loose;
mod out;
mod packs;
mod rebuild;
mod record;
mod reserve;
mod salvage;
mod store;
mod sweep;

pub use cache::Cache;
pub use files::Files;
pub use leases::Lease;
pub use out::give_up_reserve;
pub use reserve::WayOut;
pub use store::{Store, StoreStats};
pub use sweep::{Compacted, DiskUsage, Mark, Stored, Swept};
