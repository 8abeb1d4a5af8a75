//! The arguments of a rename or a link, resolved as its caller would.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Statx, StatxFlags, open,
    openat, openat2, readlinkat, statat, statx,
};
use rustix::io::Errno;

use crate::notify::{Listener, Notice};
use crate::sys;

/// PATH_MAX, with the NUL byte.
const PATH_MAX: usize = 4096;

/// The raw arguments of a rename.
pub(super) struct Rename {
    from: Argument,
    to: Argument,
    pub flags: RenameFlags,
}

/// A path in the caller's memory, and the descriptor that relative paths start from.
struct Argument {
    dir: i32,
    address: u64,
}

/// A name in an open directory.
pub(super) struct RenameEnd {
    pub dir: OwnedFd,
    pub name: CString,
}

/// Both names of a rename of a directory within the vault, or of an exchange with one.
pub(super) struct Names {
    pub from: RenameEnd,
    pub to: RenameEnd,
}

/// Decodes the arguments; `None` if the call is not a rename.
pub(super) fn rename(notice: &Notice) -> Option<Rename> {
    let word = |index: usize| notice.arguments[index];
    let (from, to, flags) = match notice.call {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => (
            Argument::new(HERE, word(0)),
            Argument::new(HERE, word(1)),
            0,
        ),
        libc::SYS_renameat => (
            Argument::new(word(0), word(1)),
            Argument::new(word(2), word(3)),
            0,
        ),
        libc::SYS_renameat2 => (
            Argument::new(word(0), word(1)),
            Argument::new(word(2), word(3)),
            word(4) as u32,
        ),
        _ => return None,
    };
    let flags = RenameFlags::from_bits_retain(flags);
    Some(Rename { from, to, flags })
}

/// AT_FDCWD, as an argument.
const HERE: u64 = libc::AT_FDCWD.cast_unsigned() as u64;

/// Inode numbers from here on are those of stored files; those of new files are the disk's, which are smaller.
const STORED: u64 = 1 << 60;

/// Whether git is about to hard-link a stored file.
///
/// The new link would have another inode number: overlayfs can record the origin of a copied-up file only if root
/// mounted it. `git clone` compares the two numbers and fails; if linking fails, it copies. Other tools do not
/// compare them, and get their link.
pub(super) fn links_stored_file_for_git(notice: &Notice) -> bool {
    let word = |index: usize| notice.arguments[index];
    let from = match notice.call {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link => Argument::new(HERE, word(0)),
        libc::SYS_linkat => Argument::new(word(0), word(1)),
        _ => return false,
    };
    let program = readlinkat(CWD, format!("/proc/{}/exe", notice.thread), Vec::new());
    program.is_ok_and(|path| path.to_bytes().ends_with(b"/git"))
        && from
            .look_up(notice.thread)
            .is_some_and(|found| found.st_ino >= STORED)
}

impl Rename {
    /// Whether a directory seems to be renamed; cheap, and checked for every rename.
    pub(super) fn moves_directory(&self, thread: i32) -> bool {
        let is_directory = |argument: &Argument| {
            let found = argument.look_up(thread);
            found.is_some_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
        };
        is_directory(&self.from) || self.exchanges() && is_directory(&self.to)
    }

    fn exchanges(&self) -> bool {
        self.flags.contains(RenameFlags::EXCHANGE)
    }

    /// Resolves both names as the caller would.
    ///
    /// `None` if the caller is gone, or if the kernel should answer.
    pub(super) fn find(&self, listener: &Listener, notice: &Notice, top: &Statx) -> Option<Names> {
        let process = format!("/proc/{}", notice.thread);
        let process = open(process, BASE, Mode::empty()).ok()?;
        // If the call still waits after this, the descriptor is of the caller, not of another process with its pid.
        if !listener.waits(notice.id) {
            return None;
        }
        // Commands cannot `chroot`; if one could, its paths would name other files.
        if !same_place(&look(process.as_fd(), c"root", AtFlags::empty()).ok()?, top) {
            return None;
        }
        let from = self.from.find(process.as_fd(), notice.thread)?;
        let to = self.to.find(process.as_fd(), notice.thread)?;
        if !listener.waits(notice.id) {
            return None;
        }
        for place in [&from, &to] {
            let found = look(place.dir.as_fd(), c"", AtFlags::EMPTY_PATH).ok()?;
            if found.stx_mnt_id != top.stx_mnt_id {
                return None;
            }
        }
        let moves = from.is_directory() || self.exchanges() && to.is_directory();
        moves.then_some(Names { from, to })
    }
}

impl Argument {
    fn new(dir: u64, address: u64) -> Argument {
        // The kernel uses the lower 32 bits only.
        let dir = (dir as u32).cast_signed();
        Argument { dir, address }
    }

    /// The file that the path seems to name.
    fn look_up(&self, thread: i32) -> Option<Stat> {
        let path = self.read(thread)?;
        let start = match (path.first(), self.dir) {
            (Some(b'/'), _) => String::new(),
            (_, libc::AT_FDCWD) => format!("/proc/{thread}/cwd/"),
            (_, dir) => format!("/proc/{thread}/fd/{dir}/"),
        };
        let path = [start.as_bytes(), &path].concat();
        statat(CWD, path.as_slice(), AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Reads the path from the caller's memory.
    fn read(&self, thread: i32) -> Option<Vec<u8>> {
        let mut buffer = [0; PATH_MAX];
        let read = sys::read_memory(thread, self.address, &mut buffer).ok()?;
        let end = buffer[..read].iter().position(|byte| *byte == 0)?;
        Some(buffer[..end].to_vec())
    }

    /// Resolves the path to a directory and a name in it.
    fn find(&self, process: BorrowedFd<'_>, thread: i32) -> Option<RenameEnd> {
        let path = self.read(thread)?;
        let (parent, name) = split(&path)?;
        let start = match self.dir {
            _ if path.starts_with(b"/") => "root".to_owned(),
            libc::AT_FDCWD => "cwd".to_owned(),
            dir => format!("fd/{dir}"),
        };
        let start = openat(process, start, BASE, Mode::empty()).ok()?;
        // Links such as /proc/self/cwd would be resolved for this process, not for the caller.
        let resolve = ResolveFlags::NO_MAGICLINKS;
        let dir = openat2(start, parent, BASE, Mode::empty(), resolve).ok()?;
        let name = CString::new(name).ok()?;
        Some(RenameEnd { dir, name })
    }
}

const BASE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl RenameEnd {
    pub(super) fn is_directory(&self) -> bool {
        let found = statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
    }
}

/// Splits a path into directory and last name, which must not be `.` or `..`.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.iter().rposition(|byte| *byte != b'/')? + 1;
    let path = &path[..end];
    let start = path
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |at| at + 1);
    let (parent, name) = path.split_at(start);
    let parent = if parent.is_empty() { b"." } else { parent };
    (name != b"." && name != b"..").then_some((parent, name))
}

/// A file and the mount it is on.
pub(super) fn look(
    dir: BorrowedFd<'_>,
    name: &std::ffi::CStr,
    flags: AtFlags,
) -> Result<Statx, Errno> {
    statx(dir, name, flags, StatxFlags::INO | StatxFlags::MNT_ID)
}

fn same_place(one: &Statx, other: &Statx) -> bool {
    let key = |found: &Statx| (found.stx_mnt_id, found.stx_ino);
    key(one) == key(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_at_their_last_name() {
        let split = |path: &'static str| split(path.as_bytes());
        assert_eq!(split("a"), Some((&b"."[..], &b"a"[..])));
        assert_eq!(split("a/b//"), Some((&b"a/"[..], &b"b"[..])));
        assert_eq!(split("/a"), Some((&b"/"[..], &b"a"[..])));
        for path in ["", "/", "a/.", "..", "a/../"] {
            assert_eq!(split(path), None, "{path}");
        }
    }

    #[test]
    fn own_memory_is_read_up_to_what_is_there() {
        let text = c"some/path";
        let argument = Argument {
            dir: libc::AT_FDCWD,
            address: text.as_ptr() as u64,
        };
        let own = std::process::id().cast_signed();
        assert_eq!(argument.read(own).as_deref(), Some(text.to_bytes()));
        let nowhere = Argument { dir: 0, address: 8 };
        assert_eq!(nowhere.read(own), None);
    }
}
