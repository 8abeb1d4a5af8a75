//! What package registries answered, kept for all vaults.

use crate::avfs::Avfs;
use crate::error::Result;
use avfs_api::wire::{DownloadsItem, NetworkCache, NetworkCacheClear};

impl Avfs {
    /// How much of it is kept. For the owner alone.
    pub fn downloads(&self) -> Result<DownloadsItem> {
        self.ask(&NetworkCache {})
    }

    /// Removes all of it; gives how much that was. For the owner alone.
    pub fn clear_downloads(&self) -> Result<DownloadsItem> {
        self.ask(&NetworkCacheClear {})
    }
}
