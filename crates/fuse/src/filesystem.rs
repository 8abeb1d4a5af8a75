//! The trait of a filesystem that answers requests.

use bitflags::bitflags;
use rustix::fs::{FileType, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::listing::{Listing, ListingPlus};

pub type Io<T> = Result<T, Errno>;

/// The caller, in the ids of the mount's user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
}

/// A name and the directory in which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    pub parent: u64,
    pub name: &'a [u8],
}

/// The filesystem's handle of something open. The kernel sends 0 if nothing was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileHandle(pub u64);

/// The attributes of `stat`. The inode number is also the node number.
#[derive(Debug, Clone, Copy)]
pub struct FileAttr {
    pub number: u64,
    pub kind: FileType,
    /// The permissions, without the file type.
    pub mode: u32,
    pub size: u64,
    /// Of 512 bytes.
    pub blocks: u64,
    pub atime: Timespec,
    pub mtime: Timespec,
    pub ctime: Timespec,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    /// In the kernel's 32-bit encoding.
    pub device: u32,
}

/// The attributes that `setattr` changes.
#[derive(Debug, Default)]
pub struct NewAttributes {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    /// As `utimensat` takes them: each may be "now", or left as it is.
    pub times: Option<Timestamps>,
    /// The caller is unprivileged and truncates: clear set-user-id and set-group-id.
    pub kill_privileges: bool,
}

/// The result of `statfs`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    pub block: u32,
    pub blocks: u64,
    pub free: u64,
    pub available: u64,
    pub files: u64,
    pub files_free: u64,
}

bitflags! {
    /// Flags of a write.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct WriteFlags: u32 {
        /// The writer is unprivileged: clear set-user-id and set-group-id.
        const KILL_PRIVILEGES = 1 << 2;
        const _ = !0;
    }
}

/// Answers requests, on several threads at once.
///
/// The default methods answer ENOSYS, with the usual effect in the kernel: it opens files without requests, or returns
/// EOPNOTSUPP to the caller. Every [`FileAttr`] in the answer for a name adds one reference to that node; `forget` drops
/// references.
#[expect(
    unused_variables,
    reason = "the names tell what an implementation is given"
)]
pub trait Filesystem: Send + Sync + 'static {
    /// `None`: there is no such name, and the kernel may cache that.
    fn lookup(&self, name: Name<'_>) -> Io<Option<FileAttr>>;

    fn forget(&self, node: u64, times: u64);

    fn getattr(&self, node: u64) -> Io<FileAttr>;

    fn setattr(&self, node: u64, handle: Option<FileHandle>, new: &NewAttributes) -> Io<FileAttr> {
        Err(Errno::NOSYS)
    }

    fn readlink(&self, node: u64) -> Io<Vec<u8>> {
        Err(Errno::NOSYS)
    }

    fn mknod(&self, caller: Caller, name: Name<'_>, mode: u32, device: u32) -> Io<FileAttr> {
        Err(Errno::NOSYS)
    }

    fn mkdir(&self, caller: Caller, name: Name<'_>, mode: u32) -> Io<FileAttr> {
        Err(Errno::NOSYS)
    }

    fn symlink(&self, caller: Caller, name: Name<'_>, target: &[u8]) -> Io<FileAttr> {
        Err(Errno::NOSYS)
    }

    fn link(&self, node: u64, name: Name<'_>) -> Io<FileAttr> {
        Err(Errno::NOSYS)
    }

    fn unlink(&self, name: Name<'_>) -> Io<()> {
        Err(Errno::NOSYS)
    }

    fn rmdir(&self, name: Name<'_>) -> Io<()> {
        Err(Errno::NOSYS)
    }

    fn rename(&self, old: Name<'_>, new: Name<'_>, flags: RenameFlags) -> Io<()> {
        Err(Errno::NOSYS)
    }

    fn create(
        &self,
        caller: Caller,
        name: Name<'_>,
        mode: u32,
        flags: u32,
    ) -> Io<(FileAttr, FileHandle)> {
        Err(Errno::NOSYS)
    }

    /// An open unnamed file; `link` may name it. `directory` is where it belongs.
    fn tmpfile(
        &self,
        caller: Caller,
        directory: u64,
        mode: u32,
        flags: u32,
    ) -> Io<(FileAttr, FileHandle)> {
        Err(Errno::NOSYS)
    }

    fn open(&self, node: u64, flags: u32) -> Io<FileHandle> {
        Err(Errno::NOSYS)
    }

    fn read(&self, node: u64, handle: FileHandle, offset: u64, size: u32) -> Io<Vec<u8>> {
        Err(Errno::NOSYS)
    }

    /// How many bytes were written.
    fn write(&self, handle: FileHandle, offset: u64, data: &[u8], flags: WriteFlags) -> Io<u32> {
        Err(Errno::NOSYS)
    }

    /// Of files and directories.
    fn release(&self, handle: FileHandle) {}

    fn fsync(&self, handle: FileHandle, data_only: bool) -> Io<()> {
        Err(Errno::NOSYS)
    }

    fn fallocate(&self, handle: FileHandle, offset: u64, length: u64, mode: u32) -> Io<()> {
        Err(Errno::NOSYS)
    }

    /// Only SEEK_DATA and SEEK_HOLE are sent.
    fn lseek(&self, node: u64, handle: FileHandle, offset: u64, whence: u32) -> Io<u64> {
        Err(Errno::NOSYS)
    }

    /// How many bytes were copied.
    fn copy_file_range(
        &self,
        from: (FileHandle, u64),
        to: (FileHandle, u64),
        length: u64,
    ) -> Io<u64> {
        Err(Errno::NOSYS)
    }

    fn opendir(&self, node: u64) -> Io<FileHandle> {
        Err(Errno::NOSYS)
    }

    /// Adds the entries after position `after`, until the listing is full.
    fn readdir(&self, node: u64, handle: FileHandle, after: u64, into: &mut Listing) -> Io<()> {
        Err(Errno::NOSYS)
    }

    /// Lists as `readdir` does, and looks up each name except `.` and `..`, as `lookup` would.
    fn readdirplus(
        &self,
        node: u64,
        handle: FileHandle,
        after: u64,
        into: &mut ListingPlus,
    ) -> Io<()> {
        Err(Errno::NOSYS)
    }

    fn fsyncdir(&self, node: u64) -> Io<()> {
        Err(Errno::NOSYS)
    }

    fn statfs(&self) -> Io<Statistics> {
        Err(Errno::NOSYS)
    }

    fn setxattr(&self, node: u64, name: &[u8], value: &[u8], flags: u32) -> Io<()> {
        Err(Errno::NOSYS)
    }

    fn getxattr(&self, node: u64, name: &[u8]) -> Io<Vec<u8>> {
        Err(Errno::NOSYS)
    }

    /// All names, each followed by a zero byte.
    fn listxattr(&self, node: u64) -> Io<Vec<u8>> {
        Err(Errno::NOSYS)
    }

    fn removexattr(&self, node: u64, name: &[u8]) -> Io<()> {
        Err(Errno::NOSYS)
    }
}
