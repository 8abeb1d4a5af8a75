//! Removing the content of a directory, and listing it to fill the kernel's caches. Memory does not grow with the content.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::walk::PATH_BYTES_MAX;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// How many directories have their names in memory at once.
const HELD_MAX: usize = 10_000;
/// How many names one slice of a removal removes or moves.
const SLICE: usize = 20_000;
/// How many names are worth reading ahead; each costs the kernel about a kilobyte.
const WARM_MAX: usize = 50_000;

/// Whether a removal is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Done,
    /// Not yet.
    Partly,
}

/// Removes everything in `top`, whatever its modes; the caller may override them.
pub fn remove_contents(top: impl AsFd) -> io::Result<()> {
    while remove_some(top.as_fd())? == Removal::Partly {}
    Ok(())
}

/// Removes one slice, so that other requests can run in between.
///
/// The subdirectories of a directory are moved up before it is removed, so that depth does not matter.
pub fn remove_some(top: BorrowedFd<'_>) -> io::Result<Removal> {
    let mut left = SLICE;
    let mut directories = Vec::new();
    let all = each_name_until(top, |name, kind| {
        match kind {
            FileType::Directory => directories.push(name.to_owned()),
            _ => gone(unlinkat(top, name, AtFlags::empty()))?,
        }
        left -= 1;
        Ok(left == 0 || directories.len() == HELD_MAX)
    })?;
    if directories.is_empty() && all {
        return Ok(Removal::Done);
    }
    left = left.max(1);
    let mut moved = Fresh::new();
    for name in directories {
        if left == 0 {
            break;
        }
        empty_upwards(top, &name, &mut moved, &mut left)?;
    }
    Ok(Removal::Partly)
}

/// Removes the directory `name` with its entries, and moves its subdirectories to `top`.
fn empty_upwards(
    top: BorrowedFd<'_>,
    name: &CStr,
    moved: &mut Fresh,
    left: &mut usize,
) -> io::Result<()> {
    let opened = match openat(top, name, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let all = each_name_until(opened.as_fd(), |inner, kind| {
        match kind {
            FileType::Directory => gone(moved.rename(opened.as_fd(), inner, top))?,
            _ => gone(unlinkat(&opened, inner, AtFlags::empty()))?,
        }
        *left = left.saturating_sub(1);
        Ok(*left == 0)
    })?;
    match all {
        true => gone(unlinkat(top, name, AtFlags::REMOVEDIR)),
        false => Ok(()),
    }
}

/// Names for moved directories.
struct Fresh {
    next: u64,
}

impl Fresh {
    /// From the clock, so that they differ from those of earlier slices.
    fn new() -> Fresh {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let next = (time.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(time.tv_nsec as u64);
        Fresh { next }
    }

    fn rename(
        &mut self,
        from: BorrowedFd<'_>,
        name: &CStr,
        to: BorrowedFd<'_>,
    ) -> rustix::io::Result<()> {
        loop {
            self.next = self.next.wrapping_add(1);
            let fresh = CString::new(format!(".moved-{:x}", self.next)).unwrap_or_default();
            match renameat(from, name, to, &fresh) {
                // The name is taken.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                done => return done,
            }
        }
    }
}

/// Lists everything below `top`, breadth first, to fill the kernel's caches.
pub fn warm(top: &Path) -> io::Result<()> {
    let mut names = 0;
    let mut waiting = VecDeque::from([top.to_owned()]);
    while let Some(path) = waiting.pop_front() {
        let opened = openat(CWD, &path, DIRECTORY, Mode::empty())?;
        let all = each_name_until(opened.as_fd(), |name, kind| {
            names += 1;
            // A path that is too long to be opened from the top is skipped.
            let below = path.join(OsStr::from_bytes(name.to_bytes()));
            if kind == FileType::Directory && below.as_os_str().len() < PATH_BYTES_MAX {
                waiting.push_back(below);
            }
            Ok(names > WARM_MAX)
        })?;
        if !all {
            break;
        }
    }
    Ok(())
}

/// Continues until `each` returns false; returns whether it saw everything.
pub(crate) fn each_name_until(
    directory: BorrowedFd<'_>,
    mut each: impl FnMut(&CStr, FileType) -> io::Result<bool>,
) -> io::Result<bool> {
    for item in Dir::read_from(directory)? {
        let item = item?;
        let name = item.file_name();
        if name != c"." && name != c".." && each(name, item.file_type())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Another process may be removing the same names.
pub(crate) fn gone(outcome: rustix::io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(Errno::NOENT) => Ok(()),
        outcome => Ok(outcome?),
    }
}
