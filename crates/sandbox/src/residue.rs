//! What commands leave that no process holds: System V objects, message queues, files in `/dev/shm`. It is memory, so
//! it is removed when the last command of a sandbox has ended.

use std::ffi::{CString, c_int};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, RenameFlags, chmodat, open, openat, renameat_with, unlinkat,
};
use rustix::io::Errno;

/// Where to look for it.
pub(crate) struct Residue {
    /// The mqueue file system, if the kernel has it.
    queues: Option<OwnedFd>,
    /// `/dev/shm`.
    memory: OwnedFd,
}

/// More rounds than a size-limited file system can need.
const ROUNDS: usize = 1 << 20;

impl Residue {
    /// `queues` is the mqueue file system.
    pub(crate) fn new(queues: Option<OwnedFd>) -> Result<Residue, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let memory = open("/dev/shm", flags, Mode::empty())?;
        Ok(Residue { queues, memory })
    }

    /// Removes everything. No process that could add more is alive.
    pub(crate) fn remove(&self) {
        remove_segments();
        remove_semaphores();
        remove_messages();
        if let Some(queues) = &self.queues {
            empty(queues.as_fd());
        }
        empty(self.memory.as_fd());
    }
}

/// The ids in one of the kernel's tables of System V objects.
fn ids(table: &str) -> Vec<c_int> {
    let text = fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap_or_default();
    let lines = text.lines().skip(1);
    lines
        .filter_map(|line| line.split_whitespace().nth(1)?.parse().ok())
        .collect()
}

fn remove_segments() {
    for id in ids("shm") {
        // SAFETY: an operation on numbers.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

fn remove_semaphores() {
    for id in ids("sem") {
        // SAFETY: an operation on numbers.
        unsafe { libc::semctl(id, 0, libc::IPC_RMID) };
    }
}

fn remove_messages() {
    for id in ids("msg") {
        // SAFETY: an operation on numbers.
        unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Removes the content of a directory, however deep, with a bounded number of descriptors: the entries of a
/// subdirectory are moved up into `top` before it is removed.
fn empty(top: BorrowedFd<'_>) {
    let mut number = 0_u64;
    for _ in 0..ROUNDS {
        let names = names_in(top, c".");
        if names.is_empty() {
            return;
        }
        for name in names {
            let removed = unlinkat(top, &name, AtFlags::empty())
                .or_else(|_| unlinkat(top, &name, AtFlags::REMOVEDIR));
            if removed.is_ok() {
                continue;
            }
            // This user owns it, but its mode may forbid reading.
            let _ = chmodat(top, &name, Mode::RWXU, AtFlags::empty());
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(dir) = openat(top, &name, flags, Mode::empty()) else {
                continue;
            };
            for inner in names_in(dir.as_fd(), c".") {
                number += 1;
                let outer = format!(".{number}");
                // A directory must be writable to be renamed.
                let _ = chmodat(&dir, &inner, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW);
                // An existing name is tried again in the next round.
                let _ = renameat_with(&dir, &inner, top, outer, RenameFlags::NOREPLACE);
            }
        }
    }
}

fn names_in(at: BorrowedFd<'_>, path: &std::ffi::CStr) -> Vec<CString> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open_again = || {
        let _ = chmodat(
            at,
            path,
            Mode::RWXU | Mode::RWXG | Mode::RWXO | Mode::SVTX,
            AtFlags::empty(),
        );
        openat(at, path, flags, Mode::empty())
    };
    let Ok(dir) = openat(at, path, flags, Mode::empty()).or_else(|_| open_again()) else {
        return Vec::new();
    };
    let entries = Dir::new(dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_owned());
    names
        .filter(|name| !matches!(name.to_bytes(), b"." | b".."))
        .collect()
}
