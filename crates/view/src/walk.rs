//! Walks a directory in slices, depth first, parents before children.
//!
//! A tree made by a command may be wide, deep, or both. So a walk has few open descriptors and no list of pending names: its
//! position is a path and an offset in each directory on it, which the caller keeps between two slices. Runs in the scanner
//! process, which is single-threaded and so may change its working directory.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statx,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::scan::{MarkNames, UpperEntry, UpperKind, read_entry};

/// Deeper names cannot be vault paths; they are reported, and their content is skipped.
pub const PATH_BYTES_MAX: usize = 4094;
/// Directories that are kept open in one slice; those above are reopened by path.
const OPEN_MAX: usize = 16;
/// A slice ends after this many names, or bytes of entries.
const LIST_NAMES: usize = 1_000;
const LIST_BYTES: usize = 32 << 10;
const MEASURE_NAMES: usize = 10_000;

/// The position of a walk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The current directory: path from the top, joined by `/`.
    path: Vec<u8>,
    /// The offset in the top, in each directory on the path, and in the last.
    cookies: Vec<i64>,
}

impl Position {
    pub fn start() -> Position {
        Position {
            path: Vec::new(),
            cookies: vec![0],
        }
    }

    pub fn is_end(&self) -> bool {
        self.cookies.is_empty()
    }

    fn is_start(&self) -> bool {
        *self == Position::start()
    }

    fn enter(&mut self, path: Vec<u8>) {
        self.path = path;
        self.cookies.push(0);
    }

    fn leave(&mut self) {
        self.cookies.pop();
        let above = self.path.iter().rposition(|byte| *byte == b'/');
        self.path.truncate(above.unwrap_or(0));
    }
}

/// The number of files, and their apparent size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Everything but directories.
    pub files: u64,
    pub bytes: u64,
}

impl Totals {
    pub fn add(&mut self, size: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(size);
    }

    pub fn and(self, other: Totals) -> Totals {
        Totals {
            files: self.files + other.files,
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// The next entries; the very first is the top itself. Changes the working directory.
pub fn list(
    top: BorrowedFd<'_>,
    marks: MarkNames,
    position: &mut Position,
) -> io::Result<Vec<UpperEntry>> {
    let mut entries = Vec::new();
    let mut bytes = 0;
    if position.is_start() {
        rustix::process::fchdir(open_below(top, b"")?)?;
        entries.push(read_entry(c".", Vec::new(), marks)?);
    }
    walk(top, position, |name, _, path| {
        let entry = read_entry(name, path.to_vec(), marks)?;
        let is_directory = matches!(entry.kind, UpperKind::Directory { .. });
        bytes += entry.weight();
        entries.push(entry);
        Ok(Seen {
            is_directory,
            is_enough: entries.len() >= LIST_NAMES || bytes >= LIST_BYTES,
        })
    })?;
    Ok(entries)
}

/// The totals of the next names. Changes the working directory.
pub fn measure(top: BorrowedFd<'_>, position: &mut Position) -> io::Result<Totals> {
    let mut totals = Totals::default();
    let mut names = 0;
    walk(top, position, |name, kind, _| {
        names += 1;
        let is_directory = kind == FileType::Directory;
        match kind {
            FileType::Directory => {}
            FileType::RegularFile => {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                totals.add(statx(CWD, name, flags, StatxFlags::SIZE)?.stx_size);
            }
            _ => totals.add(0),
        }
        Ok(Seen {
            is_directory,
            is_enough: names >= MEASURE_NAMES,
        })
    })?;
    Ok(totals)
}

/// The result of visiting a name.
struct Seen {
    is_directory: bool,
    /// The slice is over.
    is_enough: bool,
}

/// Calls `look` for each name, in the process's working directory, with its path from the top.
fn walk(
    top: BorrowedFd<'_>,
    position: &mut Position,
    mut look: impl FnMut(&CStr, FileType, &[u8]) -> io::Result<Seen>,
) -> io::Result<()> {
    let mut open = Kept::default();
    while !position.is_end() {
        let Some(directory) = open.current(top, position)? else {
            position.leave();
            continue;
        };
        let item = match directory.read() {
            Some(Ok(item)) => item,
            // The latter if it was removed meanwhile.
            None | Some(Err(Errno::NOENT)) => {
                position.leave();
                continue;
            }
            Some(Err(error)) => return Err(error.into()),
        };
        if let Some(cookie) = position.cookies.last_mut() {
            *cookie = item.offset();
        }
        let name = item.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let path = joined(&position.path, name.to_bytes());
        match look(name, item.file_type(), &path) {
            Ok(seen) => {
                if seen.is_directory && path.len() <= PATH_BYTES_MAX {
                    position.enter(path);
                }
                if seen.is_enough {
                    return Ok(());
                }
            }
            // A name that was removed since it was listed is skipped.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The open directories of a walk, the deepest last.
#[derive(Default)]
struct Kept {
    open: Vec<(usize, Dir)>,
    /// The level of the working directory.
    entered: Option<usize>,
}

impl Kept {
    /// Makes the directory at `position` the working directory; `None` if it no longer exists.
    fn current(
        &mut self,
        top: BorrowedFd<'_>,
        position: &Position,
    ) -> io::Result<Option<&mut Dir>> {
        let level = position.cookies.len();
        while self.open.last().is_some_and(|(open, _)| *open > level) {
            self.open.pop();
        }
        if self.open.last().is_none_or(|(open, _)| *open != level) {
            let opened = match open_below(top, &position.path) {
                Ok(opened) => opened,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let mut directory = Dir::new(opened)?;
            if let Some(cookie) = position.cookies.last().filter(|cookie| **cookie != 0) {
                directory.seek(*cookie)?;
            }
            if self.open.len() == OPEN_MAX {
                self.open.remove(0);
            }
            self.open.push((level, directory));
            self.entered = None;
        }
        let Some((_, directory)) = self.open.last_mut() else {
            return Ok(None);
        };
        if self.entered != Some(level) {
            rustix::process::fchdir(directory.fd()?)?;
            self.entered = Some(level);
        }
        Ok(Some(directory))
    }
}

/// Opens a directory of the walk, without following links; `path` is empty for the top itself.
fn open_below(top: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let path = if path.is_empty() { &b"."[..] } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(top, path, flags, Mode::empty(), resolve)
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
