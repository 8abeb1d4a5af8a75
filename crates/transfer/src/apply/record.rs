//! The record of an unfinished apply, kept on disk, and how its steps are undone.

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use avfs_vault::VaultPath;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::aside::{self, DONE, DRAFT};
use crate::error::{Error, Result};
use crate::export::merge;
use crate::host_tree::{HostTree, Stamp, name, rename_new};

/// One change of the host. Numbers name files that are kept aside: `new-N` waits for its place,
/// `old-N` is what was there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Step {
    Remove {
        #[serde(with = "as_bytes")]
        path: VaultPath,
        number: usize,
        stamp: Stamp,
    },
    RemoveDirectory {
        #[serde(with = "as_bytes")]
        path: VaultPath,
        mode: u32,
        /// Something else takes its place. If not, it stays when the host has more in it.
        must_go: bool,
    },
    MakeDirectory {
        #[serde(with = "as_bytes")]
        path: VaultPath,
        mode: u32,
    },
    Create {
        #[serde(with = "as_bytes")]
        path: VaultPath,
        number: usize,
    },
    Replace {
        #[serde(with = "as_bytes")]
        path: VaultPath,
        number: usize,
        stamp: Stamp,
    },
    Chmod {
        #[serde(with = "as_bytes")]
        path: VaultPath,
        from: u32,
        to: u32,
    },
}

/// A path is stored as its bytes.
mod as_bytes {
    use super::*;

    pub fn serialize<S: Serializer>(path: &VaultPath, to: S) -> Result<S::Ok, S::Error> {
        path.as_bytes().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<VaultPath, D::Error> {
        let bytes = Vec::<u8>::deserialize(from)?;
        VaultPath::parse(&bytes).map_err(D::Error::custom)
    }
}

/// All steps of an apply to one directory of the host.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    host_dir: Vec<u8>,
    /// The directory in it where files are kept aside.
    pub aside: String,
    pub steps: Vec<Step>,
}

/// A record on disk.
pub struct Kept {
    pub record: Record,
    file: PathBuf,
}

impl Kept {
    /// Writes the record; from here on a crash undoes the work.
    pub fn write(directory: &Path, host_dir: &Path, aside: &str, steps: Vec<Step>) -> Result<Kept> {
        let record = Record {
            host_dir: host_dir.as_os_str().as_bytes().to_vec(),
            aside: aside.to_owned(),
            steps,
        };
        let file = directory.join(aside);
        let bytes = postcard::to_stdvec(&record).expect("plain data in memory");
        aside::write_whole(&file, &bytes)?;
        Ok(Kept { record, file })
    }

    /// From here on a crash finishes the work.
    pub fn done(mut self) -> Result<Kept> {
        let done = self.file.with_extension(DONE);
        fs::rename(&self.file, &done).map_err(Error::host("write", &self.file))?;
        self.file = done;
        Ok(self)
    }

    pub fn forget(self) -> Result<()> {
        fs::remove_file(&self.file).map_err(Error::host("remove", &self.file))?;
        // A note that stays is removed at the next start: nothing has its inode any more.
        let _ = fs::remove_file(aside::note_of(&self.file));
        Ok(())
    }

    fn read(file: PathBuf) -> Result<Option<Kept>> {
        let bytes = fs::read(&file).map_err(Error::host("read", &file))?;
        match postcard::from_bytes::<Record>(&bytes) {
            Ok(record) if aside::is_own_name(&record.aside) => Ok(Some(Kept { record, file })),
            // Damaged, or none of ours: there is nothing that it could be trusted to undo.
            _ => Ok(None),
        }
    }

    fn is_done(&self) -> bool {
        self.file.extension().is_some_and(|ending| ending == DONE)
    }
}

impl Record {
    pub fn host_dir(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(self.host_dir.clone()))
    }

    /// Undoes the first `count` steps. Each may have been done fully, partly or not at all.
    pub fn undo(&self, host: &HostTree, aside: &OwnedFd, count: usize) -> Result<()> {
        let mut first_failure = None;
        for step in self.steps[..count].iter().rev() {
            if let Err(error) = undo_step(host, aside, step) {
                first_failure.get_or_insert(error);
            }
        }
        first_failure.map_or(Ok(()), Err)
    }
}

fn undo_step(host: &HostTree, aside: &OwnedFd, step: &Step) -> Result<()> {
    let (path, undone) = match step {
        Step::Remove { path, number, .. } => (path, put_back(host, aside, path, *number, false)),
        Step::Replace { path, number, .. } => (path, put_back(host, aside, path, *number, true)),
        Step::RemoveDirectory { path, mode, .. } => {
            let made = host.parent(path).and_then(|parent| {
                rustix::fs::mkdirat(&parent, name(path), Mode::RWXU)?;
                chmod(host, path, *mode)
            });
            (path, made)
        }
        Step::MakeDirectory { path, .. } => {
            let removed = host
                .parent(path)
                .and_then(|parent| rustix::fs::unlinkat(&parent, name(path), AtFlags::REMOVEDIR));
            (path, removed)
        }
        Step::Create { path, number } => {
            let waits = rustix::fs::statat(aside, new_name(*number), AtFlags::SYMLINK_NOFOLLOW);
            let removed = match waits {
                Ok(_) => Ok(()),
                Err(Errno::NOENT) => host
                    .parent(path)
                    .and_then(|parent| rustix::fs::unlinkat(&parent, name(path), AtFlags::empty())),
                Err(errno) => Err(errno),
            };
            (path, removed)
        }
        Step::Chmod { path, from, .. } => (path, chmod(host, path, *from)),
    };
    match undone {
        // The step was not done, or somebody else has put something there.
        Ok(()) | Err(Errno::NOENT | Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => Ok(()),
        Err(errno) => Err(host.failed("put back", path)(errno)),
    }
}

fn put_back(
    host: &HostTree,
    aside: &OwnedFd,
    path: &VaultPath,
    number: usize,
    over: bool,
) -> Result<(), Errno> {
    let old = old_name(number);
    rustix::fs::statat(aside, &old, AtFlags::SYMLINK_NOFOLLOW)?;
    let parent = host.parent(path)?;
    match over {
        true => rustix::fs::renameat(aside, &old, &parent, name(path)),
        false => rename_new(aside, &old[..], &parent, name(path)),
    }
}

/// Changes a mode without following a symlink, also on kernels whose `chmodat` cannot.
pub fn chmod(host: &HostTree, path: &VaultPath, mode: u32) -> Result<(), Errno> {
    let parent = host.parent(path)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(&parent, name(path), flags, Mode::empty()) {
        Ok(file) => rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)),
        // Its mode forbids its owner to read it.
        Err(Errno::ACCESS) => {
            let mode = Mode::from_raw_mode(mode);
            rustix::fs::chmodat(&parent, name(path), mode, AtFlags::SYMLINK_NOFOLLOW)
        }
        Err(errno) => Err(errno),
    }
}

pub fn new_name(number: usize) -> String {
    format!("new-{number}")
}

pub fn old_name(number: usize) -> String {
    format!("old-{number}")
}

/// Settles what exports and applies of a process that died left on the host: undoes what was begun, and removes temporary
/// files of what was finished. What fails is left for the next call.
pub fn finish_interrupted(notes: &Path) {
    let Ok(entries) = fs::read_dir(notes) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.path().extension().is_some_and(|it| it == DRAFT) {
            // A draft was never renamed into place, so no step was done.
            let _ = fs::remove_file(entry.path());
        } else if !aside::is_note(&entry.path())
            && let Ok(Some(kept)) = Kept::read(entry.path())
        {
            let _ = settle(kept);
        }
    }
    aside::settle(notes, &merge);
}

fn settle(kept: Kept) -> Result<()> {
    let host = HostTree::open(&kept.record.host_dir())?;
    let aside = host.path.join(&kept.record.aside);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&host.top, &kept.record.aside, flags, Mode::empty()) {
        Ok(fd) => {
            // Locked while its export runs, which is another home's if this record was copied with a home.
            let held = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive);
            held.map_err(Error::host("take", &aside))?;
            if !kept.is_done() {
                kept.record.undo(&host, &fd, kept.record.steps.len())?;
            }
        }
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(Error::host("open", aside)(errno)),
    }
    clear_away(&host, &kept.record.aside)?;
    kept.forget()
}

/// Removes the directory where files were kept aside.
pub fn clear_away(host: &HostTree, aside: &str) -> Result<()> {
    let name = CString::new(aside).map_err(|_| Errno::INVAL);
    let removed = name.and_then(|name| aside::remove(&host.top, name));
    removed.map_err(Error::host("remove", host.path.join(aside)))
}
