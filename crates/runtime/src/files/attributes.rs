//! What a path is: stat, mode and times.

use avfs_vault::{Cause, Content, Edit, Entry, Kind, VaultPath};

use crate::Result;
use crate::common::Depth;
use crate::files::labels::Labels;
use crate::files::locate::existing;
use crate::files::mode::ModeChange;
use crate::files::{Parents, new_meta, touch_parent, touched};
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;

/// All there is to say about one path.
#[derive(Debug, Clone)]
pub struct Stat {
    pub path: VaultPath,
    pub entry: Entry,
    pub labels: Labels,
    /// Every name of the file, this one included.
    pub names: Vec<VaultPath>,
    /// The vault's version that was looked at.
    pub version: u64,
}

/// How a change of mode went.
#[derive(Debug, Clone)]
pub struct ModeChanged {
    pub path: VaultPath,
    /// The bits of the path itself afterwards.
    pub mode: u32,
    /// How many paths have another mode now.
    pub changed: usize,
    pub version: u64,
}

#[derive(Debug, Clone)]
pub struct Touched {
    pub path: VaultPath,
    pub created: bool,
    pub version: u64,
}

/// Whether a path that is not there is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    Create,
    Leave,
}

impl Session {
    /// What is at `path` itself; a link at its end is not followed.
    pub fn stat(&self, vault: Select, path: &VaultPath) -> Result<Stat> {
        let vault = self.vault(&vault, Verb::Read)?;
        if let Some(scratch) = self.scratch(&vault, path)? {
            return Ok(Stat {
                path: path.clone(),
                entry: scratch.stat(path)?,
                labels: Labels::default(),
                names: vec![path.clone()],
                version: vault.version,
            });
        }
        self.inner.host.check_own(path)?;
        let vault = self.up_to_date(&vault)?;
        let path = self.place(vault.head, path, Parents::Require)?;
        let edit = self.inner.vaults.trees().edit(vault.head)?;
        let entry = existing(&edit, &path)?;
        Ok(Stat {
            labels: Labels::of(&entry),
            entry,
            names: edit.linked_names(&path)?,
            path,
            version: vault.version,
        })
    }

    /// Changes permission bits; a link at the end of the path is followed.
    pub fn chmod(
        &self,
        vault: Select,
        path: &VaultPath,
        mode: &ModeChange,
        depth: Depth,
    ) -> Result<ModeChanged> {
        let vault = self.vault(&vault, Verb::Work)?;
        if let Some(scratch) = self.scratch(&vault, path)? {
            if depth == Depth::Recursive {
                return Err(crate::Error::Scratch { path: path.clone() });
            }
            let (before, after) = scratch.chmod(path, mode)?;
            return Ok(ModeChanged {
                path: path.clone(),
                mode: after,
                changed: usize::from(before != after),
                version: vault.version,
            });
        }
        let change = self.change(vault, Cause::Mode, &[path], |edit, head| {
            let path = self.real_path(head, path, Parents::Require)?;
            let changed = change_modes(edit, &path, mode, depth)?;
            Ok((existing(edit, &path)?.meta.mode, path, changed))
        });
        change.map(|((mode, path, changed), version)| ModeChanged {
            path,
            mode,
            changed,
            version,
        })
    }

    /// Sets the times to now; makes an empty file when there is none.
    pub fn touch(&self, vault: Select, path: &VaultPath, missing: Missing) -> Result<Touched> {
        let vault = self.vault(&vault, Verb::Work)?;
        if let Some(scratch) = self.scratch(&vault, path)? {
            return Ok(Touched {
                path: path.clone(),
                created: scratch.touch(path, missing, &self.scratch_room(&vault)?)?,
                version: vault.version,
            });
        }
        let touch = self.change(vault, Cause::Touch, &[path], |edit, head| {
            let path = self.real_path(head, path, Parents::Require)?;
            let created = match (edit.get(&path)?, missing) {
                (Some(entry), _) => {
                    edit.set_meta(&path, touched(entry.meta))?;
                    false
                }
                (None, Missing::Create) => {
                    edit.put(&path, Entry::file(Content::EMPTY, 0, new_meta(0o644)))?;
                    touch_parent(edit, &path)?;
                    true
                }
                (None, Missing::Leave) => false,
            };
            Ok((path, created))
        });
        touch.map(|((path, created), version)| Touched {
            path,
            created,
            version,
        })
    }
}

/// How many modes are different now.
pub(super) fn change_modes(
    edit: &mut Edit,
    top: &VaultPath,
    mode: &ModeChange,
    depth: Depth,
) -> Result<usize> {
    let mut changed = 0;
    let mut next = Some(top.clone());
    // What is left of each directory above. Not recursion: trees may be deeper than a stack.
    let mut above = Vec::new();
    loop {
        if let Some(path) = next.take() {
            let entry = existing(edit, &path)?;
            let below = match (&entry.kind, depth) {
                (Kind::Directory { .. }, Depth::Recursive) => edit.list(&path)?,
                _ => Vec::new(),
            };
            changed += usize::from(change_mode(edit, &path, entry, mode)?);
            above.push((path, below.into_iter()));
        }
        let Some((path, left)) = above.last_mut() else {
            return Ok(changed);
        };
        match left.next() {
            Some((name, _)) => next = Some(path.join(&name)?),
            None => drop(above.pop()),
        }
    }
}

/// Whether the mode is different now.
fn change_mode(edit: &mut Edit, path: &VaultPath, entry: Entry, mode: &ModeChange) -> Result<bool> {
    let after = mode.apply(entry.meta.mode, entry.is_dir());
    // The mode of a symbolic link says nothing.
    if entry.is_symlink() || after == entry.meta.mode {
        return Ok(false);
    }
    let mut meta = entry.meta;
    (meta.mode, meta.ctime) = (after, avfs_vault::Time::now());
    edit.set_meta(path, meta)?;
    Ok(true)
}
