//! File verbs: the same paths and the same files that commands see.

pub(crate) mod attributes;
pub(crate) mod condition;
pub(crate) mod copy;
#[cfg(test)]
mod deep_tests;
pub(crate) mod labels;
pub(crate) mod locate;
pub(crate) mod mode;
pub(crate) mod replace;
mod scratch;
pub(crate) mod search;
pub(crate) mod tree;
pub(crate) mod write;

use avfs_store::WayOut;
use avfs_vault::{Cause, Edit, Entry, Kind, Meta, NewVersion, RootId, Time, Vault, VaultPath};
use serde_json::json;

use crate::bounds::LISTED_MAX;
use crate::common::Depth;
use crate::files::locate::make_parents;
use crate::gate::Verb;
use crate::live::slot::HeadChange;
use crate::live::view_writer::{Draft, EditHint};
use crate::owners::STORED_OWNER;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

/// One name in a directory.
#[derive(Debug, Clone)]
pub struct Listed {
    pub name: Vec<u8>,
    pub entry: Entry,
}

/// Which names of a directory are listed.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Only names that sort behind this one.
    pub after: Option<Vec<u8>>,
    /// At most so many; [`LISTED_MAX`] when left out, and at most.
    pub limit: Option<usize>,
}

/// Names of a directory, in order.
#[derive(Debug, Clone)]
pub struct Listing {
    pub entries: Vec<Listed>,
    /// Whether there are names behind the last one.
    pub more: bool,
}

impl ListRequest {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(LISTED_MAX).clamp(1, LISTED_MAX)
    }

    /// Cuts off what was found beyond the limit.
    fn cut(&self, mut entries: Vec<Listed>) -> Listing {
        let more = entries.len() > self.limit();
        entries.truncate(self.limit());
        Listing { entries, more }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    Replace,
    Append,
}

/// What happens when the directory above is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    Require,
    Make,
}

impl Session {
    /// What a directory holds; a file lists itself.
    pub fn ls(&self, vault: Select, path: &VaultPath, request: &ListRequest) -> Result<Listing> {
        let vault = self.vault(&vault, Verb::Read)?;
        let after = request.after.as_deref();
        // One more than is told shows that there are more.
        let most = request.limit() + 1;
        if let Some(scratch) = self.scratch(&vault, path)? {
            return Ok(request.cut(scratch.list(path, after, most)?));
        }
        self.inner.host.check_own(path)?;
        self.slot(vault.id).readable(self, |vault| {
            let trees = self.inner.vaults.trees();
            let (path, entry) = trees.resolve(vault.head, path)?;
            let Kind::Directory { tree, .. } = entry.kind else {
                let name = path.file_name().unwrap_or_default().to_vec();
                return Ok(request.cut(vec![Listed { name, entry }]));
            };
            let entries = trees.list_after(tree, after, most)?.into_iter();
            let entries = entries.map(|(name, entry)| Listed { name, entry });
            Ok(request.cut(entries.collect()))
        })
    }

    /// Makes a directory.
    pub fn mkdir(&self, vault: Select, path: &VaultPath, parents: Parents) -> Result<()> {
        let vault = self.vault(&vault, Verb::Work)?;
        if let Some(scratch) = self.scratch(&vault, path)? {
            return scratch.mkdir(path, parents);
        }
        self.change(vault, Cause::Mkdir, &[path], |edit, head| {
            let path = &self.place(head, path, parents)?;
            match (edit.get(path)?, parents) {
                (Some(entry), Parents::Make) if entry.is_dir() => return Ok(()),
                (Some(_), _) => return Err(Error::PathExists { path: path.clone() }),
                (None, Parents::Make) => make_parents(edit, path)?,
                (None, Parents::Require) => {}
            }
            edit.put(path, new_directory())?;
            touch_parent(edit, path)
        })
        .map(drop)
    }

    /// Removes a file, or a directory with all that is in it.
    pub fn rm(&self, vault: Select, path: &VaultPath, depth: Depth) -> Result<()> {
        self.way_out(WayOut::Small, || self.remove(&vault, path, depth))
    }

    fn remove(&self, vault: &Select, path: &VaultPath, depth: Depth) -> Result<()> {
        let vault = self.vault(vault, Verb::Work)?;
        if let Some(scratch) = self.scratch(&vault, path)? {
            return scratch.remove(path, depth);
        }
        let slot = self.slot(vault.id);
        if slot.is_stuck(self) {
            self.inner.host.check_own(path)?;
            return slot.remove_unsaved(self, path, depth);
        }
        self.change(vault, Cause::Remove, &[path], |edit, head| {
            let path = &self.place(head, path, Parents::Require)?;
            let entry = edit.get(path)?.ok_or_else(|| not_found(path))?;
            if entry.is_dir() && depth == Depth::Single {
                return Err(is_a_directory(path.clone()));
            }
            edit.remove(path)?;
            touch_parent(edit, path)
        })
        .map(drop)
    }

    /// Renames as POSIX does; onto an existing directory it moves into it. Says where it ended up.
    pub fn mv(&self, vault: Select, from: &VaultPath, to: &VaultPath) -> Result<VaultPath> {
        let vault = self.vault(&vault, Verb::Work)?;
        if self.scratch(&vault, from)?.is_some() || self.scratch(&vault, to)?.is_some() {
            return Err(Error::Invalid {
                what: "move",
                reason: "/tmp is not part of the vault; write the file where it belongs".into(),
            });
        }
        self.change_by(vault, Cause::Move, &[from, to], |edit, head| {
            let from = &self.place(head, from, Parents::Require)?;
            let to = &self.place(head, to, Parents::Require)?;
            let entry = edit.get(from)?.ok_or_else(|| not_found(from))?;
            let target = match edit.get(to)? {
                Some(existing) if existing.is_dir() => {
                    to.join(from.file_name().unwrap_or_default())?
                }
                _ => to.clone(),
            };
            if target == *from {
                return Ok((target, None));
            }
            if target.starts_with(from) {
                return Err(Error::IntoItself {
                    from: from.clone(),
                    to: target,
                });
            }
            check_replaceable(edit, &entry, &target)?;
            edit.remove(from)?;
            edit.put(&target, entry)?;
            touch_parent(edit, from)?;
            touch_parent(edit, &target)?;
            let hint = EditHint::Rename {
                from: from.clone(),
                to: target.clone(),
            };
            Ok((target, Some(hint)))
        })
        .map(|(target, _)| target)
    }

    /// Applies `edit` to the head and publishes the result as one version.
    pub(crate) fn change<T>(
        &self,
        vault: Vault,
        cause: Cause,
        paths: &[&VaultPath],
        mut edit: impl FnMut(&mut Edit, RootId) -> Result<T>,
    ) -> Result<(T, u64)> {
        self.change_by(vault, cause, paths, |changed, head| {
            Ok((edit(changed, head)?, None))
        })
    }

    /// Edits the head with a hint at how it is done, where the roots before and after do not tell that.
    pub(crate) fn change_by<T>(
        &self,
        vault: Vault,
        cause: Cause,
        paths: &[&VaultPath],
        mut edit: impl FnMut(&mut Edit, RootId) -> Result<(T, Option<EditHint>)>,
    ) -> Result<(T, u64)> {
        for path in paths {
            self.inner.host.check_own(path)?;
        }
        let vaults = &self.inner.vaults;
        let names: Vec<String> = paths.iter().map(|path| path.to_string()).collect();
        let version = NewVersion {
            by: self.principal(),
            exec: None,
            cause,
            details: json!({ "path": names.first(), "paths": names }),
        };
        let change = HeadChange {
            version,
            draft: &mut |vault| {
                let mut changed = vaults.trees().edit(vault.head)?;
                let (value, hint) = edit(&mut changed, vault.head)?;
                let root = changed.finish()?;
                Ok(Draft { value, root, hint })
            },
            publish: &|vault, root, version| {
                let published = vaults.publish(vault.id, vault.head, root, version)?;
                Ok(published.number)
            },
        };
        self.slot(vault.id).change(self, change)
    }
}

/// POSIX rename replaces a file by a file and an empty directory by a directory.
fn check_replaceable(edit: &Edit, entry: &Entry, target: &VaultPath) -> Result<()> {
    let Some(existing) = edit.get(target)? else {
        return Ok(());
    };
    match (entry.is_dir(), existing.is_dir()) {
        (false, false) => Ok(()),
        (true, false) => Err(avfs_vault::Error::NotADirectory {
            path: target.clone(),
        }
        .into()),
        (false, true) => Err(is_a_directory(target.clone())),
        (true, true) if edit.list(target)?.is_empty() => Ok(()),
        (true, true) => Err(Error::NotEmpty {
            path: target.clone(),
        }),
    }
}

pub(crate) fn touch_parent(edit: &mut Edit, path: &VaultPath) -> Result<()> {
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    if let Some(entry) = edit.get(&parent)? {
        edit.set_meta(&parent, touched(entry.meta))?;
    }
    Ok(())
}

pub(crate) fn touched(meta: Meta) -> Meta {
    let now = Time::now();
    Meta {
        mtime: now,
        ctime: now,
        ..meta
    }
}

pub(crate) fn new_meta(mode: u32) -> Meta {
    Meta {
        uid: STORED_OWNER.uid,
        gid: STORED_OWNER.gid,
        ..Meta::new(mode, Time::now())
    }
}

pub(crate) fn new_directory() -> Entry {
    let meta = new_meta(0o755);
    Entry {
        kind: Entry::directory(0o755, meta.mtime).kind,
        meta,
    }
}

pub(crate) fn not_found(path: &VaultPath) -> Error {
    avfs_vault::Error::PathNotFound { path: path.clone() }.into()
}

pub(crate) fn is_a_directory(path: VaultPath) -> Error {
    avfs_vault::Error::IsADirectory { path }.into()
}
