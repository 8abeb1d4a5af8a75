//! What is on the disk: objects by hash, rows and transactions, and the word index, which is derived from both.

mod engine;
mod error;
mod fresh;
mod id;
pub mod ledger;
mod objects;
mod room;
mod words;

pub use engine::{Engine, RecordLocation};
pub use error::{DatabaseError, Error, Failure, Result, Shortage};
pub use fresh::fresh_uuid;
pub use id::{InvalidId, ObjectId};
pub use ledger::{Durability, Frozen};
pub use objects::{
    Cache, Compacted, DiskUsage, Files, Lease, Mark, Store, StoreStats, Stored, Swept, WayOut,
    give_up_reserve,
};
pub use room::Room;
pub use words::{Snippets, WordEdit, WordFile, WordHit, WordRows};
