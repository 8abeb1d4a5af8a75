//! What an export makes beside its target, noted in a directory of the caller from before it is made until it is gone.
//!
//! An export that was killed leaves such a directory or file on the host. It is removed later only if a note names it and
//! its device and inode are the noted ones, so a user's file with a similar name stays.

use std::ffi::{CString, OsString};
use std::fs;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What every such name begins with.
pub(crate) const PREFIX: &str = ".avfs-export-";
/// The ending of a note.
const NOTE: &str = "aside";

/// The ending of a note or record that is being written.
pub(crate) const DRAFT: &str = "new";
/// The ending of a record whose steps are all done.
pub(crate) const DONE: &str = "done";

/// Which file or directory it is: device and inode.
pub(crate) type Inode = (u64, u64);

#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// The directory that it is in.
    parent: Vec<u8>,
    name: String,
    stage: Stage,
}

#[derive(Debug, Serialize, Deserialize)]
enum Stage {
    /// Not known to exist yet; if it does, it is empty.
    Intended,
    Made(Inode),
    /// Its content is being moved, name by name, into that directory.
    Merging(Inode, Vec<u8>),
}

impl Note {
    fn inode(&self) -> Option<Inode> {
        match self.stage {
            Stage::Intended => None,
            Stage::Made(inode) | Stage::Merging(inode, _) => Some(inode),
        }
    }

    fn parent(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.parent.clone()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsideKind {
    Directory,
    File,
}

/// A temporary directory or file beside a target; removed, with its note, when this is dropped. A lock on it keeps others
/// from removing it meanwhile.
pub(crate) struct Aside {
    pub path: PathBuf,
    pub name: String,
    pub fd: OwnedFd,
    parent: OwnedFd,
    note: PathBuf,
    inode: Inode,
    /// Whether it goes when this is dropped.
    is_own: bool,
}

impl Aside {
    /// Makes one in the directory `parent`, and notes it among `notes`.
    pub fn make(notes: &Path, parent: &Path, kind: AsideKind) -> Result<Aside> {
        let name = format!("{PREFIX}{}", avfs_store::fresh_uuid().simple());
        let path = parent.join(&name);
        let failed = || Error::host("write into", parent);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty()).map_err(failed())?;
        let note = notes.join(format!("{name}.{NOTE}"));
        let say = |stage| {
            let parent = parent.as_os_str().as_bytes().to_vec();
            let name = name.clone();
            write(
                &note,
                &Note {
                    parent,
                    name,
                    stage,
                },
            )
        };
        say(Stage::Intended)?;
        let made = make(&directory, &name, kind).and_then(|fd| {
            rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
            let inode = inode_of(&rustix::fs::fstat(&fd)?);
            Ok((fd, inode))
        });
        if made.is_err() {
            // It is empty if it exists. If it cannot be removed now, the next start removes it.
            let _ = remove_empty(&directory, &name).map(|()| fs::remove_file(&note));
        }
        let (fd, inode) = made.map_err(failed())?;
        let aside = Aside {
            path,
            fd,
            parent: directory,
            note: note.clone(),
            inode,
            name: name.clone(),
            is_own: true,
        };
        say(Stage::Made(inode))?;
        Ok(aside)
    }

    /// From here on a crash moves the rest of what is in it into `into`.
    pub fn merges_into(&self, into: &Path) -> Result<()> {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let note = Note {
            parent: bytes(self.path.parent().unwrap_or(Path::new("/"))),
            name: self.name.clone(),
            stage: Stage::Merging(self.inode, bytes(into)),
        };
        write(&self.note, &note)
    }

    /// From here on a record of `apply` says what is done with it, and removes the note.
    pub fn hand_over(mut self) {
        self.is_own = false;
    }
}

/// The note of what a record of the same name is about.
pub(crate) fn note_of(record: &Path) -> PathBuf {
    record.with_extension(NOTE)
}

impl Drop for Aside {
    fn drop(&mut self) {
        // After success it has been renamed away. If it cannot be removed now, the next start removes it.
        if self.is_own && clear(&self.parent, &self.name, self.inode).is_ok() {
            let _ = fs::remove_file(&self.note);
        }
    }
}

fn make(directory: &OwnedFd, name: &str, kind: AsideKind) -> Result<OwnedFd, Errno> {
    let private = Mode::RUSR | Mode::WUSR;
    let common = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match kind {
        AsideKind::Directory => {
            rustix::fs::mkdirat(directory, name, Mode::RWXU)?;
            let flags = common | OFlags::RDONLY | OFlags::DIRECTORY;
            rustix::fs::openat(directory, name, flags, Mode::empty())
        }
        AsideKind::File => {
            let flags = common | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let shared = Mode::RGRP | Mode::ROTH;
            rustix::fs::openat(directory, name, flags, private | shared)
        }
    }
}

fn write(file: &Path, note: &Note) -> Result<()> {
    let bytes = postcard::to_stdvec(note).expect("plain data in memory");
    write_whole(file, &bytes)
}

/// Writes a note or record whole or not at all, and so that it is there after a crash.
pub(crate) fn write_whole(file: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        let directory = file.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory)?;
        let temporary = file.with_extension(DRAFT);
        let mut out = fs::File::create(&temporary)?;
        out.write_all(bytes)?;
        out.sync_all()?;
        fs::rename(&temporary, file)?;
        fs::File::open(directory)?.sync_all()
    };
    write().map_err(Error::host("write", file))
}

/// Whether an export may have made something of this name. A note that names anything else is none of ours.
pub(crate) fn is_own_name(name: &str) -> bool {
    name.starts_with(PREFIX) && !name.contains(['/', '\0'])
}

pub(crate) fn is_note(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == NOTE)
}

/// Every note in the directory of notes.
fn notes(directory: &Path) -> Vec<(PathBuf, Note)> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let files = entries.flatten().map(|entry| entry.path());
    let notes = files.filter(|file| is_note(file));
    let read = |file: PathBuf| {
        let note: Note = postcard::from_bytes(&fs::read(&file).ok()?).ok()?;
        is_own_name(&note.name).then_some((file, note))
    };
    notes.filter_map(read).collect()
}

/// What exports have made on the host and not yet removed, or failed to.
pub(crate) struct Asides(Vec<Note>);

impl Asides {
    /// As noted at this moment.
    pub fn noted(directory: &Path) -> Asides {
        let notes = notes(directory).into_iter();
        Asides(notes.map(|(_, note)| note).collect())
    }

    /// `stat` is of what has the name, and younger than this.
    pub fn contain(&self, name: &[u8], stat: &Stat) -> bool {
        let is_it = |note: &Note| match note.inode() {
            Some(inode) => inode == inode_of(stat),
            // It may have been made since, and its note is not written again yet.
            None => note.name.as_bytes() == name,
        };
        self.0.iter().any(is_it)
    }
}

/// Finishes or undoes what exports of a process that died left on the host. What cannot be reached stays noted.
pub(crate) fn settle(directory: &Path, merge: &dyn Fn(&Path, &Path) -> Result<()>) {
    for (file, note) in notes(directory) {
        if fs::exists(file.with_extension("")).unwrap_or(true)
            || fs::exists(file.with_extension(DONE)).unwrap_or(true)
        {
            // A record of the same name could not be settled: the files that were replaced are still in it.
            continue;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let settled = match rustix::fs::open(note.parent(), flags, Mode::empty()) {
            Ok(parent) => settle_one(&parent, &note, merge),
            // Its parent directory is gone.
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(errno) => Err(errno),
        };
        if settled.is_ok() {
            let _ = fs::remove_file(file);
        }
    }
}

fn settle_one(
    parent: &OwnedFd,
    note: &Note,
    merge: &dyn Fn(&Path, &Path) -> Result<()>,
) -> Result<(), Errno> {
    let Some(inode) = note.inode() else {
        return remove_empty(parent, &note.name);
    };
    let Some(_held) = claim(parent, &note.name, inode)? else {
        return Ok(());
    };
    if let Stage::Merging(_, into) = &note.stage {
        let into = PathBuf::from(OsString::from_vec(into.clone()));
        // If the user put something in the way meanwhile, the rest is dropped.
        let _ = merge(&note.parent().join(&note.name), &into);
    }
    clear(parent, &note.name, inode)
}

/// Opens and locks what has the name, if it is the noted inode; fails while an export holds the lock.
fn claim(parent: &OwnedFd, name: &str, inode: Inode) -> Result<Option<OwnedFd>, Errno> {
    let Some(kind) = look(parent, name, inode)? else {
        return Ok(None);
    };
    let fd = match kind {
        FileType::Directory => open_writable(parent, name)?,
        _ => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::openat(parent, name, flags, Mode::empty())?
        }
    };
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
    Ok(Some(fd))
}

/// The file type of what has the name, if it is the noted inode.
fn look(parent: &OwnedFd, name: &str, inode: Inode) -> Result<Option<FileType>, Errno> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if inode_of(&stat) == inode => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

pub(crate) fn inode_of(stat: &Stat) -> Inode {
    (stat.st_dev, stat.st_ino)
}

/// The inode was not noted yet, so the export has written nothing into it.
fn remove_empty(parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    let stat = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        found => found?,
    };
    let removed = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR),
        FileType::RegularFile if stat.st_size == 0 => {
            rustix::fs::unlinkat(parent, name, AtFlags::empty())
        }
        _ => Ok(()),
    };
    match removed {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        removed => removed,
    }
}

/// Removes what has the name, with all its content, if it is the noted inode.
fn clear(parent: &OwnedFd, name: &str, inode: Inode) -> Result<(), Errno> {
    match look(parent, name, inode)? {
        Some(_) => remove(parent, CString::new(name).map_err(|_| Errno::INVAL)?),
        None => Ok(()),
    }
}

/// Removes what is there, with all that is in it, beneath `parent` and over no symlink.
pub(crate) fn remove(parent: &OwnedFd, name: CString) -> Result<(), Errno> {
    if unlink(parent, &name)? {
        return Ok(());
    }
    let mut stack = vec![Emptied::open(parent, name)?];
    while let Some(open) = stack.last_mut() {
        if let Some(name) = open.names.pop() {
            if !unlink(&open.fd, &name)? {
                let below = Emptied::open(&open.fd, name)?;
                stack.push(below);
            }
            continue;
        }
        let Some(Emptied { name, .. }) = stack.pop() else {
            break;
        };
        let above = stack.last().map_or(parent, |above| &above.fd);
        rustix::fs::unlinkat(above, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// A directory that is being emptied.
struct Emptied {
    fd: OwnedFd,
    name: CString,
    /// What is still in it.
    names: Vec<CString>,
}

impl Emptied {
    fn open(parent: &OwnedFd, name: CString) -> Result<Emptied, Errno> {
        let fd = open_writable(parent, &name)?;
        let names = names(&fd)?;
        Ok(Emptied { fd, name, names })
    }
}

/// Removes a name; false if it is a directory.
fn unlink(parent: &OwnedFd, name: &CString) -> Result<bool, Errno> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Opens a directory that an export made, whose mode may forbid its owner to read or write it.
fn open_writable(parent: &OwnedFd, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(parent, name, flags | OFlags::PATH, Mode::empty())?;
    // By descriptor: another may have taken the name meanwhile.
    let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
    let _ = rustix::fs::chmod(&itself, Mode::RWXU);
    rustix::fs::openat(&found, ".", flags | OFlags::RDONLY, Mode::empty())
}

fn names(directory: impl AsFd) -> Result<Vec<CString>, Errno> {
    let mut space = Vec::with_capacity(8 << 10);
    let mut entries = RawDir::new(directory, space.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aside_is_known_from_before_it_is_made_until_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (notes, place) = (dir.path().join("notes"), dir.path());
        let is_known = |name: &str| {
            let asides = Asides::noted(&notes);
            let stat = rustix::fs::lstat(place.join(name)).unwrap();
            asides.contain(name.as_bytes(), &stat)
        };
        let made = Aside::make(&notes, place, AsideKind::Directory).unwrap();
        assert!(is_known(&made.name));
        // The moment between the making and the second note.
        let (parent, name) = (place.as_os_str().as_bytes().to_vec(), made.name.clone());
        let stage = Stage::Intended;
        let intended = Note {
            parent,
            name,
            stage,
        };
        write(&made.note, &intended).unwrap();
        assert!(is_known(&made.name));
        let alike = format!("{PREFIX}mine");
        fs::create_dir(place.join(&alike)).unwrap();
        assert!(!is_known(&alike), "a name alone is not trusted");
        let (name, note) = (made.name.clone(), made.note.clone());
        drop(made);
        assert!(!place.join(&name).exists() && !note.exists());
    }
}
