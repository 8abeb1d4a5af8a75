//! The transfer directory: the one directory of the host that agents may name, to import from and to export to. The owner
//! sets it; until then there is none. Names in it are resolved beneath its descriptor, over no link and past no `..`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use avfs_vault::{NewJournalEntry, VaultPath};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde_json::json;

use super::TransferError;
use crate::autorun::{self, Hooks};
use crate::export::{OnDamage, export_new};
use crate::gate::Verb;
use crate::import::{Harvest, Intake, harvest_archive, harvest_open_directory};
use crate::progress::Watcher;
use crate::runtime::{Runtime, Select};
use crate::session::Session;
use crate::{Error, ExportReport, Result};

/// The file of the home that says where it is.
const FILE: &str = "transfer-directory";
/// How often a name is looked up again that somebody renamed meanwhile.
const TRIES: usize = 16;

/// The transfer directory, opened.
pub(super) struct TransferDirectory {
    path: PathBuf,
    fd: OwnedFd,
}

/// What a name in it is.
enum Opened {
    Directory(OwnedFd),
    File(File),
}

impl Session {
    /// Where it is, if anywhere. Agents need not know: they name what is in it.
    pub fn transfer_directory(&self) -> Result<Option<PathBuf>> {
        self.govern("where the transfer directory is")?;
        self.stored_transfer_directory()
    }

    /// Sets it, or has none from now on.
    pub fn set_transfer_directory(&self, dir: Option<&Path>) -> Result<Option<PathBuf>> {
        self.govern("the transfer directory")?;
        let dir = dir.map(|dir| self.fitting(dir)).transpose()?;
        let file = self.inner.config.home.join(FILE);
        let written = match &dir {
            Some(dir) => {
                let draft = file.with_extension("new");
                fs::write(&draft, dir.as_os_str().as_bytes())
                    .and_then(|()| File::open(&draft)?.sync_all())
                    .and_then(|()| fs::rename(&draft, &file))
            }
            None => match fs::remove_file(&file) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        written.map_err(Error::io("noting the transfer directory"))?;
        let told = dir.as_ref().map(|dir| dir.display().to_string());
        self.inner.vaults.record(NewJournalEntry {
            vault: None,
            exec: None,
            principal: self.principal(),
            operation: "transfer.set".into(),
            details: json!({ "directory": told }),
        })?;
        Ok(dir)
    }

    /// A directory that can be the transfer directory: its real path.
    fn fitting(&self, dir: &Path) -> Result<PathBuf> {
        let invalid = |reason: String| Error::Invalid {
            what: "transfer directory",
            reason: format!("{}: {reason}", dir.display()),
        };
        let real = dir.canonicalize().map_err(|it| invalid(it.to_string()))?;
        let home = &self.inner.config.home;
        let home = home.canonicalize().unwrap_or_else(|_| home.clone());
        match () {
            () if !real.is_dir() => Err(invalid("it is no directory".into())),
            () if home.starts_with(&real) => Err(invalid("the home of avfs is in it".into())),
            () if real.starts_with(&home) => Err(invalid("it is in the home of avfs".into())),
            () => Ok(real),
        }
    }

    /// Copies a directory of the vault to a new name in the transfer directory.
    pub fn transfer_out(
        &self,
        vault: Select,
        path: &VaultPath,
        name: &[u8],
        watcher: &dyn Watcher,
    ) -> Result<ExportReport> {
        let head = self.head_for(vault, path, Verb::Work)?;
        let directory = self.open_transfer_directory()?;
        let name = directory.new_name(name)?;
        let target = directory.path.join(name);
        let runs_by_itself = self.runs_by_itself(head, path, (&target, OnDamage::Stop))?;
        autorun::check(&runs_by_itself, Hooks::Refuse)?;
        let trees = self.inner.vaults.trees();
        let to = (&*directory.path, &directory.fd, name);
        let report = export_new(trees, head, path, to, &self.notes(), watcher)?;
        Ok(ExportReport {
            runs_by_itself,
            ..report
        })
    }
}

impl Runtime {
    fn stored_transfer_directory(&self) -> Result<Option<PathBuf>> {
        match fs::read(self.inner.config.home.join(FILE)) {
            Ok(bytes) => Ok(Some(std::ffi::OsString::from_vec(bytes).into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Io {
                what: "reading where the transfer directory is".into(),
                source,
            }),
        }
    }

    fn open_transfer_directory(&self) -> Result<TransferDirectory> {
        let path = self.stored_transfer_directory()?;
        let path = path.ok_or(TransferError::NoDirectory)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // It was a real path when it was set.
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(CWD, &path, flags, Mode::empty(), resolve);
        let fd = opened.map_err(TransferError::host("open", &*path))?;
        Ok(TransferDirectory { path, fd })
    }

    /// Reads what is called `name` in the transfer directory: a directory, or a tar archive.
    pub(super) fn harvest_transfer(
        &self,
        intake: &Intake<'_>,
        name: &[u8],
    ) -> Result<Harvest, TransferError> {
        let directory = self
            .open_transfer_directory()
            .map_err(|error| match error {
                Error::Transfer(error) => error,
                other => TransferError::Host {
                    action: "open",
                    path: "the transfer directory".into(),
                    source: std::io::Error::other(other.to_string()),
                },
            })?;
        let shown = Path::new(OsStr::from_bytes(name));
        match directory.open(name)? {
            Opened::Directory(fd) => harvest_open_directory(intake, fd, shown),
            Opened::File(mut file) => {
                harvest_archive(intake, &mut file, &shown.display().to_string())
            }
        }
    }
}

impl TransferDirectory {
    fn open(&self, name: &[u8]) -> Result<Opened, TransferError> {
        let shown = Path::new(OsStr::from_bytes(name));
        // Looked at before it is opened for reading: to open a device can do something.
        let kind = FileType::from_raw_mode(self.look(name)?.st_mode);
        let not_a_source = || TransferError::NotASource { path: shown.into() };
        match kind {
            FileType::Directory | FileType::RegularFile => {}
            FileType::Symlink => return Err(TransferError::NotBeneath { name: shown.into() }),
            _ => return Err(not_a_source()),
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = self.resolve(name, flags)?;
        let stat = rustix::fs::fstat(&fd).map_err(TransferError::host("read", shown))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(Opened::Directory(fd)),
            // Another name may be anywhere on the host.
            FileType::RegularFile if stat.st_nlink == 1 => Ok(Opened::File(fd.into())),
            FileType::RegularFile => Err(TransferError::NotBeneath { name: shown.into() }),
            _ => Err(not_a_source()),
        }
    }

    fn look(&self, name: &[u8]) -> Result<rustix::fs::Stat, TransferError> {
        let fd = self.resolve(name, OFlags::PATH)?;
        let shown = Path::new(OsStr::from_bytes(name));
        rustix::fs::fstat(&fd).map_err(TransferError::host("read", shown))
    }

    fn resolve(&self, name: &[u8], flags: OFlags) -> Result<OwnedFd, TransferError> {
        let shown = Path::new(OsStr::from_bytes(name));
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let open = || rustix::fs::openat2(&self.fd, shown, flags, Mode::empty(), resolve);
        let mut opened = open();
        for _ in 1..TRIES {
            // The kernel cannot tell when something is renamed meanwhile.
            if opened.as_ref().err() != Some(&Errno::AGAIN) {
                break;
            }
            opened = open();
        }
        opened.map_err(|errno| match errno {
            Errno::XDEV | Errno::LOOP => TransferError::NotBeneath { name: shown.into() },
            errno => TransferError::host("open", shown)(errno),
        })
    }

    /// A name that nothing in it has, and that is in no directory below it.
    fn new_name<'a>(&self, name: &'a [u8]) -> Result<&'a OsStr, TransferError> {
        let shown = OsStr::from_bytes(name);
        let is_single = !name.is_empty() && !name.contains(&b'/') && !name.contains(&0);
        if !is_single || name == b"." || name == b".." {
            return Err(TransferError::NotBeneath { name: shown.into() });
        }
        match rustix::fs::statat(&self.fd, shown, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(shown),
            Ok(_) => Err(TransferError::Exists { path: shown.into() }),
            Err(errno) => Err(TransferError::host("look at", shown)(errno)),
        }
    }
}
