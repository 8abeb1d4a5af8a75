//! Operations on single names and open files of the upper directory, all through descriptors.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Statx, StatxFlags, Timespec,
    Timestamps, Uid, XattrFlags, chmod, chownat, fchmod, fchown, fgetxattr, flistxattr,
    fremovexattr, fsetxattr, futimens, getxattr, listxattr, mknodat, openat2, removexattr,
    renameat, renameat_with, setxattr, statx, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use avfs_vault::{Content, Entry, Kind, Meta, Trees};

use super::attributes::stored_times;
use crate::Owner;
use crate::scan::MarkNames;

pub use avfs_fuse::Io;

/// The largest value that the kernel takes for an extended attribute.
const XATTR_MAX: usize = 65536;

/// Opens one name in `directory`, without following a link.
pub fn open(directory: impl AsFd, name: &[u8], flags: OFlags, mode: Mode) -> Io<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    openat2(directory, name, flags, mode, resolve)
}

/// A directory to work in, as O_PATH; opening it needs no read permission.
pub fn open_directory(parent: impl AsFd, name: &[u8]) -> Io<OwnedFd> {
    open(
        parent,
        name,
        OFlags::PATH | OFlags::DIRECTORY,
        Mode::empty(),
    )
}

pub fn stat(directory: impl AsFd, name: &[u8]) -> Io<Statx> {
    statx(
        directory,
        name,
        AtFlags::SYMLINK_NOFOLLOW,
        StatxFlags::BASIC_STATS,
    )
}

pub fn stat_open(file: impl AsFd) -> Io<Statx> {
    statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
}

pub fn file_type(stat: &Statx) -> FileType {
    FileType::from_raw_mode(u32::from(stat.stx_mode))
}

pub fn mode(stat: &Statx) -> u32 {
    u32::from(stat.stx_mode) & 0o7777
}

/// A whiteout.
pub fn is_whiteout(stat: &Statx) -> bool {
    file_type(stat) == FileType::CharacterDevice
        && stat.stx_rdev_major == 0
        && stat.stx_rdev_minor == 0
}

pub fn make_whiteout(directory: impl AsFd, name: &[u8]) -> Io<()> {
    mknodat(directory, name, FileType::CharacterDevice, Mode::empty(), 0)
}

/// The path that reopens an open descriptor.
pub fn again(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// Both times of a file.
pub fn times_of(stat: &Statx) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: stat.stx_atime.tv_sec,
            tv_nsec: stat.stx_atime.tv_nsec.into(),
        },
        last_modification: Timespec {
            tv_sec: stat.stx_mtime.tv_sec,
            tv_nsec: stat.stx_mtime.tv_nsec.into(),
        },
    }
}

/// Does `work` in a directory and restores the directory's times.
pub fn keeping_times<T>(directory: &OwnedFd, work: impl FnOnce() -> Io<T>) -> Io<T> {
    let before = times_of(&stat_open(directory)?);
    let done = work()?;
    // The work is done, even if the times cannot be restored.
    let _ = utimensat(rustix::fs::CWD, again(directory), &before, AtFlags::empty());
    Ok(done)
}

/// Does `work`, which adds or removes names, even if the directory's mode forbids it.
///
/// A copy-up or a hidden rename needs no write permission of the view's user.
pub fn overriding<T>(directory: &OwnedFd, work: impl Fn() -> Io<T>) -> Io<T> {
    match work() {
        Err(Errno::ACCESS) => {}
        outcome => return outcome,
    }
    let before = mode(&stat_open(directory)?);
    chmod(again(directory), Mode::from_raw_mode(before | 0o700))?;
    let outcome = work();
    chmod(again(directory), Mode::from_raw_mode(before))?;
    outcome
}

/// A hidden name for unfinished work.
pub fn unfinished_name(prefix: &[u8]) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = prefix.to_vec();
    name.extend_from_slice(format!("view-{}-{number}", std::process::id()).as_bytes());
    name
}

/// Puts a whiteout at `name`, atomically.
pub fn cover(directory: &OwnedFd, name: &[u8], prefix: &[u8]) -> Io<()> {
    let temporary = unfinished_name(prefix);
    make_whiteout(directory, &temporary)?;
    renameat(directory, &temporary, directory, name).inspect_err(|_| {
        let _ = unlinkat(directory, &temporary, AtFlags::empty());
    })
}

/// Renames, leaving a whiteout at the old name.
pub fn rename_covering((from, old): (&OwnedFd, &[u8]), (to, new): (&OwnedFd, &[u8])) -> Io<()> {
    match renameat_with(from, old, to, new, RenameFlags::WHITEOUT) {
        // Not every filesystem has RENAME_WHITEOUT.
        Err(Errno::INVAL) => {
            renameat(from, old, to, new)?;
            make_whiteout(from, old)
        }
        outcome => outcome,
    }
}

/// The extended attributes by which overlayfs marks directories.
#[derive(Clone, Copy)]
pub struct Marks {
    pub opaque: &'static str,
    pub redirect: &'static str,
}

impl Marks {
    pub fn new(names: MarkNames) -> Marks {
        match names {
            MarkNames::Trusted => Marks {
                opaque: "trusted.overlay.opaque",
                redirect: "trusted.overlay.redirect",
            },
            MarkNames::User => Marks {
                opaque: "user.overlay.opaque",
                redirect: "user.overlay.redirect",
            },
        }
    }

    /// Marks the directory as opaque.
    pub fn set_opaque(&self, directory: &OwnedFd) -> Io<()> {
        overriding(directory, || {
            setxattr(again(directory), self.opaque, b"y", XattrFlags::empty())
        })
    }

    /// Redirects the directory to the base's directory at `origin`.
    pub fn set_redirect(&self, directory: &OwnedFd, origin: &[u8]) -> Io<()> {
        overriding(directory, || {
            setxattr(again(directory), self.redirect, origin, XattrFlags::empty())
        })
    }
}

/// A file in the upper: an open file, or a name in a directory.
#[derive(Clone)]
pub enum Reach {
    Open(Arc<File>),
    Name {
        directory: Arc<OwnedFd>,
        name: Vec<u8>,
    },
}

/// A [`Reach`] for calls that have no `*at` form: an open file, or its path in `/proc/self/fd`.
enum Held<'a> {
    Open(&'a File),
    Path(
        String,
        #[expect(dead_code, reason = "the path is good only while it is open")] OwnedFd,
    ),
}

impl Reach {
    pub fn stat(&self) -> Io<Statx> {
        match self {
            Reach::Open(file) => stat_open(file),
            Reach::Name { directory, name } => stat(directory, name),
        }
    }

    fn hold(&self) -> Io<Held<'_>> {
        Ok(match self {
            Reach::Open(file) => Held::Open(file),
            Reach::Name { directory, name } => {
                let opened = open(directory, name, OFlags::PATH, Mode::empty())?;
                Held::Path(again(&opened), opened)
            }
        })
    }

    pub fn chmod(&self, mode: u32) -> Io<()> {
        let mode = Mode::from_raw_mode(mode & 0o7777);
        match self.hold()? {
            Held::Open(file) => fchmod(file, mode),
            Held::Path(path, _) => chmod(path, mode),
        }
    }

    pub fn chown(&self, uid: Option<u32>, gid: Option<u32>) -> Io<()> {
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        match self {
            Reach::Open(file) => fchown(file, uid, gid),
            Reach::Name { directory, name } => chownat(
                directory,
                name.as_slice(),
                uid,
                gid,
                AtFlags::SYMLINK_NOFOLLOW,
            ),
        }
    }

    pub fn set_times(&self, times: &Timestamps) -> Io<()> {
        match self {
            Reach::Open(file) => futimens(file, times),
            Reach::Name { directory, name } => {
                utimensat(directory, name.as_slice(), times, AtFlags::SYMLINK_NOFOLLOW)
            }
        }
    }

    pub fn get_xattr(&self, name: &[u8]) -> Io<Vec<u8>> {
        let mut value = vec![0; XATTR_MAX];
        let length = match self.hold()? {
            Held::Open(file) => fgetxattr(file, name, value.as_mut_slice())?,
            Held::Path(path, _) => getxattr(path, name, value.as_mut_slice())?,
        };
        value.truncate(length);
        Ok(value)
    }

    /// All attribute names, each followed by a zero byte.
    pub fn list_xattrs(&self) -> Io<Vec<u8>> {
        let mut names = vec![0; XATTR_MAX];
        let length = match self.hold()? {
            Held::Open(file) => flistxattr(file, names.as_mut_slice())?,
            Held::Path(path, _) => listxattr(path, names.as_mut_slice())?,
        };
        names.truncate(length);
        Ok(names)
    }

    pub fn set_xattr(&self, name: &[u8], value: &[u8], flags: XattrFlags) -> Io<()> {
        match self.hold()? {
            Held::Open(file) => fsetxattr(file, name, value, flags),
            Held::Path(path, _) => setxattr(path, name, value, flags),
        }
    }

    pub fn remove_xattr(&self, name: &[u8]) -> Io<()> {
        match self.hold()? {
            Held::Open(file) => fremovexattr(file, name),
            Held::Path(path, _) => removexattr(path, name),
        }
    }

    /// Opens the file again.
    pub fn reopen(&self, flags: OFlags) -> Io<File> {
        let opened = match self {
            Reach::Open(file) => {
                rustix::fs::open(again(file), flags | OFlags::CLOEXEC, Mode::empty())?
            }
            Reach::Name { directory, name } => open(directory, name, flags, Mode::empty())?,
        };
        Ok(opened.into())
    }
}

/// Copies the first `size` bytes of stored content to an empty file of the upper, holes as holes.
pub fn copy_content(trees: &Trees, file: &File, content: Content, size: u64) -> Io<()> {
    trees
        .write_to(file, content, size)
        .map_err(|error| match error {
            avfs_vault::Error::Write(error) => Errno::from_io_error(&error).unwrap_or(Errno::IO),
            _ => Errno::IO,
        })
}

/// Sets the metadata of a file or directory of the upper to that of a tree's entry.
pub fn copy_metadata(file: impl AsFd, meta: &Meta, owner: Option<Owner>) -> Io<()> {
    for (name, value) in &meta.xattrs {
        match fsetxattr(&file, name, value, XattrFlags::empty()) {
            // Overlayfs also skips attributes that the upper's filesystem cannot store.
            Ok(()) | Err(Errno::NOTSUP) => {}
            Err(error) => return Err(error),
        }
    }
    if let Some(Owner { uid, gid }) = owner {
        fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    fchmod(&file, Mode::from_raw_mode(meta.mode & 0o7777))?;
    futimens(&file, &stored_times(meta))
}

/// Makes a symbolic link or FIFO of a tree in the upper.
pub fn copy_special(
    parent: &Arc<OwnedFd>,
    name: &[u8],
    entry: &Entry,
    owner: Option<Owner>,
) -> Io<()> {
    match &entry.kind {
        Kind::Symlink { target } => symlinkat(target.as_slice(), parent, name)?,
        Kind::Fifo => mknodat(parent, name, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?,
        Kind::File { .. } | Kind::Directory { .. } => return Err(Errno::INVAL),
    }
    let reach = Reach::Name {
        directory: parent.clone(),
        name: name.to_vec(),
    };
    if let Some(Owner { uid, gid }) = owner {
        reach.chown(Some(uid), Some(gid))?;
    }
    if matches!(entry.kind, Kind::Fifo) {
        reach.chmod(entry.meta.mode)?;
    }
    reach.set_times(&stored_times(&entry.meta))
}

/// Removes the directory `name`, which has only whiteouts and unfinished work.
pub fn remove_directory(parent: &OwnedFd, name: &[u8]) -> Io<()> {
    let directory = open_directory(parent, name)?;
    chmod(again(&directory), Mode::from_raw_mode(0o700))?;
    let listed = open(
        &directory,
        b".",
        OFlags::RDONLY | OFlags::DIRECTORY,
        Mode::empty(),
    )?;
    crate::remove::remove_contents(listed.as_fd())
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// The entries of a directory of the upper, with their types.
pub fn names(directory: &OwnedFd) -> Io<Vec<(Vec<u8>, FileType, u64)>> {
    // The directory may be unreadable for its owner, so its mode is overridden.
    let opened = overriding(directory, || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        open(directory, b".", flags, Mode::empty())
    })?;
    let mut names = Vec::new();
    for item in rustix::fs::Dir::new(opened)? {
        let item = item?;
        let name = item.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((name.to_vec(), item.file_type(), item.ino()));
        }
    }
    Ok(names)
}
