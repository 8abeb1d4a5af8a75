//! A change made through a live view: what differs between two roots is done, step by step, in the
//! directory that commands are working in, so that they see it at once and lose nothing by it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use avfs_vault::{Change, Content, Entry, Kind, LinkId, Piece, RootId, Trees, VaultPath};
use avfs_view::{NewMeta, Opening, Over, Owner, Scanner, ViewOp};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::{Error, Result};

/// Content up to this size is written in one piece.
const AT_ONCE: u64 = 16 << 20;

/// How a change is done where the two roots alone would not tell.
#[derive(Debug, Clone)]
pub(crate) enum EditHint {
    /// A name is moved: whoever has the file open goes on writing to it.
    Rename { from: VaultPath, to: VaultPath },
    /// Something is put at the end of a file, whoever else does the same.
    Append {
        path: VaultPath,
        content: Content,
        size: u64,
    },
    /// What was in the file before does not matter.
    Replace { path: VaultPath },
}

/// The next root of a vault, before anybody sees it.
pub(crate) struct Draft<T> {
    pub value: T,
    pub root: RootId,
    pub hint: Option<EditHint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied {
    All,
    /// A command changed the same thing meanwhile.
    Overtaken,
}

/// Writes to a live view.
pub(crate) struct ViewWriter<'a> {
    pub trees: &'a Trees,
    /// The process that does the steps.
    pub helper: &'a Scanner,
    pub top: BorrowedFd<'a>,
    /// Whom new things belong to, where that is not the writer.
    pub owner: Option<Owner>,
}

/// Why a step was not done.
enum Halt {
    Overtaken,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Failed(error)
    }
}

impl From<avfs_vault::Error> for Halt {
    fn from(error: avfs_vault::Error) -> Halt {
        Halt::Failed(error.into())
    }
}

impl From<avfs_view::Error> for Halt {
    fn from(error: avfs_view::Error) -> Halt {
        Halt::Failed(error.into())
    }
}

impl ViewWriter<'_> {
    /// Does in the view the changes that lead to `after`.
    pub fn apply(
        &self,
        changes: Vec<Change>,
        after: RootId,
        hint: Option<&EditHint>,
    ) -> Result<Applied> {
        match self.try_apply(changes, after, hint) {
            Ok(()) => Ok(Applied::All),
            Err(Halt::Overtaken) => Ok(Applied::Overtaken),
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    fn try_apply(
        &self,
        mut changes: Vec<Change>,
        after: RootId,
        hint: Option<&EditHint>,
    ) -> Result<(), Halt> {
        match hint {
            Some(EditHint::Rename { from, to }) if self.rename(from, to)? => {
                changes.retain(|it| !it.path.starts_with(from) && !it.path.starts_with(to));
            }
            Some(EditHint::Append {
                path,
                content,
                size,
            }) => {
                let opened = self.open(path, Opening::Append)?;
                self.fill(path, opened, *content, *size)?;
                changes.retain(|it| it.path != *path);
            }
            _ => {}
        }
        let replaced = match hint {
            Some(EditHint::Replace { path }) => Some(path),
            _ => None,
        };
        self.remove(&changes)?;
        let mut links = Links::new(&changes);
        for change in &changes {
            self.put(change, after, replaced, &mut links)?;
        }
        // What is done in a directory moves its time, so directories come last, and from below.
        for change in changes.iter().rev() {
            if let Some(entry) = change.after.as_ref().filter(|entry| entry.is_dir()) {
                self.set_meta(&change.path, change.before.as_ref(), entry)?;
            }
        }
        Ok(())
    }

    /// Whether the name could be moved as such; an overlay without root moves no stored directory.
    fn rename(&self, from: &VaultPath, to: &VaultPath) -> Result<bool, Halt> {
        let op = ViewOp::Rename {
            from: beneath(from),
            to: beneath(to),
            over: Over::Existing,
        };
        match self.helper.apply(self.top, op, self.owner)? {
            Ok(_) => Ok(true),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::XDEV) => Ok(false),
            Err(error) => Err(halt(from, error)),
        }
    }

    fn remove(&self, changes: &[Change]) -> Result<(), Halt> {
        let mut gone: Option<&VaultPath> = None;
        for change in changes {
            let replaced = match (&change.before, &change.after) {
                (Some(before), Some(after)) => !same_kind(before, after),
                (before, after) => before.is_some() && after.is_none(),
            };
            if !replaced || gone.is_some_and(|above| change.path.starts_with(above)) {
                continue;
            }
            let path = beneath(&change.path);
            match self
                .helper
                .apply(self.top, ViewOp::Remove { path }, self.owner)?
            {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(halt(&change.path, error));
                }
                _ => gone = Some(&change.path),
            }
        }
        Ok(())
    }

    fn put(
        &self,
        change: &Change,
        after: RootId,
        replaced: Option<&VaultPath>,
        links: &mut Links,
    ) -> Result<(), Halt> {
        let Some(entry) = &change.after else {
            return Ok(());
        };
        let path = &change.path;
        let before = change.before.as_ref();
        let there = before.filter(|before| same_kind(before, entry));
        match (&entry.kind, there) {
            (Kind::Directory { .. }, Some(_)) => Ok(()),
            (Kind::Directory { .. }, None) => {
                let path = beneath(path);
                self.step(&change.path, ViewOp::Directory { path })
                    .map(drop)
            }
            (Kind::File { content, size, .. }, Some(old)) => {
                let how = match replaced {
                    Some(replaced) if replaced == path => Opening::Empty,
                    _ => unchanged_since(old),
                };
                let keeps = matches!(&old.kind, Kind::File { content: old, .. } if old == content);
                if !keeps {
                    self.rewrite(path, entry, how, (*content, *size))?;
                }
                self.set_meta(path, before, entry)
            }
            (Kind::File { content, size, .. }, None) => {
                match links.other_name(self.trees, after, path, entry)? {
                    Some(other) => {
                        let (from, to) = (beneath(&other), beneath(path));
                        self.step(path, ViewOp::Link { from, to }).map(drop)
                    }
                    None => self.place(path, entry, (*content, *size), Over::Nothing),
                }
            }
            (Kind::Symlink { .. } | Kind::Fifo, Some(_)) => self.set_meta(path, before, entry),
            (Kind::Symlink { target }, None) => {
                let (path, target) = (beneath(path), target.clone());
                self.step(&change.path, ViewOp::Symlink { path, target })?;
                self.set_meta(&change.path, None, entry)
            }
            (Kind::Fifo, None) => {
                let path = beneath(path);
                self.step(&change.path, ViewOp::Fifo { path })?;
                self.set_meta(&change.path, None, entry)
            }
        }
    }

    /// Gives a file that stays the same file new content.
    fn rewrite(
        &self,
        path: &VaultPath,
        entry: &Entry,
        how: Opening,
        (content, size): (Content, u64),
    ) -> Result<(), Halt> {
        let op = ViewOp::Open {
            path: beneath(path),
            how,
        };
        match self.helper.apply(self.top, op, self.owner)? {
            Ok(opened) => self.fill(path, opened.ok_or_else(no_file)?, content, size),
            // A program that runs cannot be written to, but its name can get another file.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::TXTBSY) => {
                self.place(path, entry, (content, size), Over::Existing)
            }
            Err(error) => Err(halt(path, error)),
        }
    }

    /// Puts a new file in its place, where it appears complete.
    fn place(
        &self,
        path: &VaultPath,
        entry: &Entry,
        (content, size): (Content, u64),
        over: Over,
    ) -> Result<(), Halt> {
        let file = File::from(self.open(path, Opening::Unnamed)?);
        self.trees.write_to(&file, content, size)?;
        let (meta, place) = (new_meta(None, entry), beneath(path));
        let named = self
            .helper
            .name_file(self.top, file.as_fd(), place, meta, over)?;
        named.map_err(|error| halt(path, error))
    }

    fn fill(
        &self,
        path: &VaultPath,
        opened: OwnedFd,
        content: Content,
        size: u64,
    ) -> Result<(), Halt> {
        let failed = || Error::io(path.to_string());
        let mut file = File::from(opened);
        if size > AT_ONCE {
            for piece in self.trees.pieces(content, size) {
                match piece? {
                    Piece::Data(bytes) => file.write_all(&bytes),
                    Piece::Hole(length) => lengthen(&file, length),
                }
                .map_err(failed())?;
            }
            return Ok(());
        }
        // In one piece, so that nothing a command appends comes to stand in the middle.
        let bytes = self.trees.read(content, 0, size as usize)?;
        file.write_all(&bytes).map_err(failed())?;
        Ok(())
    }

    fn set_meta(
        &self,
        path: &VaultPath,
        before: Option<&Entry>,
        entry: &Entry,
    ) -> Result<(), Halt> {
        let meta = new_meta(before, entry);
        if meta == NewMeta::default() {
            return Ok(());
        }
        let op = ViewOp::Meta {
            path: beneath(path),
            meta,
        };
        self.step(path, op).map(drop)
    }

    fn open(&self, path: &VaultPath, how: Opening) -> Result<OwnedFd, Halt> {
        let op = ViewOp::Open {
            path: beneath(path),
            how,
        };
        Ok(self.step(path, op)?.ok_or_else(no_file)?)
    }

    fn step(&self, path: &VaultPath, op: ViewOp) -> Result<Option<OwnedFd>, Halt> {
        let done = self.helper.apply(self.top, op, self.owner)?;
        done.map_err(|error| halt(path, error))
    }
}

/// Puts a hole behind what is in a file now. Allocating its last byte never makes a file shorter and
/// writes over nothing, also when a command appends meanwhile.
fn lengthen(file: &File, length: u64) -> io::Result<()> {
    let end = file.metadata()?.len();
    let last = end.checked_add(length).ok_or(io::ErrorKind::FileTooLarge)? - 1;
    Ok(rustix::fs::fallocate(
        file,
        FallocateFlags::empty(),
        last,
        1,
    )?)
}

/// What must be said about a file for it to be like `entry`.
fn new_meta(before: Option<&Entry>, entry: &Entry) -> NewMeta {
    let (old, new) = (before.map(|entry| &entry.meta), &entry.meta);
    let xattrs = match old {
        Some(old) => old.xattrs != new.xattrs,
        None => !new.xattrs.is_empty(),
    };
    NewMeta {
        mode: old
            .is_none_or(|old| old.mode != new.mode)
            .then_some(new.mode),
        mtime: old
            .is_none_or(|old| old.mtime != new.mtime)
            .then_some((new.mtime.secs, new.mtime.nanos)),
        xattrs: xattrs.then(|| new.xattrs.clone()),
    }
}

fn no_file() -> Error {
    avfs_view::Error::BadAnswer("a descriptor is missing").into()
}

/// Names that are missing, or there, or something else than they were, are a command's doing.
fn halt(path: &VaultPath, error: io::Error) -> Halt {
    match Errno::from_io_error(&error) {
        Some(
            Errno::NOENT
            | Errno::EXIST
            | Errno::NOTDIR
            | Errno::ISDIR
            | Errno::LOOP
            | Errno::XDEV
            | Errno::STALE
            | Errno::NOTEMPTY,
        ) => Halt::Overtaken,
        _ => Halt::Failed(Error::io(path.to_string())(error)),
    }
}

fn unchanged_since(entry: &Entry) -> Opening {
    let Kind::File { size, .. } = entry.kind else {
        return Opening::Empty;
    };
    let mtime = entry.meta.mtime;
    Opening::EmptyIf {
        size,
        mtime: (mtime.secs, mtime.nanos),
    }
}

fn beneath(path: &VaultPath) -> Vec<u8> {
    path.as_bytes()[1..].to_vec()
}

/// Whether the one becomes the other by new content and attributes.
fn same_kind(before: &Entry, after: &Entry) -> bool {
    match (&before.kind, &after.kind) {
        (Kind::Symlink { target: old }, Kind::Symlink { target: new }) => old == new,
        (old, new) => std::mem::discriminant(old) == std::mem::discriminant(new),
    }
}

/// The hard-linked files of a change: which of their names the view has by now.
struct Links {
    /// Paths that the view does not have before the change.
    created: HashSet<VaultPath>,
    made: HashMap<LinkId, VaultPath>,
}

impl Links {
    fn new(changes: &[Change]) -> Links {
        let created = changes.iter().filter(|change| change.before.is_none());
        Links {
            created: created.map(|change| change.path.clone()).collect(),
            made: HashMap::new(),
        }
    }

    /// Another name of the file that is to appear at `path`, if it has one already.
    fn other_name(
        &mut self,
        trees: &Trees,
        after: RootId,
        path: &VaultPath,
        entry: &Entry,
    ) -> Result<Option<VaultPath>> {
        let Some(link) = entry.link() else {
            return Ok(None);
        };
        if let Some(made) = self.made.get(&link) {
            return Ok(Some(made.clone()));
        }
        let names = trees.edit(after)?.linked_names(path)?;
        self.made.insert(link, path.clone());
        Ok(names
            .into_iter()
            .find(|name| name != path && !self.created.contains(name)))
    }
}
