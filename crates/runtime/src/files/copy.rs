//! Copies and links inside a vault.

use avfs_vault::{Cause, Edit, Entry, Kind, Time, VaultPath};

use crate::common::Depth;
use crate::files::locate::{existing, is_scratch};
use crate::files::write::WriteOptions;
use crate::files::{Parents, is_a_directory, new_meta, touch_parent};
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

/// The longest target a symbolic link may have.
const TARGET_MAX: usize = 4095;

/// What a copy or link led to.
#[derive(Debug, Clone)]
pub struct Placed {
    /// Where it ended up.
    pub path: VaultPath,
    pub version: u64,
}

/// What a new name is.
#[derive(Debug, Clone)]
pub enum NewLink {
    /// One more name of the file at this path.
    Hard(VaultPath),
    /// A symbolic link with this target, which need not exist.
    Symbolic(Vec<u8>),
}

impl Session {
    /// Copies with modes, times and attributes. Onto an existing directory it copies into it; an
    /// existing file is replaced; a directory that is already there is filled.
    pub fn cp(
        &self,
        vault: Select,
        from: &VaultPath,
        to: &VaultPath,
        depth: Depth,
    ) -> Result<Placed> {
        if is_scratch(from) || is_scratch(to) {
            return self.copy_by_content(vault, from, to);
        }
        let vault = self.vault(&vault, Verb::Work)?;
        self.change(vault, Cause::Copy, &[from, to], |edit, head| {
            let from = match depth {
                Depth::Single => self.real_path(head, from, Parents::Require)?,
                Depth::Recursive => self.place(head, from, Parents::Require)?,
            };
            let to = self.real_path(head, to, Parents::Require)?;
            let source = existing(edit, &from)?;
            if source.is_dir() && depth == Depth::Single {
                return Err(Error::NeedsRecursive { path: from });
            }
            let into = edit.get(&to)?.is_some_and(|entry| entry.is_dir());
            let target = match from.file_name() {
                Some(name) if into => to.join(name)?,
                _ => to,
            };
            if target.starts_with(&from) {
                return Err(Error::IntoItself { from, to: target });
            }
            copy_entry(edit, from, &source, target.clone())?;
            touch_parent(edit, &target)?;
            Ok(target)
        })
        .map(|(path, version)| Placed { path, version })
    }

    /// Gives a file one more name, or makes a symbolic link. Never replaces what is there.
    pub fn ln(&self, vault: Select, link: &NewLink, at: &VaultPath) -> Result<Placed> {
        let vault = self.vault(&vault, Verb::Work)?;
        self.check_kept(at)?;
        let mut paths = vec![at];
        match link {
            NewLink::Hard(target) => {
                self.check_kept(target)?;
                paths.push(target);
            }
            NewLink::Symbolic(target) => check_target(target)?,
        }
        self.change(vault, Cause::Link, &paths, |edit, head| {
            let mut at = self.place(head, at, Parents::Require)?;
            let source = match link {
                NewLink::Hard(target) => Some(self.real_path(head, target, Parents::Require)?),
                NewLink::Symbolic(_) => None,
            };
            if edit.get(&at)?.is_some_and(|entry| entry.is_dir()) {
                let name = match (&source, link) {
                    (Some(path), _) => path.file_name(),
                    (None, NewLink::Symbolic(target)) => last_name(target),
                    (None, NewLink::Hard(_)) => None,
                };
                at = at.join(name.unwrap_or_default())?;
            }
            if edit.get(&at)?.is_some() {
                return Err(Error::PathExists { path: at });
            }
            match (source, link) {
                (Some(source), _) => edit.link(&source, &at)?,
                (None, NewLink::Symbolic(target)) => edit.put(&at, new_symlink(target))?,
                (None, NewLink::Hard(_)) => {}
            }
            touch_parent(edit, &at)?;
            Ok(at)
        })
        .map(|(path, version)| Placed { path, version })
    }

    /// `/tmp` is no part of any tree, so bytes have to be read and written.
    fn copy_by_content(&self, vault: Select, from: &VaultPath, to: &VaultPath) -> Result<Placed> {
        let stat = self.stat(vault.clone(), from)?;
        if stat.entry.is_dir() {
            return Err(Error::Scratch { path: from.clone() });
        }
        let into = match self.stat(vault.clone(), to) {
            Ok(stat) => stat.entry.is_dir(),
            Err(error) if error.kind() == crate::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let target = match from.file_name() {
            Some(name) if into => to.join(name)?,
            _ => to.clone(),
        };
        let file = self.open_file(vault.clone(), from, None)?;
        let options = WriteOptions {
            mode: Some(crate::files::mode::ModeChange::Set(stat.entry.meta.mode)),
            ..WriteOptions::default()
        };
        let written = self.write(vault, &target, &mut file.reader(), &options)?;
        Ok(Placed {
            path: written.path,
            version: written.version,
        })
    }
}

/// A directory that is being copied into another.
struct Merge {
    from: VaultPath,
    to: VaultPath,
    left: std::vec::IntoIter<(Vec<u8>, Entry)>,
}

pub(super) fn copy_entry(
    edit: &mut Edit,
    from: VaultPath,
    source: &Entry,
    to: VaultPath,
) -> Result<()> {
    // Not recursion: trees may be deeper than a stack.
    let mut merges = Vec::from_iter(copy_or_merge(edit, from, source, to)?);
    while let Some(merge) = merges.last_mut() {
        let Some((name, entry)) = merge.left.next() else {
            merges.pop();
            continue;
        };
        let (from, to) = (merge.from.join(&name)?, merge.to.join(&name)?);
        merges.extend(copy_or_merge(edit, from, &entry, to)?);
    }
    Ok(())
}

/// Copies an entry, except for a directory where there is one: what is in it is still to be copied.
fn copy_or_merge(
    edit: &mut Edit,
    from: VaultPath,
    source: &Entry,
    to: VaultPath,
) -> Result<Option<Merge>> {
    let Some(there) = edit.get(&to)? else {
        edit.copy(&from, &to)?;
        return Ok(None);
    };
    match (source.is_dir(), there.is_dir()) {
        (true, true) => {
            let left = edit.list(&from)?.into_iter();
            Ok(Some(Merge { from, to, left }))
        }
        (true, false) => Err(avfs_vault::Error::NotADirectory { path: to }.into()),
        (false, true) => Err(is_a_directory(to)),
        (false, false) => replace(edit, source, &there, &to).map(|()| None),
    }
}

/// What replaces a hard-linked file replaces it under all its names.
fn replace(edit: &mut Edit, source: &Entry, there: &Entry, to: &VaultPath) -> Result<()> {
    let mut entry = source.clone();
    let names = match &mut entry.kind {
        Kind::File { link, .. } => {
            *link = there.link();
            edit.linked_names(to)?
        }
        _ => vec![to.clone()],
    };
    for name in names {
        edit.put(&name, entry.clone())?;
    }
    Ok(())
}

fn check_target(target: &[u8]) -> Result<()> {
    let reason = match target {
        [] => "it is empty",
        _ if target.contains(&0) => "it contains a NUL byte",
        _ if target.len() > TARGET_MAX => "it is longer than 4095 bytes",
        _ => return Ok(()),
    };
    Err(Error::Invalid {
        what: "link target",
        reason: reason.into(),
    })
}

fn last_name(target: &[u8]) -> Option<&[u8]> {
    target
        .split(|&byte| byte == b'/')
        .rfind(|name| !name.is_empty())
}

fn new_symlink(target: &[u8]) -> Entry {
    let mut entry = Entry::symlink(target, Time::now());
    let meta = new_meta(0o777);
    (entry.meta.uid, entry.meta.gid) = (meta.uid, meta.gid);
    entry
}
