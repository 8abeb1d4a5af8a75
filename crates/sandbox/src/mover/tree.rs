//! Moves a directory tree by copying it, so that one of its two names always has all of it.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dev, FileType, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, SeekFrom, Stat,
    Timespec, Timestamps, XattrFlags, chmod, copy_file_range, fchmod, fgetxattr, flistxattr,
    fsetxattr, fstat, ftruncate, futimens, linkat, mkdirat, mknodat, openat, openat2, readlinkat,
    renameat, renameat_with, seek, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::{Errno, pread, pwrite};

use super::caller::{Names, RenameEnd};
use super::staging::Workplace;
use super::{LOOKS, Left, READS};
use crate::confine;

/// The deepest tree: deeper than any path can name.
pub(super) const DEPTH: usize = 2100;
/// How much is copied between two checks whether the call still waits.
const CHUNK: usize = 8 * 1024 * 1024;
/// How often a directory is emptied again if other processes keep adding names.
pub(super) const ROUNDS: usize = 16;
/// How many names of a directory are removed before it is read again.
const BATCH: usize = 10_000;
/// How often that is done: other processes may add names as fast as they are removed.
const BATCHES: usize = 500;
/// The most names of a directory, and the most hard-linked files of a tree, that are copied: they are held in memory.
const MOST_NAMES: usize = 500_000;
/// The name of the copied tree in the work directory.
const COPY: &CStr = c"copy";

/// Moves a directory, as renameat2(2) would, while `wanted` says so.
pub(super) fn relocate(
    names: &Names,
    flags: RenameFlags,
    work: &Workplace,
    wanted: &dyn Fn() -> bool,
) -> Result<(), Errno> {
    let Names { from, to } = names;
    // Cheaper to find out now; the final rename checks it for certain.
    match is_empty(&to.dir, &to.name) {
        Ok(false) => return Err(Errno::NOTEMPTY),
        Ok(true) | Err(Errno::NOENT | Errno::ACCESS) => {}
        Err(errno) => return Err(errno),
    }
    let since = work.began()?;
    mkdirat(&work.top, COPY, Mode::RWXU)?;
    let new = open_child(work.top.as_fd(), COPY, OFlags::DIRECTORY)?;
    with_all_readable(|| copy(from, new.as_fd(), wanted))?;
    renameat_with(&work.top, COPY, &to.dir, &to.name, flags)?;
    let rest = Some(Rest {
        new: new.as_fd(),
        since,
    });
    remove(from.dir.as_fd(), &from.name, rest)
}

/// The result of a move whose worker was killed: one of the two names has the whole tree at every moment.
pub(super) fn what_is_left(names: &Names, work: &Workplace) -> Left {
    let is_there = |dir: BorrowedFd<'_>, name: &CStr| {
        statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|_| true)
    };
    let Names { from, to } = names;
    let copy = is_there(work.top.as_fd(), COPY);
    let (old, new) = (
        is_there(from.dir.as_fd(), &from.name),
        is_there(to.dir.as_fd(), &to.name),
    );
    match (copy, old, new) {
        (Err(Errno::NOENT), Err(Errno::NOENT), Ok(_)) => Left::Done,
        _ => Left::Undone,
    }
}

/// Owners may move what they cannot read. `copy` uses single names only, so no path is followed with this right.
pub(super) fn with_all_readable(copy: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    confine::use_of(READS, LOOKS | READS)?;
    let copied = copy();
    confine::use_of(LOOKS, LOOKS | READS)?;
    copied
}

/// Copies the content and the metadata of the directory `from` to the empty directory `top`.
pub(super) fn copy(
    from: &RenameEnd,
    top: BorrowedFd<'_>,
    wanted: &dyn Fn() -> bool,
) -> Result<(), Errno> {
    let source = open_child(from.dir.as_fd(), &from.name, OFlags::DIRECTORY)?;
    Copy::new(top, wanted).whole(source.as_fd())
}

/// A running copy of one tree.
struct Copy<'a> {
    top: BorrowedFd<'a>,
    wanted: &'a dyn Fn() -> bool,
    /// The path below the top.
    path: Vec<u8>,
    depth: usize,
    /// The first copy of each hard-linked file.
    linked: HashMap<(Dev, u64), Vec<u8>>,
}

impl<'a> Copy<'a> {
    fn new(top: BorrowedFd<'a>, wanted: &'a dyn Fn() -> bool) -> Copy<'a> {
        Copy {
            top,
            wanted,
            path: Vec::new(),
            depth: 0,
            linked: HashMap::new(),
        }
    }

    fn whole(mut self, source: BorrowedFd<'_>) -> Result<(), Errno> {
        self.directory(source, self.top)
    }

    /// Copies the content of a directory, then its metadata.
    fn directory(&mut self, source: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.depth == DEPTH {
            return Err(Errno::NAMETOOLONG);
        }
        self.depth += 1;
        let length = self.path.len();
        let names = names(source, MOST_NAMES)?;
        if names.len() == MOST_NAMES {
            // The caller can still copy it itself.
            return Err(Errno::XDEV);
        }
        for name in names {
            if !(self.wanted)() {
                return Err(Errno::INTR);
            }
            if length > 0 {
                self.path.push(b'/');
            }
            self.path.extend(name.to_bytes());
            self.entry(source, target, &name)?;
            self.path.truncate(length);
        }
        self.depth -= 1;
        describe(source, target)
    }

    fn entry(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Errno> {
        let found = match statat(source, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Another process has removed it since the directory was read.
            Err(Errno::NOENT) => return Ok(()),
            found => found?,
        };
        let kind = FileType::from_raw_mode(found.st_mode);
        match kind {
            FileType::Directory => {
                mkdirat(target, name, Mode::RWXU)?;
                let source = open_child(source, name, OFlags::DIRECTORY)?;
                let target = open_child(target, name, OFlags::DIRECTORY)?;
                return self.directory(source.as_fd(), target.as_fd());
            }
            FileType::RegularFile => return self.file(source, target, name),
            FileType::Symlink => {
                let goal = readlinkat(source, name, Vec::new())?;
                symlinkat(goal, target, name)?;
            }
            FileType::Fifo | FileType::Socket => {
                mknodat(target, name, kind, mode(&found), 0)?;
            }
            _ => return Err(Errno::PERM),
        }
        utimensat(target, name, &times(&found), AtFlags::SYMLINK_NOFOLLOW)
    }

    fn file(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Errno> {
        let source = open_child(source, name, OFlags::NONBLOCK)?;
        let found = fstat(&source)?;
        if !FileType::from_raw_mode(found.st_mode).is_file() {
            return Err(Errno::BUSY);
        }
        let key = (found.st_dev, found.st_ino);
        if found.st_nlink > 1 {
            if let Some(first) = self.linked.get(&key)
                && linkat(self.top, first.as_slice(), target, name, AtFlags::empty()).is_ok()
            {
                return Ok(());
            }
            if self.linked.len() == MOST_NAMES {
                return Err(Errno::XDEV);
            }
            self.linked.insert(key, self.path.clone());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let target = openat(target, name, flags, Mode::RUSR | Mode::WUSR)?;
        self.content(source.as_fd(), target.as_fd(), size(&found))?;
        describe(source.as_fd(), target.as_fd())
    }

    /// Copies the bytes of a file, without its holes.
    fn content(
        &self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        size: u64,
    ) -> Result<(), Errno> {
        let mut at = 0;
        while at < size {
            let data = match seek(source, SeekFrom::Data(at)) {
                // Only a hole up to the end.
                Err(Errno::NXIO) => break,
                // The file system has no SEEK_DATA.
                Err(_) => at,
                Ok(data) => data,
            };
            let end = seek(source, SeekFrom::Hole(data)).unwrap_or(size);
            at = data;
            while at < end {
                let length = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
                match piece(source, target, at, length)? {
                    // It was truncated meanwhile.
                    0 => return Ok(()),
                    copied => at += copied as u64,
                }
                if !(self.wanted)() {
                    return Err(Errno::INTR);
                }
            }
        }
        ftruncate(target, size.max(at))
    }
}

/// Copies up to `length` bytes at `at`, with copy_file_range where possible; returns how many.
fn piece(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    at: u64,
    length: usize,
) -> Result<usize, Errno> {
    let (mut read_at, mut write_at) = (at, at);
    match copy_file_range(
        source,
        Some(&mut read_at),
        target,
        Some(&mut write_at),
        length,
    ) {
        Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => {}
        done => return done,
    }
    let mut buffer = vec![0; length.min(256 * 1024)];
    let read = pread(source, &mut buffer, at)?;
    let mut rest = &buffer[..read];
    while !rest.is_empty() {
        let written = pwrite(target, rest, at + (read - rest.len()) as u64)?;
        rest = &rest[written..];
    }
    Ok(read)
}

/// Gives a copy the attributes, mode and times of its original.
fn describe(source: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    for name in attributes(source)? {
        let mut value = vec![0; 64 * 1024];
        let length = match fgetxattr(source, &name, &mut value[..]) {
            Err(Errno::NODATA) => continue,
            length => length?,
        };
        fsetxattr(target, &name, &value[..length], XattrFlags::empty())?;
    }
    let found = fstat(source)?;
    fchmod(target, mode(&found))?;
    futimens(target, &times(&found))
}

/// The extended attributes that a user may set.
fn attributes(file: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut list = vec![0; 64 * 1024];
    let length = match flistxattr(file, &mut list[..]) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
        length => length?,
    };
    let names = list[..length].split(|byte| *byte == 0);
    let kept =
        names.filter(|name| name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_"));
    kept.map(|name| CString::new(name).map_err(|_| Errno::INVAL))
        .collect()
}

/// Where names that were added to an old tree since its copy began are moved.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a> {
    pub new: BorrowedFd<'a>,
    pub since: (i64, u64),
}

/// Removes the directory `name` and its content, except for added names, which are moved.
pub(super) fn remove(
    parent: BorrowedFd<'_>,
    name: &CStr,
    rest: Option<Rest<'_>>,
) -> Result<(), Errno> {
    let end = || unlinkat(parent, name, AtFlags::REMOVEDIR);
    empty(parent, name, rest, DEPTH, &end)
}

/// Empties the directory `name`, then calls the function that needs it empty.
pub(super) fn empty(
    parent: BorrowedFd<'_>,
    name: &CStr,
    rest: Option<Rest<'_>>,
    depth: usize,
    then: &dyn Fn() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let depth = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
    let dir = open_for_removal(parent, name)?;
    let (mut rounds, mut batches) = (0, 0);
    while rounds < ROUNDS && batches < BATCHES {
        let names = names(dir.as_fd(), BATCH)?;
        for name in &names {
            match remove_entry(dir.as_fd(), name, rest, depth) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        if names.len() == BATCH {
            batches += 1;
            continue;
        }
        match then() {
            Err(Errno::NOTEMPTY | Errno::EXIST) => rounds += 1,
            done => return done,
        }
    }
    Err(Errno::NOTEMPTY)
}

fn remove_entry(
    dir: BorrowedFd<'_>,
    name: &CStr,
    rest: Option<Rest<'_>>,
    depth: usize,
) -> Result<(), Errno> {
    let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_directory = FileType::from_raw_mode(found.st_mode).is_dir();
    let end = || unlinkat(dir, name, AtFlags::REMOVEDIR);
    let Some(Rest { new, since }) = rest else {
        if is_directory {
            return empty(dir, name, None, depth, &end);
        }
        return unlinkat(dir, name, AtFlags::empty());
    };
    if is_directory {
        return match open_child(new, name, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(new) => {
                let new = new.as_fd();
                empty(dir, name, Some(Rest { new, since }), depth, &end)
            }
            Err(_) => renameat(dir, name, new, name),
        };
    }
    let copied = !matches!(
        statat(new, name, AtFlags::SYMLINK_NOFOLLOW),
        Err(Errno::NOENT)
    );
    let changed = (found.st_mtime, found.st_mtime_nsec) >= since;
    if copied && !changed {
        unlinkat(dir, name, AtFlags::empty())
    } else {
        renameat(dir, name, new, name)
    }
}

/// Hard-links into `target` what it lacks of `source`.
///
/// Both are copies of each other, except for what was removed from or added to `target`.
pub(super) fn fill_in(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    depth: usize,
) -> Result<(), Errno> {
    let depth = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
    for name in names(source, MOST_NAMES)? {
        let found = statat(source, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if !FileType::from_raw_mode(found.st_mode).is_dir() {
            match linkat(source, &name, target, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::EXIST) => continue,
                Err(errno) => return Err(errno),
            }
        }
        match mkdirat(target, &name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let source = open_child(source, &name, OFlags::DIRECTORY)?;
        let target = open_for_removal(target, &name)?;
        fill_in(source.as_fd(), target.as_fd(), depth)?;
    }
    describe(source, target)
}

/// Opens a directory, making it writable for its owner first if necessary.
pub(super) fn open_for_removal(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let dir = open_child(parent, name, OFlags::PATH | OFlags::DIRECTORY)?;
    let mode = mode(&fstat(&dir)?);
    if !mode.contains(Mode::RWXU) {
        // An O_PATH descriptor can be changed only by its name in /proc/self/fd.
        chmod(
            format!("/proc/self/fd/{}", dir.as_raw_fd()),
            mode | Mode::RWXU,
        )?;
    }
    open_child(parent, name, OFlags::DIRECTORY)
}

/// Opens a name in a directory, without following a link or crossing a mount.
pub(super) fn open_child(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match openat2(dir, name, flags, Mode::empty(), resolve) {
        Err(Errno::XDEV) => Err(Errno::BUSY),
        opened => opened,
    }
}

/// Whether the directory `name` is empty.
fn is_empty(dir: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
    let dir = open_child(dir.as_fd(), name, OFlags::DIRECTORY)?;
    Ok(names(dir.as_fd(), 1)?.is_empty())
}

/// The first `most` names of a directory.
fn names(dir: BorrowedFd<'_>, most: usize) -> Result<Vec<CString>, Errno> {
    seek(dir, SeekFrom::Start(0))?;
    let mut buffer = vec![MaybeUninit::uninit(); 32 * 1024];
    let mut entries = RawDir::new(dir, &mut buffer);
    let mut names = Vec::new();
    while names.len() < most
        && let Some(entry) = entries.next()
    {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

fn mode(found: &Stat) -> Mode {
    Mode::from_raw_mode(found.st_mode & 0o7777)
}

fn size(found: &Stat) -> u64 {
    found.st_size.cast_unsigned()
}

fn times(found: &Stat) -> Timestamps {
    let time = |seconds, nanos: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: nanos.cast_signed(),
    };
    Timestamps {
        last_access: time(found.st_atime, found.st_atime_nsec),
        last_modification: time(found.st_mtime, found.st_mtime_nsec),
    }
}
