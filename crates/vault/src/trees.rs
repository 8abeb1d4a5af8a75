//! Reading trees, through a bounded cache of decoded nodes.

use std::io::Read;
use std::sync::Arc;

use avfs_store::Store;

use crate::{Content, Edit, Entry, Result, Root, RootId, TreeId, VaultPath};

#[derive(Clone)]
pub struct Trees {
    store: Store,
}

impl Trees {
    pub fn new(store: Store) -> Trees {
        Trees { store }
    }
    pub fn store(&self) -> &Store {
        &self.store
    }
    pub fn empty_root(&self) -> Result<RootId> {
        todo!()
    }
    pub fn root(&self, _id: RootId) -> Result<Arc<Root>> {
        todo!()
    }
    pub fn child(&self, _tree: TreeId, _name: &[u8]) -> Result<Option<Entry>> {
        todo!()
    }
    pub fn list(&self, _tree: TreeId) -> Result<Vec<(Vec<u8>, Entry)>> {
        todo!()
    }
    pub fn list_after(
        &self,
        _tree: TreeId,
        _after: Option<&[u8]>,
        _limit: usize,
    ) -> Result<Vec<(Vec<u8>, Entry)>> {
        todo!()
    }
    pub fn entry(&self, _root: RootId, _path: &VaultPath) -> Result<Option<Entry>> {
        todo!()
    }
    pub fn resolve(&self, _root: RootId, _path: &VaultPath) -> Result<(VaultPath, Entry)> {
        todo!()
    }
    pub fn read(&self, _content: Content, _offset: u64, _len: usize) -> Result<Vec<u8>> {
        todo!()
    }
    pub fn write_content(&self, _reader: &mut dyn Read) -> Result<(Content, u64)> {
        todo!()
    }
    /// `write_content` for bytes already in memory.
    pub fn write_bytes(&self, _bytes: &[u8]) -> Result<(Content, u64)> {
        todo!()
    }
    pub fn edit(&self, _base: RootId) -> Result<Edit> {
        todo!()
    }
}
