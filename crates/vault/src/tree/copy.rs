//! Copies inside a tree: whole directories at the price of one entry.

use crate::{Edit, Error, LinkId, Result, VaultPath};

impl Edit {
    /// Puts what is at `from` also at `to`, in place of what is there. Nothing is read or written
    /// again, however much it is. The copy is a file of its own: names that are hard links of each
    /// other stay so within the copy, and none is a link to what was copied.
    pub fn copy(&mut self, from: &VaultPath, to: &VaultPath) -> Result<()> {
        let entry = self
            .get(from)?
            .ok_or_else(|| Error::PathNotFound { path: from.clone() })?;
        self.put(to, entry)?;
        self.part_links(to)
    }

    /// Makes the file at `to` one more name of the file at `from`.
    pub fn link(&mut self, from: &VaultPath, to: &VaultPath) -> Result<()> {
        let mut entry = self
            .get(from)?
            .ok_or_else(|| Error::PathNotFound { path: from.clone() })?;
        let fresh: LinkId = self.fresh_link(from);
        match &mut entry.kind {
            crate::Kind::File { link, .. } => {
                link.get_or_insert(fresh);
            }
            crate::Kind::Directory { .. } => {
                return Err(Error::IsADirectory { path: from.clone() });
            }
            crate::Kind::Symlink { .. } | crate::Kind::Fifo => {
                return Err(Error::NotAFile { path: from.clone() });
            }
        }
        // The name that was there first joins the group too.
        self.put(from, entry.clone())?;
        self.put(to, entry)
    }
}
