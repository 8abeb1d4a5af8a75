//! The transfer directory: the one directory of the host that agents may name, to import from and to export to. Names in
//! it are resolved beneath its descriptor, over no link and past no `..`.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::export::{ExportReport, Exporter};
use crate::import::{HardLinks, Importer, Incoming};

/// Attempts to resolve a name while something is renamed concurrently.
const TRIES: usize = 16;

/// The transfer directory, opened.
pub struct TransferDirectory {
    path: PathBuf,
    fd: OwnedFd,
}

/// What a name in it is.
enum Opened {
    Directory(OwnedFd),
    File(File),
}

impl TransferDirectory {
    /// Opens it by its real path: no name of `path` may be a symlink by now.
    pub fn open(path: PathBuf) -> Result<TransferDirectory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(CWD, &path, flags, Mode::empty(), resolve);
        let fd = opened.map_err(Error::host("open", &*path))?;
        Ok(TransferDirectory { path, fd })
    }

    /// Reads what is called `name` in it: a directory, or a tar archive.
    pub fn read(&self, importer: &Importer<'_>, name: &[u8]) -> Result<Incoming> {
        let shown = Path::new(OsStr::from_bytes(name));
        match self.open_name(name)? {
            Opened::Directory(fd) => importer.read_open_directory(fd, shown, HardLinks::Refused),
            Opened::File(mut file) => {
                importer.read_archive(&mut file, &shown.display().to_string())
            }
        }
    }

    /// Copies a directory of a tree to a name that is new in it.
    pub fn export(&self, exporter: &Exporter<'_>, name: &[u8]) -> Result<ExportReport> {
        let name = self.new_name(name)?;
        exporter.to_new_name((&self.path, &self.fd, name))
    }

    fn open_name(&self, name: &[u8]) -> Result<Opened> {
        let shown = Path::new(OsStr::from_bytes(name));
        // Checked before it is opened for reading, since opening a device can have effects.
        let kind = FileType::from_raw_mode(self.look(name)?.st_mode);
        let not_a_source = || Error::NotASource { path: shown.into() };
        match kind {
            FileType::Directory | FileType::RegularFile => {}
            FileType::Symlink => return Err(Error::NotBeneath { name: shown.into() }),
            _ => return Err(not_a_source()),
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = self.resolve(name, flags)?;
        let stat = rustix::fs::fstat(&fd).map_err(Error::host("read", shown))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(Opened::Directory(fd)),
            // A hard link of it may be anywhere on the host.
            FileType::RegularFile if stat.st_nlink == 1 => Ok(Opened::File(fd.into())),
            FileType::RegularFile => Err(Error::NotBeneath { name: shown.into() }),
            _ => Err(not_a_source()),
        }
    }

    fn look(&self, name: &[u8]) -> Result<Stat> {
        let fd = self.resolve(name, OFlags::PATH)?;
        let shown = Path::new(OsStr::from_bytes(name));
        rustix::fs::fstat(&fd).map_err(Error::host("read", shown))
    }

    fn resolve(&self, name: &[u8], flags: OFlags) -> Result<OwnedFd> {
        let shown = Path::new(OsStr::from_bytes(name));
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let open = || rustix::fs::openat2(&self.fd, shown, flags, Mode::empty(), resolve);
        let mut opened = open();
        for _ in 1..TRIES {
            // openat2 returns EAGAIN when a rename happened during the lookup.
            if opened.as_ref().err() != Some(&Errno::AGAIN) {
                break;
            }
            opened = open();
        }
        opened.map_err(|errno| match errno {
            Errno::XDEV | Errno::LOOP => Error::NotBeneath { name: shown.into() },
            errno => Error::host("open", shown)(errno),
        })
    }

    /// Checks that `name` is a single name that does not exist in it.
    fn new_name<'a>(&self, name: &'a [u8]) -> Result<&'a OsStr> {
        let shown = OsStr::from_bytes(name);
        let is_single = !name.is_empty() && !name.contains(&b'/') && !name.contains(&0);
        if !is_single || name == b"." || name == b".." {
            return Err(Error::NotBeneath { name: shown.into() });
        }
        match rustix::fs::statat(&self.fd, shown, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(shown),
            Ok(_) => Err(Error::Exists { path: shown.into() }),
            Err(errno) => Err(Error::host("look at", shown)(errno)),
        }
    }
}
