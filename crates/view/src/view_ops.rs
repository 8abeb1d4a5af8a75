//! Operations on a view, done by the scanner process, which may override file modes.
//!
//! Paths are resolved beneath the view's top, without following symbolic links or crossing mounts: a running command may
//! replace anything at any moment, and must not redirect a change.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use avfs_vault::XattrMap;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Timespec,
    Timestamps, Uid, XattrFlags, chmodat, chownat, fchmod, fchown, fgetxattr, flistxattr,
    fremovexattr, fsetxattr, fstat, ftruncate, futimens, linkat, mkdirat, mknodat, openat, openat2,
    readlinkat, renameat_with, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{Owner, remove};

/// How often a directory is emptied again if a command keeps adding names.
const REMOVALS: usize = 20;

/// One operation. Paths are relative to the view's top, without a leading `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewOp {
    /// Opens a file for writing; returns the descriptor.
    Open {
        path: Vec<u8>,
        how: Opening,
    },
    Directory {
        path: Vec<u8>,
    },
    Symlink {
        path: Vec<u8>,
        target: Vec<u8>,
    },
    Fifo {
        path: Vec<u8>,
    },
    /// Makes a hard link.
    Link {
        from: Vec<u8>,
        to: Vec<u8>,
    },
    Rename {
        from: Vec<u8>,
        to: Vec<u8>,
        over: Over,
    },
    /// Removes a path and everything in it.
    Remove {
        path: Vec<u8>,
    },
    Meta {
        path: Vec<u8>,
        meta: NewMeta,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Opening {
    /// An O_TMPFILE file in the directory of its future name; [`Scanner::name_file`](crate::Scanner::name_file) links it
    /// there when it is complete.
    Unnamed,
    /// Truncated, whatever its content.
    Empty,
    /// Truncated, if it is unchanged; else the error is `ESTALE`.
    EmptyIf { size: u64, mtime: (i64, u32) },
    /// Opened with O_APPEND.
    Append,
}

/// What a rename may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Over {
    Nothing,
    Existing,
}

/// Missing fields are not changed. Of symbolic links only the time can be set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMeta {
    pub mode: Option<u32>,
    pub mtime: Option<(i64, u32)>,
    /// All `user.` attributes afterwards; others are removed.
    pub xattrs: Option<XattrMap>,
}

/// Does the operation. New files are chowned to `owner`, if that is not this process.
pub(crate) fn apply(
    top: BorrowedFd<'_>,
    op: &ViewOp,
    owner: Option<Owner>,
) -> io::Result<Option<OwnedFd>> {
    match op {
        ViewOp::Open { path, how } => return Ok(Some(open(top, path, *how, owner)?)),
        ViewOp::Directory { path } => {
            let (parent, name) = parent(top, path)?;
            mkdirat(&parent, name, Mode::from_raw_mode(0o755))?;
            give(&parent, name, owner)?;
        }
        ViewOp::Symlink { path, target } => {
            let (parent, name) = parent(top, path)?;
            symlinkat(target.as_slice(), &parent, name)?;
            give(&parent, name, owner)?;
        }
        ViewOp::Fifo { path } => {
            let (parent, name) = parent(top, path)?;
            mknodat(&parent, name, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
            give(&parent, name, owner)?;
        }
        ViewOp::Link { from, to } => {
            let ((old, from), (new, to)) = (parent(top, from)?, parent(top, to)?);
            linkat(&old, from, &new, to, AtFlags::empty())?;
        }
        ViewOp::Rename { from, to, over } => {
            let ((old, from), (new, to)) = (parent(top, from)?, parent(top, to)?);
            let flags = match over {
                Over::Nothing => RenameFlags::NOREPLACE,
                Over::Existing => RenameFlags::empty(),
            };
            renameat_with(&old, from, &new, to, flags)?;
        }
        ViewOp::Remove { path } => remove(top, path)?,
        ViewOp::Meta { path, meta } => set_meta(top, path, meta)?,
    }
    Ok(None)
}

fn open(
    top: BorrowedFd<'_>,
    path: &[u8],
    how: Opening,
    owner: Option<Owner>,
) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let (parent, name) = parent(top, path)?;
    if how == Opening::Unnamed {
        return unnamed(&parent, owner);
    }
    // O_APPEND also for a truncated file: what a command appends meanwhile must not be overwritten.
    let flags = flags | OFlags::APPEND;
    let opened = openat2(&parent, name, flags, Mode::empty(), BENEATH)?;
    let stat = fstat(&opened)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::STALE.into());
    }
    match how {
        Opening::EmptyIf { size, mtime } if stamp(&stat) != (size, mtime) => {
            Err(Errno::STALE.into())
        }
        Opening::EmptyIf { .. } | Opening::Empty => {
            ftruncate(&opened, 0)?;
            Ok(opened)
        }
        Opening::Unnamed | Opening::Append => Ok(opened),
    }
}

fn unnamed(parent: &OwnedFd, owner: Option<Owner>) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let opened = match openat(parent, c".", flags | OFlags::TMPFILE, mode) {
        // Overlayfs has O_TMPFILE since Linux 6.1. Before, a random name is used.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let flags = flags | OFlags::CREATE | OFlags::EXCL;
            openat(parent, random_name()?, flags, mode)?
        }
        opened => opened?,
    };
    if let Some(owner) = owner {
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        fchown(&opened, Some(uid), Some(gid))?;
    }
    Ok(opened)
}

/// Sets the attributes of a file opened as [unnamed](Opening::Unnamed), then links it to its name.
pub(crate) fn name_file(
    top: BorrowedFd<'_>,
    file: &OwnedFd,
    path: &[u8],
    meta: &NewMeta,
    over: Over,
) -> io::Result<()> {
    let (parent, name) = parent(top, path)?;
    describe(file, meta)?;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let appear = |name: &[u8]| linkat(CWD, link.as_str(), &parent, name, AtFlags::SYMLINK_FOLLOW);
    let aside = if fstat(file)?.st_nlink > 0 {
        let shown = readlinkat(CWD, link.as_str(), Vec::new())?.into_bytes();
        let start = shown.iter().rposition(|byte| *byte == b'/');
        shown[start.map_or(0, |at| at + 1)..].to_vec()
    } else if over == Over::Nothing {
        return Ok(appear(name)?);
    } else {
        let aside = random_name()?.into_bytes();
        appear(&aside)?;
        aside
    };
    let flags = match over {
        Over::Nothing => RenameFlags::NOREPLACE,
        Over::Existing => RenameFlags::empty(),
    };
    let named = renameat_with(&parent, aside.as_slice(), &parent, name, flags);
    if named.is_err() {
        let _ = unlinkat(&parent, aside.as_slice(), AtFlags::empty());
    }
    Ok(named?)
}

/// A random name, which nobody can guess.
pub(crate) fn random_name() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn stamp(stat: &Stat) -> (u64, (i64, u32)) {
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    (size, (stat.st_mtime, stat.st_mtime_nsec as u32))
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// The directory of `path`, and the last name; for the top, itself and an empty name.
fn parent<'a>(top: BorrowedFd<'_>, path: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
    let (above, name) = match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&b"."[..], path),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((openat2(top, above, flags, Mode::empty(), BENEATH)?, name))
}

fn give(parent: &OwnedFd, name: &[u8], owner: Option<Owner>) -> io::Result<()> {
    let Some(owner) = owner else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    Ok(chownat(parent, name, Some(uid), Some(gid), flags)?)
}

fn remove(top: BorrowedFd<'_>, path: &[u8]) -> io::Result<()> {
    let (parent, name) = parent(top, path)?;
    match unlinkat(&parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        done => return Ok(done?),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..REMOVALS {
        let directory = openat2(&parent, name, flags, Mode::empty(), BENEATH)?;
        empty(directory.as_fd())?;
        match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) => {}
            done => return Ok(done?),
        }
    }
    Err(Errno::NOTEMPTY.into())
}

/// Unlike an unused layer, a view is emptied in place: no name in it may be renamed. Descends into one directory at a time
/// and returns by `..`, so that no depth needs more than two descriptors.
fn empty(top: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut above = Vec::new();
    let mut at = openat2(top, c".", flags, Mode::empty(), BENEATH)?;
    loop {
        if let Some(inner) = first_in_the_way(at.as_fd())? {
            match openat2(&at, &inner, flags, Mode::empty(), BENEATH) {
                Ok(opened) => {
                    above.push(identity(&at)?);
                    at = opened;
                }
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
            continue;
        }
        let Some(expected) = above.pop() else {
            return Ok(());
        };
        at = openat(&at, c"..", flags, Mode::empty())?;
        // Another process moved it meanwhile; what is there now must not be removed.
        if identity(&at)? != expected {
            return Err(Errno::STALE.into());
        }
    }
}

/// Removes all entries of a directory but non-empty directories; returns one of these.
fn first_in_the_way(directory: BorrowedFd<'_>) -> io::Result<Option<CString>> {
    let mut full = None;
    remove::each_name_until(directory, |name, kind| {
        if kind != FileType::Directory {
            remove::gone(unlinkat(directory, name, AtFlags::empty()))?;
            return Ok(false);
        }
        match unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) => full = Some(name.to_owned()),
            done => remove::gone(done)?,
        }
        Ok(full.is_some())
    })?;
    Ok(full)
}

fn identity(directory: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn set_meta(top: BorrowedFd<'_>, path: &[u8], meta: &NewMeta) -> io::Result<()> {
    let (parent, name) = parent(top, path)?;
    let name = if name.is_empty() { &b"."[..] } else { name };
    let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Directory => {}
        kind => {
            if let (Some(mode), true) = (meta.mode, kind != FileType::Symlink) {
                chmodat(&parent, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
            }
            if let Some(mtime) = meta.mtime {
                utimensat(&parent, name, &times(mtime), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            return Ok(());
        }
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    describe(
        &openat2(&parent, name, flags, Mode::empty(), BENEATH)?,
        meta,
    )
}

fn describe(opened: &OwnedFd, meta: &NewMeta) -> io::Result<()> {
    if let Some(xattrs) = &meta.xattrs {
        set_xattrs(opened, xattrs)?;
    }
    if let Some(mode) = meta.mode {
        fchmod(opened, Mode::from_raw_mode(mode))?;
    }
    if let Some(mtime) = meta.mtime {
        futimens(opened, &times(mtime))?;
    }
    Ok(())
}

fn times((secs, nanos): (i64, u32)) -> Timestamps {
    let time = Timespec {
        tv_sec: secs,
        tv_nsec: nanos.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

fn set_xattrs(opened: &OwnedFd, wanted: &XattrMap) -> io::Result<()> {
    let mut names = vec![0u8; 65536];
    let length = match flistxattr(opened, names.as_mut_slice()) {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::NOSYS) => 0,
        Err(errno) => return Err(errno.into()),
    };
    let present = names[..length].split(|&byte| byte == 0);
    for name in present.filter(|name| name.starts_with(b"user.")) {
        if !wanted.contains_key(name) && !name.starts_with(b"user.overlay.") {
            fremovexattr(opened, name)?;
        }
    }
    for (name, value) in wanted {
        let mut there = vec![0u8; value.len() + 1];
        let same = fgetxattr(opened, name, there.as_mut_slice())
            .is_ok_and(|length| there[..length] == value[..]);
        if !same {
            fsetxattr(opened, name, value, XattrFlags::empty())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
