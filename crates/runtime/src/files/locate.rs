//! Where a path really leads: symbolic links on the way are followed, as a command would.

use avfs_vault::{Edit, Entry, Kind, RootId, Vault, VaultPath};

use crate::files::scratch::Scratch;
use crate::files::{Parents, is_a_directory, new_directory};
use crate::runtime::Runtime;
use crate::{Error, Result};

impl Runtime {
    /// The path itself, with links in the directories above it followed. Its last name may be
    /// new, and with [`Parents::Make`] so may directories above.
    pub(crate) fn place(
        &self,
        head: RootId,
        path: &VaultPath,
        parents: Parents,
    ) -> Result<VaultPath> {
        let trees = self.inner.vaults.trees();
        let mut above = path.parent();
        let mut below: Vec<&[u8]> = path.file_name().into_iter().collect();
        let mut names = path.components().rev().skip(1);
        while let Some(parent) = above {
            match trees.resolve(head, &parent) {
                Ok((found, entry)) => {
                    if !entry.is_dir() {
                        return Err(avfs_vault::Error::NotADirectory { path: found }.into());
                    }
                    let joined = below.iter().rev().try_fold(found, |at, name| at.join(name));
                    let placed = joined?;
                    self.inner.host.check_own(&placed)?;
                    return Ok(placed);
                }
                Err(avfs_vault::Error::PathNotFound { .. }) if parents == Parents::Make => {
                    below.extend(names.next());
                    above = parent.parent();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(VaultPath::root())
    }

    /// Where a write to `path` goes: a link at the end is followed too.
    pub(crate) fn real_path(
        &self,
        head: RootId,
        path: &VaultPath,
        parents: Parents,
    ) -> Result<VaultPath> {
        let placed = self.place(head, path, parents)?;
        let trees = self.inner.vaults.trees();
        if !trees
            .entry(head, &placed)?
            .is_some_and(|it| it.is_symlink())
        {
            return Ok(placed);
        }
        let (target, _) = trees.resolve(head, &placed)?;
        self.inner.host.check_own(&target)?;
        Ok(target)
    }

    /// The scratch directory, for paths that are in it.
    pub(crate) fn scratch(&self, vault: &Vault, path: &VaultPath) -> Result<Option<Scratch>> {
        if !is_scratch(path) {
            return Ok(None);
        }
        Ok(Some(Scratch::open(&self.inner.layers.scratch(vault.id)?)?))
    }

    /// Refuses `/tmp` to verbs that are about the vault's history or content as a whole.
    pub(crate) fn check_kept(&self, path: &VaultPath) -> Result<()> {
        if is_scratch(path) {
            return Err(Error::Scratch { path: path.clone() });
        }
        self.inner.host.check_own(path)
    }

    /// The vault with all that was written until now, also by running commands, for who only reads.
    pub(crate) fn up_to_date(&self, vault: &Vault) -> Result<Vault> {
        self.slot(vault.id).readable(self, Ok)
    }
}

pub(crate) fn is_scratch(path: &VaultPath) -> bool {
    path.components().next() == Some(b"tmp")
}

/// What is at `path` in an edit; an error when there is nothing.
pub(crate) fn existing(edit: &Edit, path: &VaultPath) -> Result<Entry> {
    let found = edit.get(path)?;
    found.ok_or_else(|| avfs_vault::Error::PathNotFound { path: path.clone() }.into())
}

/// A file's content and size.
pub(crate) fn file_content(path: &VaultPath, entry: &Entry) -> Result<(avfs_vault::Content, u64)> {
    match entry.kind {
        Kind::File { content, size, .. } => Ok((content, size)),
        Kind::Directory { .. } => Err(is_a_directory(path.clone())),
        Kind::Symlink { .. } | Kind::Fifo => {
            Err(avfs_vault::Error::NotAFile { path: path.clone() }.into())
        }
    }
}

/// Makes the directories above `path` that are missing.
pub(crate) fn make_parents(edit: &mut Edit, path: &VaultPath) -> Result<()> {
    let mut missing = Vec::new();
    let mut parent = path.parent();
    while let Some(path) = parent {
        if edit.get(&path)?.is_some() {
            break;
        }
        parent = path.parent();
        missing.push(path);
    }
    for path in missing.into_iter().rev() {
        edit.put(&path, new_directory())?;
    }
    Ok(())
}
