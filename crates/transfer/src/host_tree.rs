//! A directory of the host. Paths in it are opened beneath its descriptor, and no symlink is followed.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use avfs_vault::{Content, Entry, Kind, Trees, VaultPath};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The directory at the top. Paths in it are written as if it were `/`.
pub struct HostTree {
    pub top: OwnedFd,
    pub path: PathBuf,
}

/// Identifies a file and its state: device, inode, size, mtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    mtime: (i64, u64),
}

impl Stamp {
    /// Without the ctime, which changes with every hard link that is made or removed.
    pub fn of(stat: &Stat) -> Stamp {
        Stamp {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size as u64,
            mtime: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }
}

/// What is at a path of the host.
pub enum Look {
    Nothing,
    There(Stat),
    /// A name above it is no directory.
    Blocked,
}

impl HostTree {
    pub fn open(path: &Path) -> Result<HostTree> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(path, flags, Mode::empty());
        let top = top.map_err(Error::host("open", path))?;
        let path = path.to_owned();
        Ok(HostTree { top, path })
    }

    /// The directory that `path` is in.
    pub fn parent(&self, path: &VaultPath) -> Result<OwnedFd, Errno> {
        let above = path.parent().unwrap_or(VaultPath::root());
        let inside = match &above.as_bytes()[1..] {
            b"" => b".",
            relative => relative,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        rustix::fs::openat2(&self.top, inside, flags, Mode::empty(), resolve)
    }

    pub fn look(&self, path: &VaultPath) -> Result<Look> {
        let found = self
            .parent(path)
            .and_then(|parent| rustix::fs::statat(&parent, name(path), AtFlags::SYMLINK_NOFOLLOW));
        match found {
            Ok(stat) => Ok(Look::There(stat)),
            Err(Errno::NOENT) => Ok(Look::Nothing),
            Err(Errno::NOTDIR | Errno::LOOP) => Ok(Look::Blocked),
            Err(errno) => Err(self.failed("look at", path)(errno)),
        }
    }

    /// Whether the host has exactly `entry` there. Of a directory, only that it is one and its mode.
    pub fn holds(
        &self,
        trees: &Trees,
        path: &VaultPath,
        stat: &Stat,
        entry: &Entry,
    ) -> Result<bool> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let same_mode = stat.st_mode & 0o7777 == entry.meta.mode & 0o7777;
        match &entry.kind {
            Kind::Directory { .. } => Ok(kind == FileType::Directory && same_mode),
            Kind::Fifo => Ok(kind == FileType::Fifo && same_mode),
            Kind::Symlink { target } => {
                if kind != FileType::Symlink {
                    return Ok(false);
                }
                let read = self
                    .parent(path)
                    .and_then(|parent| rustix::fs::readlinkat(&parent, name(path), Vec::new()));
                let read = read.map_err(self.failed("read", path))?;
                Ok(read.to_bytes() == &target[..])
            }
            Kind::File { content, size, .. } => {
                if kind != FileType::RegularFile || stat.st_size as u64 != *size || !same_mode {
                    return Ok(false);
                }
                self.has_content(trees, path, *content, *size)
            }
        }
    }

    fn has_content(
        &self,
        trees: &Trees,
        path: &VaultPath,
        content: Content,
        size: u64,
    ) -> Result<bool> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = self
            .parent(path)
            .and_then(|parent| rustix::fs::openat(&parent, name(path), flags, Mode::empty()));
        let file = File::from(opened.map_err(self.failed("read", path))?);
        match trees.is_in_file(&file, content, size) {
            // A file that cannot be read counts as different.
            Err(avfs_vault::Error::Read(_)) => Ok(false),
            compared => Ok(compared?),
        }
    }

    pub fn host_path(&self, path: &VaultPath) -> PathBuf {
        self.path.join(OsStr::from_bytes(&path.as_bytes()[1..]))
    }

    pub fn failed(
        &self,
        action: &'static str,
        path: &VaultPath,
    ) -> impl FnOnce(Errno) -> Error + use<> {
        Error::host(action, self.host_path(path))
    }
}

/// The last name of a path, which is never the top itself.
pub fn name(path: &VaultPath) -> &[u8] {
    path.file_name().unwrap_or(b".")
}

/// A rename that replaces nothing.
pub(crate) fn rename_new(
    from_dir: impl AsFd,
    from: impl rustix::path::Arg + Copy,
    to_dir: impl AsFd,
    to: impl rustix::path::Arg + Copy,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(&from_dir, from, &to_dir, to, RenameFlags::NOREPLACE) {
        // Some filesystems do not support RENAME_NOREPLACE; then check and rename are two calls.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::statat(&to_dir, to, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => rustix::fs::renameat(&from_dir, from, &to_dir, to),
                Ok(_) => Err(Errno::EXIST),
                Err(errno) => Err(errno),
            }
        }
        done => done,
    }
}
