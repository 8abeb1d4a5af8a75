//! Reading a host directory with several threads.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use avfs_vault::{Entry, Kind, Time, VaultPath, XattrMap};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;

use super::host_file::{read_whole, user_xattrs};
use super::listed::{Above, Listed};
use super::tracked::Tracked;
use super::{Found, HardLinks, Importer, Incoming};
use crate::error::{Error, Result};
use crate::report::Skipped;

/// Names handed to a thread at once.
const BATCH: usize = 256;
/// Files up to this size are read in one go; larger ones are streamed.
const WHOLE: u64 = 1 << 20;

enum Job {
    /// List the directory called `name`.
    Directory {
        above: Arc<Listed>,
        name: CString,
        path: VaultPath,
        /// Why all of it is ignored, but for what is tracked.
        ignored: Option<Arc<str>>,
    },
    /// Read these names of a directory.
    Names {
        dir: Arc<Listed>,
        names: Vec<(CString, FileType)>,
    },
}

/// What all threads share.
pub struct Walk<'a> {
    importer: &'a Importer<'a>,
    /// What errors call the top.
    shown: &'a Path,
    hard_links: HardLinks,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// The newest first, so that few directories are open at a time.
    jobs: Vec<Job>,
    busy: usize,
    failed: Option<Error>,
}

/// Counts a thread as busy with a job. If it panics, the others must not wait for more jobs.
struct Busy<'a>(&'a Walk<'a>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.busy -= 1;
        if std::thread::panicking() {
            queue.jobs.clear();
        }
        drop(queue);
        self.0.changed.notify_all();
    }
}

impl<'a> Walk<'a> {
    pub fn new(importer: &'a Importer<'a>, shown: &'a Path, hard_links: HardLinks) -> Walk<'a> {
        Walk {
            importer,
            shown,
            hard_links,
            queue: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub fn run(&self, top: OwnedFd) -> Result<Incoming> {
        let mut incoming = Incoming::default();
        let first = self.list(
            top,
            self.importer.at.clone(),
            Above::default(),
            &mut incoming,
        );
        self.queue().jobs = first?;
        let threads = std::thread::available_parallelism()
            .map_or(2, NonZero::get)
            .clamp(2, 8);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.work())).collect();
            for worker in workers {
                match worker.join() {
                    Ok(part) => {
                        incoming.found.extend(part.found);
                        incoming.skipped.extend(part.skipped);
                        incoming.bytes = incoming.bytes.saturating_add(part.bytes);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        match self.queue().failed.take() {
            Some(error) => Err(error),
            None => Ok(incoming),
        }
    }

    fn work(&self) -> Incoming {
        let mut incoming = Incoming::default();
        let mut buffer = Vec::new();
        while let Some(job) = self.next_job() {
            let _busy = Busy(self);
            match self.do_job(job, &mut incoming, &mut buffer) {
                Ok(more) => self.queue().jobs.extend(more),
                Err(error) => {
                    let mut queue = self.queue();
                    queue.jobs.clear();
                    queue.failed.get_or_insert(error);
                }
            }
        }
        incoming
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

    fn do_job(&self, job: Job, incoming: &mut Incoming, buffer: &mut Vec<u8>) -> Result<Vec<Job>> {
        match job {
            Job::Directory {
                above,
                name,
                path,
                ignored,
            } => match self.open_directory(&above.fd, &name, &path) {
                Ok((dir, found)) => {
                    incoming.push(found);
                    let (rules, tracked) = (above.rules.clone(), above.tracked.clone());
                    let above = Above {
                        rules,
                        ignored,
                        tracked,
                    };
                    self.list(dir, path, above, incoming)
                }
                Err(errno) => {
                    incoming.skipped.push(self.skipped(&path, errno));
                    Ok(Vec::new())
                }
            },
            Job::Names { dir, names } => {
                let mut more = Vec::new();
                for (name, kind) in names {
                    let before = incoming.bytes;
                    more.extend(self.take_in(&dir, name, kind, incoming, buffer)?);
                    self.importer.tally.add(1, incoming.bytes - before)?;
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
        entry.meta = self
            .importer
            .meta(&rustix::fs::fstat(&dir)?, user_xattrs(&dir)?);
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
    fn list(
        &self,
        fd: OwnedFd,
        path: VaultPath,
        above: Above,
        incoming: &mut Incoming,
    ) -> Result<Vec<Job>> {
        let exclusions = &self.importer.exclusions;
        let from_top = self.path_from_top(&path);
        let rules = exclusions.rules_in(&fd, &from_top, above.rules);
        let mut tracked = above.tracked;
        if exclusions.heeds_gitignores() {
            let shown = self.shown.join(OsStr::from_bytes(&self.relative(&path)));
            let own = Tracked::in_directory(self.importer.git, &fd, &from_top, &shown)?;
            tracked = own.map(Arc::new).or(tracked);
        }
        let dir = Arc::new(Listed {
            fd,
            path,
            rules,
            ignored: above.ignored,
            tracked,
        });
        let mut names = Vec::new();
        let mut space = Vec::with_capacity(32 << 10);
        let mut entries = RawDir::new(&dir.fd, space.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => names.push((entry.file_name().to_owned(), entry.file_type())),
                Err(errno) => {
                    incoming.skipped.push(self.skipped(&dir.path, errno));
                    break;
                }
            }
        }
        let batch = |names: &[(CString, FileType)]| Job::Names {
            dir: dir.clone(),
            names: names.to_vec(),
        };
        Ok(names.chunks(BATCH).map(batch).collect())
    }

    /// Reads one name. Failures of the host are skipped and listed; failures of the store end the import.
    fn take_in(
        &self,
        dir: &Arc<Listed>,
        name: CString,
        kind: FileType,
        incoming: &mut Incoming,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Job>> {
        let path = match dir.path.join(name.to_bytes()) {
            Ok(path) => path,
            Err(error) => {
                let mut skipped = self.skipped(&dir.path, Errno::NAMETOOLONG);
                skipped.path = [&skipped.path[..], name.to_bytes()].join(&b'/');
                skipped.reason = error.to_string();
                incoming.skipped.push(skipped);
                return Ok(None);
            }
        };
        let taken = self.take(dir, &name, kind, &path, buffer);
        match taken {
            Ok(Taken::Found(found)) => incoming.push(found),
            Ok(Taken::Directory { ignored }) => {
                return Ok(Some(Job::Directory {
                    above: dir.clone(),
                    name,
                    path,
                    ignored,
                }));
            }
            Ok(Taken::Refused(reason)) => {
                let path = self.relative(&path);
                incoming.skipped.push(Skipped { path, reason });
            }
            Err(Trouble::Host(errno)) => incoming.skipped.push(self.skipped(&path, errno)),
            Err(Trouble::Vault(error)) => return Err(error.into()),
            Err(Trouble::Ended(error)) => return Err(error),
        }
        Ok(None)
    }

    fn take(
        &self,
        dir: &Listed,
        name: &CString,
        kind: FileType,
        path: &VaultPath,
        buffer: &mut Vec<u8>,
    ) -> Result<Taken, Trouble> {
        let kind = match kind {
            FileType::Unknown => FileType::from_raw_mode(self.stat(&dir.fd, name)?.st_mode),
            kind => kind,
        };
        let is_dir = kind == FileType::Directory;
        let exclusions = &self.importer.exclusions;
        if exclusions.is_aside(name.to_bytes(), || self.stat(&dir.fd, name))? {
            return Ok(Taken::Refused("it is of an unfinished export".into()));
        }
        let from_top = self.path_from_top(path);
        if let Some(reason) = exclusions.refuses(&from_top, is_dir) {
            return Ok(Taken::Refused(reason));
        }
        let ignored = dir.ignores(&from_top, is_dir);
        match ignored {
            Some(reason) if !dir.tracks(&from_top, is_dir) => {
                Ok(Taken::Refused(reason.to_string()))
            }
            ignored if is_dir => Ok(Taken::Directory { ignored }),
            _ => self.read(&dir.fd, name, path, kind, buffer),
        }
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
            FileType::Directory => return Ok(Taken::Directory { ignored: None }),
            FileType::RegularFile => return self.read_file(dir, name, path, buffer),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
                Kind::Symlink {
                    target: target.into_bytes(),
                }
            }
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => return Ok(Taken::Refused("it is a socket".into())),
            FileType::BlockDevice | FileType::CharacterDevice => {
                return Ok(Taken::Refused("it is a device".into()));
            }
            FileType::Unknown => return Ok(Taken::Refused("its kind is not known".into())),
        };
        let meta = self.importer.meta(&self.stat(dir, name)?, XattrMap::new());
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
        if self.hard_links == HardLinks::Kept
            && let Some(found) = self.recall(dir, name, path)?
        {
            return Ok(Taken::Found(found));
        }
        // If a FIFO took the name meanwhile, opening it without NONBLOCK would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(dir, name, flags | OFlags::NOCTTY, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            let reason = "it changed its kind while it was read";
            return Ok(Taken::Refused(reason.into()));
        }
        if self.hard_links == HardLinks::Refused && stat.st_nlink > 1 {
            return Ok(Taken::Refused("it has other names on the host".into()));
        }
        let meta = self.importer.meta(&stat, user_xattrs(&fd)?);
        // Only this many bytes are read: a file that is appended to might never end.
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        (self.importer.admits)(path, length)?;
        let (content, size) = if length <= WHOLE {
            read_whole(&fd, length as usize, buffer)?;
            self.importer.trees.write_bytes(buffer)?
        } else {
            let go_on = &mut |_| self.importer.tally.check().map_err(Trouble::Ended);
            self.importer.trees.write_file(&File::from(fd), go_on)?
        };
        self.importer.cache.learn(&stat, content, &meta.xattrs);
        let entry = Entry::file(content, size, meta);
        Ok(Taken::Found(found_file(path, entry, &stat)))
    }

    /// The file as an earlier import read it, if it is still the same.
    fn recall(
        &self,
        dir: &OwnedFd,
        name: &CString,
        path: &VaultPath,
    ) -> Result<Option<Found>, Trouble> {
        if self.importer.cache.is_empty() {
            return Ok(None);
        }
        let stat = self.stat(dir, name)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let known = self.importer.cache.find(&stat).filter(|_| is_file);
        Ok(known.map(|known| {
            let meta = self.importer.meta(&stat, known.xattrs.clone());
            let entry = Entry::file(known.content(), stat.st_size as u64, meta);
            found_file(path, entry, &stat)
        }))
    }

    fn stat(&self, dir: &OwnedFd, name: &CString) -> Result<Stat, Trouble> {
        Ok(rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
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
        self.path_from_top(path).as_bytes()[1..].to_vec()
    }

    /// `path` counted from the top of what is walked.
    fn path_from_top(&self, path: &VaultPath) -> VaultPath {
        let relative = path.rebase(self.importer.at, &VaultPath::root());
        relative.unwrap_or(VaultPath::root())
    }
}

fn found_file(path: &VaultPath, entry: Entry, stat: &Stat) -> Found {
    Found {
        path: path.clone(),
        entry,
        inode: (stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino)),
    }
}

enum Taken {
    Found(Found),
    Directory { ignored: Option<Arc<str>> },
    Refused(String),
}

enum Trouble {
    /// Skipped and listed.
    Host(Errno),
    /// The end of the import.
    Vault(avfs_vault::Error),
    /// The end of the import because it was cancelled.
    Ended(Error),
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
