//! Layers on disk: a vault's changes between two commits, and how they are found again.
//!
//! `layers/<vault>/` has `tmp/` (the vault's scratch) and one directory per layer with `upper/`, `work/`, the lock, the
//! record with its base, and `tmp/` if its commands have a scratch of their own. A user of a layer holds its lock by an
//! open descriptor, which the sandbox's pid 1 has too. So while a process of a dead daemon still runs, the lock is taken.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use avfs_vault::{Meta, RootId, VaultId};
use rustix::fs::{CWD, Mode, OFlags, openat};

pub use self::record::{LayerRecord, LayerUse};
use self::record::{RECORD_BYTES, Token};
use crate::scanner::Scanner;
use crate::{Error, Owner, Result};

mod record;

const RECORD: &str = "record";
/// The record of a layer that is still being filled. If its maker dies, the layer is deleted.
const DRAFT: &str = "record.draft";
const LOCK: &str = "lock";
const UPPER: &str = "upper";
const WORK: &str = "work";
const SCRATCH: &str = "tmp";
const SHOWN: &str = "shown";

/// The layers of a home.
pub struct Layers {
    directory: PathBuf,
    /// Directories in which earlier daemons may have left some.
    earlier: Vec<PathBuf>,
    owner: Option<Owner>,
    boot: String,
}

/// A layer in use by this process: dropping it releases the lock.
pub struct Layer {
    path: PathBuf,
    upper: OwnedFd,
    lock: File,
    record_file: File,
    record: LayerRecord,
    token: Option<Token>,
}

/// A layer on disk that is not in use.
#[derive(Debug, Clone)]
pub struct Found {
    pub vault: VaultId,
    path: PathBuf,
}

impl Found {
    /// Locks it; waits up to `patience` for the last of its users to end.
    pub fn claim(&self, patience: Duration) -> Result<Layer> {
        Layer::claim(self.path.clone(), RECORD, patience)
    }
}

/// A layer directory that can be deleted.
pub struct Retired {
    path: PathBuf,
}

impl Layers {
    /// Opens `home/layers`. `owner` is the user of the commands, if that is not the caller.
    pub fn open(home: &Path, owner: Option<Owner>) -> Result<Layers> {
        Layers::among(home.join("layers"), Vec::new(), owner)
    }

    /// Opens layers: new ones are made in `directory`, and `earlier` may hold others.
    pub fn among(
        directory: PathBuf,
        earlier: Vec<PathBuf>,
        owner: Option<Owner>,
    ) -> Result<Layers> {
        std::fs::create_dir_all(&directory).map_err(at(&directory))?;
        let boot_path = Path::new("/proc/sys/kernel/random/boot_id");
        let boot = std::fs::read_to_string(boot_path).map_err(at(boot_path))?;
        Ok(Layers {
            directory,
            earlier,
            owner,
            boot: boot.trim().to_owned(),
        })
    }

    /// A fresh, empty, locked layer over `base`, whose top directory looks like `top`.
    pub fn create(
        &self,
        vault: VaultId,
        base: RootId,
        top: &Meta,
        used_by: LayerUse,
    ) -> Result<Layer> {
        let record = self.record(base, base, used_by);
        self.make(vault, record, top, RECORD)
    }

    /// A fresh locked layer over `base`, to be filled with the difference to `head`. It is not used
    /// until it is [made ready](Layer::make_ready).
    pub fn draft(
        &self,
        vault: VaultId,
        (base, head): (RootId, RootId),
        top: &Meta,
        used_by: LayerUse,
    ) -> Result<Layer> {
        let record = self.record(base, head, used_by);
        self.make(vault, record, top, DRAFT)
    }

    fn record(&self, base: RootId, head: RootId, used_by: LayerUse) -> LayerRecord {
        LayerRecord {
            base,
            last_commit: head,
            pending: head,
            boot: self.boot.clone(),
            used_by,
        }
    }

    fn make(
        &self,
        vault: VaultId,
        record: LayerRecord,
        top: &Meta,
        recorded_as: &str,
    ) -> Result<Layer> {
        let used_by = record.used_by;
        let parent = self.directory.join(vault.to_string());
        let path = parent.join(format!("{:016x}", fresh_number(&parent)?));
        let make = || -> io::Result<()> {
            std::fs::create_dir_all(&path)?;
            for name in [UPPER, WORK] {
                match used_by {
                    LayerUse::Sandbox => self.make_owned(&path.join(name), 0o755)?,
                    LayerUse::Host => make_directory(&path.join(name), 0o755)?,
                }
            }
            let upper = path.join(UPPER);
            std::fs::set_permissions(&upper, Permissions::from_mode(top.mode & 0o7777))?;
            set_mtime(&upper, top)
        };
        make().map_err(at(&path))?;
        let file = File::create_new(path.join(recorded_as)).map_err(at(&path))?;
        file.write_all_at(&record.encode(), 0).map_err(at(&path))?;
        let token = Token::new().map_err(at(&path))?;
        token.write(&file).map_err(at(&path))?;
        File::create_new(path.join(LOCK)).map_err(at(&path))?;
        Layer::claim(path, recorded_as, Duration::ZERO)
    }

    /// The vault's scratch directory, shown as `/tmp`.
    pub fn scratch(&self, vault: VaultId) -> Result<PathBuf> {
        let path = self.directory.join(vault.to_string()).join(SCRATCH);
        if !path.is_dir() {
            let parent = self.directory.join(vault.to_string());
            std::fs::create_dir_all(&parent).map_err(at(&parent))?;
            self.make_owned(&path, 0o1777).map_err(at(&path))?;
        }
        Ok(path)
    }

    /// Every layer that an earlier daemon left; each has to be claimed.
    pub fn find(&self) -> Result<Vec<Found>> {
        let directories = self.directories()?.into_iter();
        let layers = directories.filter(|(_, path)| is_in_use(path));
        Ok(layers.map(|(vault, path)| Found { vault, path }).collect())
    }

    /// Whether the layer was made since boot: otherwise unsynced files may be missing.
    pub fn is_of_this_boot(&self, layer: &Layer) -> bool {
        layer.record.boot == self.boot
    }

    /// Directories that are not layers any more, or never became one.
    pub fn rubbish(&self) -> Result<Vec<Retired>> {
        let paths = self.directories()?.into_iter().map(|(_, path)| path);
        let rubbish = paths.filter(|path| !is_in_use(path));
        Ok(rubbish.map(|path| Retired { path }).collect())
    }

    /// The roots that layers on disk have as base or last commit, or were about to publish.
    pub fn roots(&self) -> Result<Vec<RootId>> {
        let mut roots = Vec::new();
        for (_, path) in self.directories()? {
            let Ok(bytes) = std::fs::read(path.join(RECORD)) else {
                continue;
            };
            let record = bytes.first_chunk().and_then(LayerRecord::decode);
            roots.extend(
                record
                    .iter()
                    .flat_map(|it| [it.base, it.last_commit, it.pending]),
            );
        }
        Ok(roots)
    }

    fn directories(&self) -> Result<Vec<(VaultId, PathBuf)>> {
        let mut directories = Vec::new();
        let mut vaults = subdirectories(&self.directory)?;
        for earlier in &self.earlier {
            // It may have been on a tmpfs that is gone.
            vaults.extend(subdirectories(earlier).unwrap_or_default());
        }
        for vault in vaults {
            let Some(id) = file_name(&vault).and_then(|name| name.parse::<VaultId>().ok()) else {
                continue;
            };
            let layers = unless_gone(subdirectories(&vault))?.into_iter();
            let layers = layers.filter(|path| file_name(path) != Some(SCRATCH));
            directories.extend(layers.map(|path| (id, path)));
        }
        Ok(directories)
    }

    /// The upper directories of all layers, as O_PATH descriptors: opening them needs permission.
    pub fn uppers(&self) -> Result<Vec<OwnedFd>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let uppers = self.directories()?.into_iter().filter_map(|(_, path)| {
            // One that is being made or removed is skipped.
            openat(CWD, path.join(UPPER), flags, Mode::empty()).ok()
        });
        Ok(uppers.collect())
    }

    /// Whether there is anything on disk for the vault.
    pub fn holds(&self, vault: VaultId) -> bool {
        self.of_vault(vault).any(|path| path.exists())
    }

    /// Removes everything of a vault that no longer exists.
    pub fn remove_vault(&self, vault: VaultId, scanner: &Scanner) -> Result<()> {
        for path in self.of_vault(vault).filter(|path| path.is_dir()) {
            remove_directory(&path, scanner)?;
        }
        Ok(())
    }

    /// The directories that may have something of the vault.
    fn of_vault(&self, vault: VaultId) -> impl Iterator<Item = PathBuf> {
        let places = std::iter::once(&self.directory).chain(&self.earlier);
        places.map(move |place| place.join(vault.to_string()))
    }

    fn make_owned(&self, path: &Path, mode: u32) -> io::Result<()> {
        make_directory(path, mode)?;
        match self.owner {
            Some(owner) => chown(path, Some(owner.uid), Some(owner.gid)),
            None => Ok(()),
        }
    }
}

impl Layer {
    fn claim(path: PathBuf, recorded_as: &str, patience: Duration) -> Result<Layer> {
        let lock = File::options()
            .read(true)
            .write(true)
            .open(path.join(LOCK))
            .map_err(at(&path))?;
        wait_for_lock(&lock, &path, patience)?;
        let record_file = File::options()
            .read(true)
            .write(true)
            .open(path.join(recorded_as))
            .map_err(at(&path))?;
        let mut bytes = [0; RECORD_BYTES];
        record_file
            .read_exact_at(&mut bytes, 0)
            .map_err(at(&path))?;
        let record = LayerRecord::decode(&bytes).ok_or(Error::BadLayer {
            path: path.clone(),
            reason: "unreadable record",
        })?;
        let token = Token::read(&record_file).map_err(at(&path))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let upper = openat(CWD, path.join(UPPER), flags, Mode::empty())
            .map_err(|errno| at(&path)(errno.into()))?;
        Ok(Layer {
            path,
            upper,
            lock,
            record_file,
            record,
            token,
        })
    }

    pub fn record(&self) -> &LayerRecord {
        &self.record
    }

    /// The random name for our own work in this layer. It is recorded outside of the upper, so that commands cannot know it.
    /// Layers of earlier versions have none.
    pub fn token(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.0.as_str())
    }

    pub fn upper_path(&self) -> PathBuf {
        self.path.join(UPPER)
    }

    pub fn work_path(&self) -> PathBuf {
        self.path.join(WORK)
    }

    /// A scratch directory of this layer, for commands that must not see the vault's.
    pub fn own_scratch(&self) -> Result<PathBuf> {
        let path = self.path.join(SCRATCH);
        if !path.is_dir() {
            make_directory(&path, 0o1777).map_err(at(&path))?;
        }
        Ok(path)
    }

    /// Makes a directory for files that are shown to commands beside the view, and that only the daemon writes. It goes with the
    /// layer.
    pub fn make_shown(&self) -> Result<PathBuf> {
        let path = self.path.join(SHOWN);
        // Of the sandbox before it: a mount has one after the other in its layer.
        let _ = std::fs::remove_dir_all(&path);
        make_directory(&path, 0o755).map_err(at(&path))?;
        Ok(path)
    }

    /// The upper directory, as an O_PATH descriptor: opening it needs permission.
    pub fn upper(&self) -> BorrowedFd<'_> {
        self.upper.as_fd()
    }

    /// A descriptor that holds the layer's lock as long as any process has it open.
    pub fn hold(&self) -> Result<OwnedFd> {
        self.lock
            .try_clone()
            .map(OwnedFd::from)
            .map_err(at(&self.path))
    }

    /// Makes a layer without uncommitted changes a draft again, to be filled up to `head`.
    pub fn redraft(&mut self, head: RootId) -> Result<()> {
        let renamed = std::fs::rename(self.path.join(RECORD), self.path.join(DRAFT));
        renamed.map_err(at(&self.path))?;
        (self.record.last_commit, self.record.pending) = (head, head);
        self.save()
    }

    /// Makes a draft a layer that is used.
    pub fn make_ready(&self) -> Result<()> {
        let renamed = std::fs::rename(self.path.join(DRAFT), self.path.join(RECORD));
        renamed.map_err(at(&self.path))
    }

    /// Records that `next` is about to be published: after a crash the head may be either root.
    pub fn begin_commit(&mut self, next: RootId) -> Result<()> {
        self.record.pending = next;
        self.save()
    }

    /// Records that `pending` was published.
    pub fn finish_commit(&mut self) -> Result<()> {
        self.record.last_commit = self.record.pending;
        self.save()
    }

    fn save(&self) -> Result<()> {
        self.record_file
            .write_all_at(&self.record.encode(), 0)
            .map_err(at(&self.path))
    }

    /// Releases the layer and leaves it on disk.
    pub fn leave(self, vault: VaultId) -> Found {
        Found {
            vault,
            path: self.path,
        }
    }

    /// Takes the layer out of use by deleting its record; the rest can be deleted at any time.
    pub fn retire(self) -> Result<Retired> {
        match std::fs::remove_file(self.path.join(RECORD)) {
            // A draft was never used.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(at(&self.path))?,
        }
        Ok(Retired { path: self.path })
    }
}

impl Retired {
    /// Deletes the directory.
    pub fn remove(&self, scanner: &Scanner) -> Result<()> {
        remove_directory(&self.path, scanner)
    }
}

fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::create_dir(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// The lock is made last and the record removed first.
fn is_in_use(path: &Path) -> bool {
    path.join(RECORD).exists() && path.join(LOCK).exists()
}

fn wait_for_lock(lock: &File, path: &Path, patience: Duration) -> Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::LayerInUse {
                    path: path.to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(at(path)(source)),
        }
    }
}

fn remove_directory(path: &Path, scanner: &Scanner) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory =
        openat(CWD, path, flags, Mode::empty()).map_err(|errno| at(path)(errno.into()))?;
    scanner.remove_contents(directory.as_fd())?;
    std::fs::remove_dir(path).map_err(at(path))
}

/// One more than the largest layer number on disk, retired ones included.
fn fresh_number(vault: &Path) -> Result<u64> {
    if !vault.is_dir() {
        return Ok(1);
    }
    let numbers = subdirectories(vault)?;
    let largest = numbers
        .iter()
        .filter_map(|path| u64::from_str_radix(file_name(path)?, 16).ok())
        .max();
    Ok(largest.unwrap_or(0) + 1)
}

/// The vault may have been deleted meanwhile.
fn unless_gone(found: Result<Vec<PathBuf>>) -> Result<Vec<PathBuf>> {
    match found {
        Err(Error::Layer { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(Vec::new())
        }
        found => found,
    }
}

fn subdirectories(path: &Path) -> Result<Vec<PathBuf>> {
    let mut directories = Vec::new();
    for item in std::fs::read_dir(path).map_err(at(path))? {
        let item = item.map_err(at(path))?;
        if item.file_type().map_err(at(path))?.is_dir() {
            directories.push(item.path());
        }
    }
    Ok(directories)
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn set_mtime(path: &Path, meta: &Meta) -> io::Result<()> {
    use rustix::fs::{AtFlags, Timespec, Timestamps, utimensat};
    let time = Timespec {
        tv_sec: meta.mtime.secs,
        tv_nsec: meta.mtime.nanos.into(),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(utimensat(CWD, path, &times, AtFlags::empty())?)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Layer { path, source }
}

#[cfg(test)]
mod tests;
