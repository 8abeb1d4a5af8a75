//! What a layer's upper directory holds, read through descriptors only.
//!
//! Runs in the scanner process, which is single-threaded and may therefore change its directory.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Statx, StatxFlags, lgetxattr, llistxattr, openat,
    readlinkat, renameat, statx, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Deeper names cannot be vault paths; they are reported, and what is in them is not looked at.
const PATH_BYTES_MAX: usize = 4094;
/// Names that are worth learning ahead; each costs the kernel about a kilobyte.
const WARM_MAX: usize = 50_000;

/// How attributes begin that are listed without their values, because no tree holds them: in a view, they would be taken
/// for overlayfs's own.
pub(crate) const UNKEPT: &[u8] = b"user.overlay.";

/// One name in an upper directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpperEntry {
    /// Components from the upper directory down, joined by `/`; empty for the directory itself.
    pub path: Vec<u8>,
    pub kind: UpperKind,
    pub mode: u32,
    pub mtime: (i64, u32),
    pub ctime: (i64, u32),
    pub ino: u64,
    pub xattrs: Xattrs,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpperKind {
    /// The name is gone from what lies below.
    Whiteout,
    Directory {
        /// Nothing below shows through.
        opaque: bool,
        /// What shows through is not the directory of this name but this one.
        redirect: Option<Vec<u8>>,
    },
    File {
        size: u64,
        links: u32,
    },
    Symlink {
        target: Vec<u8>,
    },
    Fifo,
    Socket,
    Device,
}

/// Under which names overlayfs keeps its notes; under other names they are anybody's claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkNames {
    /// Mounted by root.
    Trusted,
    /// Mounted in a user namespace, with `userxattr`.
    User,
}

impl MarkNames {
    fn prefix(self) -> &'static [u8] {
        match self {
            MarkNames::Trusted => b"trusted.overlay.",
            MarkNames::User => b"user.overlay.",
        }
    }
}

/// Everything in `upper`, parents before children. Leaves the process's directory changed.
pub fn scan(upper: OwnedFd, marks: MarkNames) -> io::Result<Vec<UpperEntry>> {
    let mut entries = Vec::new();
    // The daemon passes a mere path, because it may not have the right to open it.
    let opened = openat(&upper, c".", DIRECTORY, Mode::empty())?;
    rustix::process::fchdir(&opened)?;
    entries.push(read_entry(c".", Vec::new(), marks)?);
    scan_directory(opened, &[], marks, &mut entries)?;
    Ok(entries)
}

fn scan_directory(
    directory: OwnedFd,
    path: &[u8],
    marks: MarkNames,
    entries: &mut Vec<UpperEntry>,
) -> io::Result<()> {
    let mut subdirectories = Vec::new();
    rustix::process::fchdir(&directory)?;
    for item in Dir::read_from(&directory)? {
        let item = item?;
        let name = item.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let child = joined(path, name.to_bytes());
        // A name that went away since it was listed is simply not there.
        match read_entry(name, child, marks) {
            Ok(entry) => {
                let is_directory = matches!(entry.kind, UpperKind::Directory { .. });
                if is_directory && entry.path.len() <= PATH_BYTES_MAX {
                    subdirectories.push((name.to_owned(), entry.path.clone()));
                }
                entries.push(entry);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    for (name, child) in subdirectories {
        match openat(&directory, &name, DIRECTORY, Mode::empty()) {
            Ok(opened) => scan_directory(opened, &child, marks, entries)?,
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn joined(parent: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(parent.len() + 1 + name.len());
    path.extend_from_slice(parent);
    if !parent.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// The entry `name` of the process's directory.
fn read_entry(name: &CStr, path: Vec<u8>, marks: MarkNames) -> io::Result<UpperEntry> {
    let stat = statx(
        CWD,
        name,
        AtFlags::SYMLINK_NOFOLLOW,
        StatxFlags::BASIC_STATS,
    )?;
    let file_type = FileType::from_raw_mode(u32::from(stat.stx_mode));
    let (xattrs, marks) = match file_type {
        FileType::RegularFile | FileType::Directory => read_xattrs(name, marks)?,
        _ => Default::default(),
    };
    Ok(UpperEntry {
        path,
        kind: kind_of(name, &stat, file_type, marks)?,
        mode: u32::from(stat.stx_mode) & 0o7777,
        mtime: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        ctime: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
        ino: stat.stx_ino,
        xattrs,
    })
}

fn kind_of(name: &CStr, stat: &Statx, kind: FileType, marks: Marks) -> io::Result<UpperKind> {
    Ok(match kind {
        FileType::Directory => UpperKind::Directory {
            opaque: marks.opaque,
            redirect: marks.redirect,
        },
        FileType::RegularFile => UpperKind::File {
            size: stat.stx_size,
            links: stat.stx_nlink,
        },
        FileType::Symlink => UpperKind::Symlink {
            target: readlinkat(CWD, name, Vec::new())?.into_bytes(),
        },
        FileType::Fifo => UpperKind::Fifo,
        FileType::Socket => UpperKind::Socket,
        FileType::CharacterDevice if stat.stx_rdev_major == 0 && stat.stx_rdev_minor == 0 => {
            UpperKind::Whiteout
        }
        _ => UpperKind::Device,
    })
}

/// What overlayfs itself notes about a directory.
#[derive(Default)]
struct Marks {
    opaque: bool,
    redirect: Option<Vec<u8>>,
}

type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

fn read_xattrs(name: &CStr, names_of_marks: MarkNames) -> io::Result<(Xattrs, Marks)> {
    let mut xattrs = BTreeMap::new();
    let mut marks = Marks::default();
    let mut names = [0u8; 4096];
    let length = match llistxattr(name, &mut names[..]) {
        Ok(length) => length,
        // More names than an overlay can carry over; ext4 keeps them all in one block.
        Err(Errno::RANGE) => return Err(io::ErrorKind::InvalidData.into()),
        Err(Errno::NOTSUP) => 0,
        Err(error) => return Err(error.into()),
    };
    for attribute in names[..length]
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
    {
        match attribute.strip_prefix(names_of_marks.prefix()) {
            Some(b"opaque") => {
                marks.opaque = read_xattr(name, attribute)?.is_some_and(|value| value == b"y");
            }
            Some(b"redirect") => marks.redirect = read_xattr(name, attribute)?,
            // Other notes of overlayfs's own.
            Some(name) if !name.starts_with(b"overlay.") => {}
            // Somebody's claims: overlayfs keeps them apart from its own by one more `overlay.`, or by the prefix.
            // No view could show them, so only that they are there is told.
            _ if attribute.starts_with(UNKEPT) => {
                xattrs.insert(attribute.to_vec(), Vec::new());
            }
            None if attribute.starts_with(b"user.") => {
                if let Some(value) = read_xattr(name, attribute)? {
                    xattrs.insert(attribute.to_vec(), value);
                }
            }
            _ => {}
        }
    }
    Ok((xattrs, marks))
}

fn read_xattr(name: &CStr, attribute: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut value = vec![0u8; 65536];
    match lgetxattr(name, attribute, value.as_mut_slice()) {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        Err(Errno::NODATA) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes everything in `top`, whatever its modes; the caller has the right to override them.
///
/// A directory that holds directories is emptied by moving those up, so that no depth is too deep.
pub fn remove_contents(top: impl AsFd) -> io::Result<()> {
    let top = top.as_fd();
    let mut moved = 0u64;
    loop {
        let mut directories = Vec::new();
        each_name(top, |name, kind| match kind {
            FileType::Directory => {
                directories.push(name.to_owned());
                Ok(())
            }
            _ => gone(unlinkat(top, name, AtFlags::empty())),
        })?;
        if directories.is_empty() {
            return Ok(());
        }
        for name in directories {
            let opened = match openat(top, &name, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) => continue,
                opened => opened?,
            };
            each_name(opened.as_fd(), |inner, kind| match kind {
                FileType::Directory => loop {
                    moved += 1;
                    match renameat(&opened, inner, top, format!(".moved-{moved}")) {
                        // Commands may have chosen the same name.
                        Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                        done => break gone(done),
                    }
                },
                _ => gone(unlinkat(&opened, inner, AtFlags::empty())),
            })?;
            gone(unlinkat(top, &name, AtFlags::REMOVEDIR))?;
        }
    }
}

/// Lists what is beneath `top`, breadth first, for the sake of the kernel's caches alone.
pub fn warm(top: &Path) -> io::Result<()> {
    let mut names = 0;
    let mut waiting = VecDeque::from([top.to_owned()]);
    while let Some(path) = waiting.pop_front() {
        let opened = openat(CWD, &path, DIRECTORY, Mode::empty())?;
        each_name(opened.as_fd(), |name, kind| {
            names += 1;
            // A path that is too long to be opened from the top is not worth more trouble.
            let below = path.join(OsStr::from_bytes(name.to_bytes()));
            if kind == FileType::Directory && below.as_os_str().len() < PATH_BYTES_MAX {
                waiting.push_back(below);
            }
            Ok(())
        })?;
        if names > WARM_MAX {
            break;
        }
    }
    Ok(())
}

pub(crate) fn each_name(
    directory: BorrowedFd<'_>,
    mut each: impl FnMut(&CStr, FileType) -> io::Result<()>,
) -> io::Result<()> {
    for item in Dir::read_from(directory)? {
        let item = item?;
        let name = item.file_name();
        if name != c"." && name != c".." {
            each(name, item.file_type())?;
        }
    }
    Ok(())
}

/// Somebody else may be removing the same things; what counts is that they are gone.
pub(crate) fn gone(outcome: rustix::io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(Errno::NOENT) => Ok(()),
        outcome => Ok(outcome?),
    }
}
