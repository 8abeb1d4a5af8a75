//! An export put into a directory that already holds something.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
    let again = |fd: &OwnedFd| fd.try_clone().map_err(Error::host("open", into));
    let checked = Pair::new(again(&source)?, again(&target)?, into.to_owned())?;
    walk(checked, &|_| Ok(()))?;
    let moved = Pair::new(source, target, into.to_owned())?;
    walk(moved, &|step| step.take())
}

/// A name that may go from one directory to the other as it is.
struct Step<'a> {
    pair: &'a Pair,
    name: &'a CString,
    shown: &'a Path,
}

impl Step<'_> {
    fn take(&self) -> Result<()> {
        let Pair { source, target, .. } = self.pair;
        let moved = rustix::fs::renameat(source, self.name, target, self.name);
        moved.map_err(Error::host("replace", self.shown))
    }
}

/// Two directories that are merged.
struct Pair {
    source: OwnedFd,
    target: OwnedFd,
    /// The path of the target.
    shown: PathBuf,
    /// Names of the source that are still to be looked at.
    names: Vec<CString>,
}

impl Pair {
    fn new(source: OwnedFd, target: OwnedFd, shown: PathBuf) -> Result<Pair> {
        let names = names(&source).map_err(Error::host("list", &*shown))?;
        Ok(Pair {
            source,
            target,
            shown,
            names,
        })
    }

    /// Takes one name, or gives the two directories that have it.
    fn merge(&self, name: &CString, take: &Take) -> Result<Option<Pair>> {
        let shown = self.shown.join(OsStr::from_bytes(name.to_bytes()));
        let new = look(&self.source, name).map_err(Error::host("look at", &*shown))?;
        let step = Step {
            pair: self,
            name,
            shown: &shown,
        };
        let old = match look(&self.target, name) {
            Ok(old) => old,
            Err(Errno::NOENT) => return take(&step).map(|()| None),
            Err(errno) => return Err(Error::host("look at", shown)(errno)),
        };
        match (is_directory(&new), is_directory(&old)) {
            (false, false) => take(&step).map(|()| None),
            (true, true) => {
                let open = |dir: &OwnedFd| {
                    let opened = open_directory(dir, name, OFlags::NOFOLLOW);
                    opened.map_err(Error::host("open", &*shown))
                };
                let (source, target) = (open(&self.source)?, open(&self.target)?);
                Pair::new(source, target, shown).map(Some)
            }
            _ => Err(Error::Exists { path: shown }),
        }
    }
}

type Take = dyn Fn(&Step<'_>) -> Result<()>;

fn walk(top: Pair, take: &Take) -> Result<()> {
    let mut stack = vec![top];
    while let Some(pair) = stack.last_mut() {
        match pair.names.pop() {
            Some(name) => {
                let below = pair.merge(&name, take)?;
                stack.extend(below);
            }
            None => drop(stack.pop()),
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
    // The descriptor may have been read to its end before.
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
