//! What package registries answered, kept in a directory for all sandboxes: a shared HTTP cache (RFC 9111).
//!
//! Only the daemon reads and writes the directory. A sandbox gets answers through a connection that its terms allow, and
//! only for a request that it could have made itself. What a sandbox sends decides which answer is kept only by the
//! address and by the two headers that are part of the key ([`key::Key`]); nothing else of its request goes to the host.
//!
//! An answer is published when all of it is there. Until then whoever asks for it reads the file that grows, so one slow client
//! keeps nobody waiting. Damage is a miss; a full disk means that answers are passed on and not kept.

mod download;
mod entry;
mod flights;
mod health;
mod key;
mod origins;
mod release;
mod shelf;

use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use download::{Download, Progress, download};
pub(crate) use entry::{Entry, policy, policy_of_release};
pub(crate) use flights::{Joined, Lead, Stage};
pub(crate) use key::{Credentials, Key, SENT};
pub(crate) use origins::{Origin, Origins};
pub(crate) use release::is_release;
pub(crate) use shelf::Shelf;

use flights::Flights;
pub use health::CacheHealth;

/// Where answers are kept, and how many.
#[derive(Debug, Clone)]
pub struct CachePlace {
    pub directory: PathBuf,
    /// Bytes of all answers together. Those that were used longest ago go first.
    pub max_bytes: u64,
    /// Bytes of the disk that stay free.
    pub keep_free: u64,
}

/// What is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    pub answers: u64,
    pub bytes: u64,
    pub max_bytes: u64,
}

/// The answers of registries. Nothing is read or written until the first request.
#[derive(Clone)]
pub struct Cache(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) origins: Origins,
    pub(crate) credentials: Credentials,
}

impl Cache {
    pub fn new(place: CachePlace) -> Cache {
        Cache(Arc::new(Parts {
            shelf: Arc::new(Shelf::new(place)),
            flights: Arc::default(),
            origins: Origins::default(),
            credentials: Credentials::default(),
        }))
    }

    /// How much is kept. Blocks.
    pub fn usage(&self) -> CacheUsage {
        self.0.shelf.usage()
    }

    /// Removes all answers; gives what there was. Downloads that are under way go on. Blocks.
    pub fn clear(&self) -> CacheUsage {
        self.0.shelf.clear()
    }

    /// Reads every answer, and removes those that are damaged; gives how many these were. Blocks.
    pub fn check(&self) -> u64 {
        self.0.shelf.check()
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }
}
