//! Versions of a vault and of its paths: looking back, and bringing back.

use avfs_vault::{Cause, Edit, Entry, Kind, PathVersion, RootId, VaultPath, Version};

use crate::bounds::LISTED_MAX;
use crate::files::locate::make_parents;
use crate::files::{Parents, touch_parent, touched};
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

/// A version of a vault and how much it holds.
#[derive(Debug, Clone)]
pub struct VaultVersion {
    pub version: Version,
    pub files: u64,
    pub bytes: u64,
    /// Why it cannot be read.
    pub damaged: Option<String>,
}

/// A path that is again what it was.
#[derive(Debug, Clone)]
pub struct BroughtBack {
    pub path: VaultPath,
    /// The version that last changed the path before.
    pub from: u64,
    /// The version it was brought back from.
    pub to: u64,
    /// The version that this made.
    pub version: u64,
}

/// How much a state holds.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub files: u64,
    pub bytes: u64,
    /// Why it cannot be told.
    pub damaged: Option<String>,
}

impl Session {
    /// How much a root holds; one that is damaged is described as such, beside all others.
    pub(crate) fn totals(&self, root: RootId) -> Result<Totals> {
        match self.inner.vaults.trees().root(root) {
            Ok(root) => Ok(Totals {
                files: root.files(),
                bytes: root.bytes(),
                damaged: None,
            }),
            Err(error) if error.is_damage() => Ok(Totals {
                damaged: Some(error.to_string()),
                ..Totals::default()
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// The newest versions of a vault, newest first.
    pub fn vault_log(
        &self,
        vault: Select,
        limit: usize,
        before: Option<u64>,
    ) -> Result<Vec<VaultVersion>> {
        let vault = self.up_to_date(&self.vault(&vault, Verb::Read)?)?;
        let versions = self.inner.vaults.versions_before(
            vault.id,
            before.unwrap_or(u64::MAX),
            limit.min(LISTED_MAX),
        )?;
        let describe = |version: Version| {
            let totals = self.totals(version.root)?;
            Ok(VaultVersion {
                version,
                files: totals.files,
                bytes: totals.bytes,
                damaged: totals.damaged,
            })
        };
        versions.into_iter().map(describe).collect()
    }

    /// The newest versions that changed what is at `path` or beneath it, newest first.
    pub fn path_log(
        &self,
        vault: Select,
        path: &VaultPath,
        limit: usize,
        before: Option<u64>,
    ) -> Result<Vec<PathVersion>> {
        let vault = self.vault(&vault, Verb::Read)?;
        self.check_kept(path)?;
        let vault = self.up_to_date(&vault)?;
        let path = self.place(vault.head, path, Parents::Make)?;
        let limit = limit.min(LISTED_MAX);
        let vaults = &self.inner.vaults;
        let history =
            vaults.path_history_before(vault.id, &path, before.unwrap_or(u64::MAX), limit)?;
        if history.is_empty() && limit > 0 && before.is_none() {
            return Err(avfs_vault::Error::PathNotFound { path }.into());
        }
        Ok(history)
    }

    /// Makes a path again what it was in a version, as a new version.
    pub fn checkout(&self, vault: Select, path: &VaultPath, number: u64) -> Result<BroughtBack> {
        let vault = self.vault(&vault, Verb::Work)?;
        self.check_kept(path)?;
        let vaults = &self.inner.vaults;
        let wanted = vaults.version(vault.id, number)?;
        let id = vault.id;
        let done = self.change(vault, Cause::Checkout, &[path], |edit, head| {
            let path = self.place(head, path, Parents::Make)?;
            let old = vaults.trees().entry(wanted.root, &path)?;
            let old = old.ok_or_else(|| Error::NotInVersion {
                path: path.clone(),
                number,
            })?;
            let from = vaults.path_history(id, &path, 1)?;
            put_back(edit, &path, old)?;
            Ok((path, from.first().map_or(0, |it| it.version.number)))
        });
        done.map(|((path, from), version)| BroughtBack {
            path,
            from,
            to: number,
            version,
        })
    }

    /// Takes a path exactly one step back in its own history, as a new version. Doing it twice
    /// brings back what the first one replaced.
    pub fn revert(&self, vault: Select, path: &VaultPath) -> Result<BroughtBack> {
        let vault = self.vault(&vault, Verb::Work)?;
        self.check_kept(path)?;
        let vaults = &self.inner.vaults;
        let id = vault.id;
        let done = self.change(vault, Cause::Revert, &[path], |edit, head| {
            let path = self.place(head, path, Parents::Make)?;
            let history = vaults.path_history(id, &path, 2)?;
            let Some(now) = history.first() else {
                return Err(avfs_vault::Error::PathNotFound { path }.into());
            };
            let since = now.version.number;
            let before = history.get(1).and_then(|before| {
                let entry = before.entry.clone()?;
                Some((entry, before.version.number))
            });
            let Some((entry, to)) = before else {
                return Err(Error::NoEarlierState { path, since });
            };
            put_back(edit, &path, entry)?;
            Ok((path, since, to))
        });
        done.map(|((path, from, to), version)| BroughtBack {
            path,
            from,
            to,
            version,
        })
    }
}

/// Puts an entry of another time in place of what is there now.
fn put_back(edit: &mut Edit, path: &VaultPath, old: Entry) -> Result<()> {
    make_parents(edit, path)?;
    let there = edit.get(path)?;
    let mut names = vec![path.clone()];
    let mut entry = old;
    if let Kind::File { link, .. } = &mut entry.kind {
        // What has several names now keeps them, and is the same file under each.
        *link = there.as_ref().and_then(Entry::link);
        if link.is_some() {
            names = edit.linked_names(path)?;
        }
        // Its content is new to whoever looks at times.
        entry.meta = touched(entry.meta);
    }
    for name in names {
        edit.put(&name, entry.clone())?;
    }
    match there {
        Some(_) => Ok(()),
        None => touch_parent(edit, path),
    }
}
