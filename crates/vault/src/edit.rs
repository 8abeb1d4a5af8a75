//! A batch of changes to one root; nothing is published until it is finished.

use crate::{Entry, LinkId, Meta, Result, RootId, VaultPath};

pub struct Edit;

impl Edit {
    pub fn get(&self, _path: &VaultPath) -> Result<Option<Entry>> {
        todo!()
    }
    pub fn list(&self, _path: &VaultPath) -> Result<Vec<(Vec<u8>, Entry)>> {
        todo!()
    }
    pub fn put(&mut self, _path: &VaultPath, _entry: Entry) -> Result<()> {
        todo!()
    }
    /// On a hard-linked file, changes all its names.
    pub fn set_meta(&mut self, _path: &VaultPath, _meta: Meta) -> Result<()> {
        todo!()
    }
    pub fn remove(&mut self, _path: &VaultPath) -> Result<()> {
        todo!()
    }
    /// A link id for a new hard-linked file first seen at `path`, which no other file here has.
    pub fn fresh_link(&self, _path: &VaultPath) -> LinkId {
        todo!()
    }
    /// All names of the file at `path`, itself included: more than one only for hard links.
    pub fn linked_names(&self, _path: &VaultPath) -> Result<Vec<VaultPath>> {
        todo!()
    }
    pub fn finish(self) -> Result<RootId> {
        todo!()
    }
}
