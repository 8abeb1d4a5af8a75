//! What the caller of a rename or a link meant: its paths, found in its own view.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Statx, StatxFlags, open,
    openat, openat2, readlinkat, statat, statx,
};
use rustix::io::Errno;

use crate::notify::{Listener, Notice};
use crate::sys;

/// The longest path with its end.
const PATH_MAX: usize = 4096;

/// The arguments of a rename, not looked at yet.
pub(super) struct Rename {
    from: Argument,
    to: Argument,
    pub flags: RenameFlags,
}

/// A path in the caller's memory, and where it starts when it is relative.
struct Argument {
    dir: i32,
    address: u64,
}

/// A name in a directory that is held open.
pub(super) struct RenameEnd {
    pub dir: OwnedFd,
    pub name: CString,
}

/// Both names of a rename of a directory within the vault, or of an exchange with one.
pub(super) struct Names {
    pub from: RenameEnd,
    pub to: RenameEnd,
}

/// Understands the arguments; nothing when the call is not a rename.
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

/// The working directory, as an argument has it.
const HERE: u64 = libc::AT_FDCWD.cast_unsigned() as u64;

/// Inode numbers from here on are of stored files: those of new ones are the disk's, and far smaller.
const STORED: u64 = 1 << 60;

/// Whether git is about to give a stored file a second name.
///
/// The new name would show another inode number than the old one did: overlayfs can note where a
/// copied file came from only when root mounts it. `git clone` compares the two and dies of it;
/// when links cannot be made, it copies. Other tools compare nothing, and get their link.
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
    /// Whether a directory seems to get another name; cheap, and asked for every rename.
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

    /// Finds both names in the caller's view.
    ///
    /// Nothing when the caller is gone, or when the kernel's own answer is the right one.
    pub(super) fn find(&self, listener: &Listener, notice: &Notice, top: &Statx) -> Option<Names> {
        let process = format!("/proc/{}", notice.thread);
        let process = open(process, BASE, Mode::empty()).ok()?;
        // Once the call is known to wait still, this descriptor is its caller's for good.
        if !listener.waits(notice.id) {
            return None;
        }
        // No command can have a root of its own; if one had, its paths would mean other files.
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
        // The kernel looks at the lower half only.
        let dir = (dir as u32).cast_signed();
        Argument { dir, address }
    }

    /// What the path seems to lead to.
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

    /// The path as it is now in the caller's memory.
    fn read(&self, thread: i32) -> Option<Vec<u8>> {
        let mut buffer = [0; PATH_MAX];
        let read = sys::read_memory(thread, self.address, &mut buffer).ok()?;
        let end = buffer[..read].iter().position(|byte| *byte == 0)?;
        Some(buffer[..end].to_vec())
    }

    /// The directory and the name in it that the path leads to.
    fn find(&self, process: BorrowedFd<'_>, thread: i32) -> Option<RenameEnd> {
        let path = self.read(thread)?;
        let (parent, name) = split(&path)?;
        let start = match self.dir {
            _ if path.starts_with(b"/") => "root".to_owned(),
            libc::AT_FDCWD => "cwd".to_owned(),
            dir => format!("fd/{dir}"),
        };
        let start = openat(process, start, BASE, Mode::empty()).ok()?;
        // Links such as /proc/self/cwd mean something else here than they do to the caller.
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

/// The directory part of a path and its last name, which must be one that can be renamed.
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
