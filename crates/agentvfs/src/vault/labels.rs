//! Tags and metadata of paths.

use super::Vault;
use crate::error::Result;
use crate::paths::in_vault;
use avfs_api::wire::{
    MetaDelete, MetaGet, MetaImport, MetaList, MetaSet, Tag, TagDelete, TagItem, TagList,
    TagListAll, TagRename, Untag,
};
use std::collections::BTreeMap;
use std::path::Path;

impl Vault {
    /// Gives a path a tag.
    pub fn tag(&self, path: impl AsRef<Path>, tag: impl Into<String>) -> Result<()> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Tag {
            path,
            path_b64,
            tag: tag.into(),
        })?;
        Ok(())
    }

    /// Takes a tag from a path.
    pub fn untag(&self, path: impl AsRef<Path>, tag: impl Into<String>) -> Result<()> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Untag {
            path,
            path_b64,
            tag: tag.into(),
        })?;
        Ok(())
    }

    /// The tags of a path.
    pub fn tags(&self, path: impl AsRef<Path>) -> Result<Vec<String>> {
        let (path, path_b64) = in_vault(path);
        Ok(self.ask(&TagList { path, path_b64 })?.tags)
    }

    /// Every tag in the vault, with how many paths have it.
    pub fn all_tags(&self) -> Result<Vec<TagItem>> {
        Ok(self.ask(&TagListAll {})?.tags)
    }

    /// Takes a tag from every path that has it; says how many did.
    pub fn delete_tag(&self, tag: impl Into<String>) -> Result<usize> {
        Ok(self.ask(&TagDelete { tag: tag.into() })?.file_count)
    }

    /// Renames a tag on every path that has it; says how many do.
    pub fn rename_tag(&self, old: impl Into<String>, new: impl Into<String>) -> Result<usize> {
        let request = TagRename {
            old_name: old.into(),
            new_name: new.into(),
        };
        Ok(self.ask(&request)?.file_count)
    }

    /// The metadata of a path.
    pub fn meta(&self, path: impl AsRef<Path>) -> Result<BTreeMap<String, String>> {
        let (path, path_b64) = in_vault(path);
        Ok(self.ask(&MetaList { path, path_b64 })?.metadata)
    }

    /// One value of a path's metadata.
    pub fn meta_get(&self, path: impl AsRef<Path>, key: impl Into<String>) -> Result<String> {
        let (path, path_b64) = in_vault(path);
        let request = MetaGet {
            path,
            path_b64,
            key: key.into(),
        };
        Ok(self.ask(&request)?.value)
    }

    /// Sets one value of a path's metadata.
    pub fn meta_set(
        &self,
        path: impl AsRef<Path>,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<()> {
        let (path, path_b64) = in_vault(path);
        self.ask(&MetaSet {
            path,
            path_b64,
            key: key.into(),
            value: value.into(),
        })?;
        Ok(())
    }

    /// Deletes one value of a path's metadata.
    pub fn meta_delete(&self, path: impl AsRef<Path>, key: impl Into<String>) -> Result<()> {
        let (path, path_b64) = in_vault(path);
        self.ask(&MetaDelete {
            path,
            path_b64,
            key: key.into(),
        })?;
        Ok(())
    }

    /// Sets several values of a path's metadata, beside those that are there; says how many.
    pub fn meta_import(
        &self,
        path: impl AsRef<Path>,
        metadata: BTreeMap<String, String>,
    ) -> Result<usize> {
        let (path, path_b64) = in_vault(path);
        let request = MetaImport {
            path,
            path_b64,
            metadata,
        };
        Ok(self.ask(&request)?.imported)
    }
}
