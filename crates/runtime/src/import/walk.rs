//! Reading a host directory with several threads.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::num::NonZero;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use avfs_vault::{Entry, Kind, Meta, Time, Trees, VaultPath};
use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;

use super::Skipped;
use crate::TransferError;

/// Names handed to a thread at once.
const BATCH: usize = 256;
/// Files up to this size are read in one go; larger ones are streamed.
const WHOLE: u64 = 1 << 20;

/// One thing found on the host, ready to be put.
pub struct Found {
    pub path: VaultPath,
    pub entry: Entry,
    /// Of a file with several names: which file it is.
    pub inode: Option<(u64, u64)>,
}

#[derive(Default)]
pub struct Harvest {
    pub found: Vec<Found>,
    pub skipped: Vec<Skipped>,
}

enum Job {
    /// List the directory called `name`.
    Directory {
        parent: Arc<OwnedFd>,
        name: CString,
        path: VaultPath,
    },
    /// Read these names of a directory.
    Names {
        dir: Arc<OwnedFd>,
        path: VaultPath,
        names: Vec<(CString, FileType)>,
    },
}

/// What all threads share.
pub struct Walk<'a> {
    trees: &'a Trees,
    at: &'a VaultPath,
    owner: (u32, u32),
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// The newest first, so that few directories are open at a time.
    jobs: Vec<Job>,
    busy: usize,
    failed: Option<TransferError>,
}

impl<'a> Walk<'a> {
    pub fn new(trees: &'a Trees, at: &'a VaultPath, owner: (u32, u32)) -> Walk<'a> {
        Walk {
            trees,
            at,
            owner,
            queue: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub fn run(&self, top: Arc<OwnedFd>) -> Result<Harvest, TransferError> {
        let mut harvest = Harvest::default();
        let first = self.list(top, self.at, &mut harvest);
        self.queue().jobs = first;
        let threads = std::thread::available_parallelism()
            .map_or(2, NonZero::get)
            .clamp(2, 8);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.work())).collect();
            for worker in workers {
                match worker.join() {
                    Ok(part) => {
                        harvest.found.extend(part.found);
                        harvest.skipped.extend(part.skipped);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        match self.queue().failed.take() {
            Some(error) => Err(error),
            None => Ok(harvest),
        }
    }

    fn work(&self) -> Harvest {
        let mut harvest = Harvest::default();
        let mut buffer = Vec::new();
        while let Some(job) = self.next_job() {
            let done = self.do_job(job, &mut harvest, &mut buffer);
            let mut queue = self.queue();
            queue.busy -= 1;
            match done {
                Ok(more) => queue.jobs.extend(more),
                Err(error) => {
                    queue.jobs.clear();
                    queue.failed.get_or_insert(error);
                }
            }
            drop(queue);
            self.changed.notify_all();
        }
        harvest
    }

    fn next_job(&self) -> Option<Job> {
        let waiting = |queue: &mut Queue| queue.jobs.is_empty() && queue.busy > 0;
        let waited = self.changed.wait_while(self.queue(), waiting);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        let job = queue.jobs.pop().filter(|_| queue.failed.is_none())?;
        queue.busy += 1;
        Some(job)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A thread that panicked is reported when it is joined.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn do_job(
        &self,
        job: Job,
        harvest: &mut Harvest,
        buffer: &mut Vec<u8>,
    ) -> Result<Vec<Job>, TransferError> {
        match job {
            Job::Directory { parent, name, path } => {
                match self.open_directory(&parent, &name, &path) {
                    Ok((dir, found)) => {
                        harvest.found.push(found);
                        Ok(self.list(Arc::new(dir), &path, harvest))
                    }
                    Err(errno) => {
                        harvest.skipped.push(self.skipped(&path, errno));
                        Ok(Vec::new())
                    }
                }
            }
            Job::Names { dir, path, names } => {
                let mut more = Vec::new();
                for (name, kind) in names {
                    more.extend(self.take_in(&dir, &path, name, kind, harvest, buffer)?);
                }
                Ok(more)
            }
        }
    }

    fn open_directory(
        &self,
        parent: &OwnedFd,
        name: &CString,
        path: &VaultPath,
    ) -> Result<(OwnedFd, Found), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        let mut entry = Entry::directory(0, Time::EPOCH);
        entry.meta = self.meta(&rustix::fs::fstat(&dir)?, user_xattrs(&dir)?);
        Ok((
            dir,
            Found {
                path: path.clone(),
                entry,
                inode: None,
            },
        ))
    }

    /// The names in a directory, in batches.
    fn list(&self, dir: Arc<OwnedFd>, path: &VaultPath, harvest: &mut Harvest) -> Vec<Job> {
        let mut names = Vec::new();
        let mut space = Vec::with_capacity(32 << 10);
        let mut entries = RawDir::new(&*dir, space.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => names.push((entry.file_name().to_owned(), entry.file_type())),
                Err(errno) => {
                    harvest.skipped.push(self.skipped(path, errno));
                    break;
                }
            }
        }
        let batch = |names: &[(CString, FileType)]| {
            let (dir, path) = (dir.clone(), path.clone());
            Job::Names {
                dir,
                path,
                names: names.to_vec(),
            }
        };
        names.chunks(BATCH).map(batch).collect()
    }

    /// Reads one name. What stands in the way of that is skipped; what stands in the way of
    /// storing it is an error.
    fn take_in(
        &self,
        dir: &Arc<OwnedFd>,
        above: &VaultPath,
        name: CString,
        kind: FileType,
        harvest: &mut Harvest,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Job>, TransferError> {
        let path = match above.join(name.to_bytes()) {
            Ok(path) => path,
            Err(error) => {
                let mut skipped = self.skipped(above, Errno::NAMETOOLONG);
                skipped.path = [&skipped.path[..], name.to_bytes()].join(&b'/');
                skipped.reason = error.to_string();
                harvest.skipped.push(skipped);
                return Ok(None);
            }
        };
        let taken = match kind {
            FileType::Unknown => self.stat(dir, &name).and_then(|stat| {
                let kind = FileType::from_raw_mode(stat.st_mode);
                self.read(dir, &name, &path, kind, buffer)
            }),
            kind => self.read(dir, &name, &path, kind, buffer),
        };
        match taken {
            Ok(Taken::Found(found)) => harvest.found.push(found),
            Ok(Taken::Directory) => {
                return Ok(Some(Job::Directory {
                    parent: dir.clone(),
                    name,
                    path,
                }));
            }
            Ok(Taken::Refused(reason)) => {
                let skipped = Skipped {
                    path: self.relative(&path),
                    reason: reason.to_owned(),
                };
                harvest.skipped.push(skipped);
            }
            Err(Trouble::Host(errno)) => harvest.skipped.push(self.skipped(&path, errno)),
            Err(Trouble::Vault(error)) => return Err(error.into()),
        }
        Ok(None)
    }

    fn read(
        &self,
        dir: &OwnedFd,
        name: &CString,
        path: &VaultPath,
        kind: FileType,
        buffer: &mut Vec<u8>,
    ) -> Result<Taken, Trouble> {
        let kind = match kind {
            FileType::Directory => return Ok(Taken::Directory),
            FileType::RegularFile => return self.read_file(dir, name, path, buffer),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
                Kind::Symlink {
                    target: target.into_bytes(),
                }
            }
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => return Ok(Taken::Refused("it is a socket")),
            FileType::BlockDevice | FileType::CharacterDevice => {
                return Ok(Taken::Refused("it is a device"));
            }
            FileType::Unknown => return Ok(Taken::Refused("its kind is not known")),
        };
        let meta = self.meta(&self.stat(dir, name)?, BTreeMap::new());
        let entry = Entry { kind, meta };
        Ok(Taken::Found(Found {
            path: path.clone(),
            entry,
            inode: None,
        }))
    }

    fn read_file(
        &self,
        dir: &OwnedFd,
        name: &CString,
        path: &VaultPath,
        buffer: &mut Vec<u8>,
    ) -> Result<Taken, Trouble> {
        // Without NONBLOCK, a FIFO that has taken the name meanwhile would hold us for ever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(dir, name, flags | OFlags::NOCTTY, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(Taken::Refused("it changed its kind while it was read"));
        }
        let meta = self.meta(&stat, user_xattrs(&fd)?);
        // What is appended while we read is not waited for: it might never end.
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        let (content, size) = if length <= WHOLE {
            read_whole(&fd, length as usize, buffer)?;
            self.trees.write_bytes(buffer)?
        } else {
            self.trees.write_content(&mut File::from(fd).take(length))?
        };
        let inode = (stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino));
        let entry = Entry::file(content, size, meta);
        Ok(Taken::Found(Found {
            path: path.clone(),
            entry,
            inode,
        }))
    }

    fn stat(&self, dir: &OwnedFd, name: &CString) -> Result<Stat, Trouble> {
        Ok(rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub fn meta(&self, stat: &Stat, xattrs: BTreeMap<Vec<u8>, Vec<u8>>) -> Meta {
        Meta {
            mode: stat.st_mode & 0o7777,
            uid: self.owner.0,
            gid: self.owner.1,
            mtime: Time {
                secs: stat.st_mtime,
                nanos: stat.st_mtime_nsec as u32,
            },
            ctime: Time {
                secs: stat.st_ctime,
                nanos: stat.st_ctime_nsec as u32,
            },
            xattrs,
        }
    }

    fn skipped(&self, path: &VaultPath, errno: Errno) -> Skipped {
        let reason = match errno {
            Errno::ACCESS | Errno::PERM => "it cannot be read: permission denied".to_owned(),
            Errno::NOENT => "it vanished while the directory was read".to_owned(),
            other => format!("it cannot be read: {other}"),
        };
        Skipped {
            path: self.relative(path),
            reason,
        }
    }

    fn relative(&self, path: &VaultPath) -> Vec<u8> {
        let relative = path.rebase(self.at, &VaultPath::root());
        relative.map_or_else(Vec::new, |path| path.as_bytes()[1..].to_vec())
    }
}

enum Taken {
    Found(Found),
    Directory,
    Refused(&'static str),
}

enum Trouble {
    /// Skipped and listed.
    Host(Errno),
    /// The end of the import.
    Vault(avfs_vault::Error),
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Trouble {
        Trouble::Host(errno)
    }
}

impl From<avfs_vault::Error> for Trouble {
    fn from(error: avfs_vault::Error) -> Trouble {
        match error {
            avfs_vault::Error::Read(source) => match Errno::from_io_error(&source) {
                Some(errno) => Trouble::Host(errno),
                None => Trouble::Vault(avfs_vault::Error::Read(source)),
            },
            other => Trouble::Vault(other),
        }
    }
}

/// Up to `length` bytes into `buffer`; fewer when the file has shrunk.
fn read_whole(fd: &OwnedFd, length: usize, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    buffer.clear();
    buffer.reserve(length);
    while buffer.len() < length {
        match rustix::io::read(fd, spare_capacity(buffer)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    buffer.truncate(length);
    Ok(())
}

/// The `user.*` attributes, without overlayfs's own, which mean nothing outside one.
pub fn user_xattrs(fd: impl AsFd) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Errno> {
    let mut xattrs = BTreeMap::new();
    let mut names = Vec::with_capacity(1 << 10);
    loop {
        match rustix::fs::flistxattr(&fd, spare_capacity(&mut names)) {
            Ok(_) => break,
            Err(Errno::RANGE) => names = Vec::with_capacity(names.capacity() * 8),
            Err(Errno::NOTSUP) => return Ok(xattrs),
            Err(errno) => return Err(errno),
        }
    }
    for name in names.split(|&byte| byte == 0) {
        if !name.starts_with(b"user.") || name.starts_with(b"user.overlay.") {
            continue;
        }
        let mut value = Vec::with_capacity(rustix::fs::fgetxattr_query(&fd, name)?);
        rustix::fs::fgetxattr(&fd, name, spare_capacity(&mut value))?;
        xattrs.insert(name.to_vec(), value);
    }
    Ok(xattrs)
}
