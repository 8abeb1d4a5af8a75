//! An export put into a directory that already holds something.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, OFlags, RawDir, SeekFrom, Stat};
use rustix::io::Errno;

use super::open_directory;
use crate::error::{Error, Result};

/// Moves all that is in `from` into `into`: files replace files, directories are merged, and what
/// only `into` holds stays. A file against a directory refuses the whole before anything moves.
pub(crate) fn merge(from: &Path, into: &Path) -> Result<()> {
    let open = |path: &Path| {
        let opened = open_directory(CWD, path, OFlags::empty());
        opened.map_err(Error::host("open", path))
    };
    let (source, target) = (open(from)?, open(into)?);
    walk(&source, &target, into, &|_| Ok(()))?;
    walk(&source, &target, into, &|step| step.take())
}

/// A name that may go from one directory to the other as it is.
struct Step<'a> {
    source: &'a OwnedFd,
    target: &'a OwnedFd,
    name: &'a CString,
    shown: &'a Path,
}

impl Step<'_> {
    fn take(&self) -> Result<()> {
        let moved = rustix::fs::renameat(self.source, self.name, self.target, self.name);
        moved.map_err(Error::host("replace", self.shown))
    }
}

fn walk(
    source: &OwnedFd,
    target: &OwnedFd,
    shown: &Path,
    take: &dyn Fn(&Step<'_>) -> Result<()>,
) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    for name in names(source).map_err(Error::host("list", shown))? {
        let shown = &shown.join(std::ffi::OsStr::from_bytes(name.to_bytes()));
        let new = look(source, &name).map_err(Error::host("look at", shown))?;
        let step = Step {
            source,
            target,
            name: &name,
            shown,
        };
        let old = match look(target, &name) {
            Ok(old) => old,
            Err(Errno::NOENT) => {
                take(&step)?;
                continue;
            }
            Err(errno) => return Err(Error::host("look at", shown)(errno)),
        };
        match (is_directory(&new), is_directory(&old)) {
            (false, false) => take(&step)?,
            (true, true) => {
                let open = |dir: &OwnedFd| {
                    let opened = open_directory(dir, &name, OFlags::NOFOLLOW);
                    opened.map_err(Error::host("open", shown))
                };
                walk(&open(source)?, &open(target)?, shown, take)?;
            }
            _ => {
                return Err(Error::Exists {
                    path: shown.to_owned(),
                });
            }
        }
    }
    Ok(())
}

fn look(dir: &OwnedFd, name: &CString) -> Result<Stat, Errno> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn names(dir: &OwnedFd) -> Result<Vec<CString>, Errno> {
    // It may have been listed before.
    rustix::fs::seek(dir, SeekFrom::Start(0))?;
    let mut space = Vec::with_capacity(8 << 10);
    let mut entries = RawDir::new(dir, space.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}
