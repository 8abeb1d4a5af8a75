//! Finding things in a vault.

use super::Vault;
use crate::error::Result;
use avfs_api::wire::{Find, FoundItem, Grep, GrepMatchItem, Search, SearchHit};

impl Vault {
    /// Lines that match a regular expression, in all files. [`Grep`] has more options; it is asked with [`Vault::ask`].
    pub fn grep(&self, pattern: impl Into<String>) -> Result<Vec<GrepMatchItem>> {
        Ok(self.ask(&Grep::new(pattern))?.matches)
    }

    /// Paths whose last name matches a glob. [`Find`] has more options; it is asked with [`Vault::ask`].
    pub fn find(&self, name: impl Into<String>) -> Result<Vec<FoundItem>> {
        let request = Find {
            name: Some(name.into()),
            ..Find::default()
        };
        Ok(self.ask(&request)?.results)
    }

    /// Files by words, the best match first.
    pub fn search(&self, query: impl Into<String>) -> Result<Vec<SearchHit>> {
        Ok(self.ask(&Search::new(query))?.results)
    }
}
