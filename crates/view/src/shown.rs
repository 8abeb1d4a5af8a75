//! Attributes of stored entries, for all views.

use avfs_fuse::{FileAttr, Io};
use avfs_vault::{Entry, Kind, Meta, Time, Trees};
use rustix::fs::{FileType, Timespec};
use rustix::io::Errno;

use crate::Owner;

/// What a view adds to the stored attributes.
pub struct Seen {
    pub number: u64,
    pub kind: FileType,
    pub size: u64,
    /// Stored bytes, without holes.
    pub data: u64,
    pub links: u32,
    pub owner: Owner,
}

pub fn attr_of_stored(seen: Seen, meta: &Meta) -> FileAttr {
    FileAttr {
        number: seen.number,
        kind: seen.kind,
        mode: meta.mode & 0o7777,
        size: seen.size,
        blocks: seen.data.div_ceil(512),
        atime: timespec(meta.mtime),
        mtime: timespec(meta.mtime),
        ctime: timespec(meta.ctime),
        links: seen.links,
        uid: seen.owner.uid,
        gid: seen.owner.gid,
        device: 0,
    }
}

/// The attributes of a directory without an entry.
pub fn bare_directory(number: u64, owner: Owner) -> FileAttr {
    let epoch = timespec(Time { secs: 0, nanos: 0 });
    FileAttr {
        number,
        kind: FileType::Directory,
        mode: 0o555,
        size: 0,
        blocks: 0,
        atime: epoch,
        mtime: epoch,
        ctime: epoch,
        links: 2,
        uid: owner.uid,
        gid: owner.gid,
        device: 0,
    }
}

pub fn kind_of_stored(entry: &Entry) -> FileType {
    match entry.kind {
        Kind::File { .. } => FileType::RegularFile,
        Kind::Directory { .. } => FileType::Directory,
        Kind::Symlink { .. } => FileType::Symlink,
        Kind::Fifo => FileType::Fifo,
    }
}

/// How many bytes of a stored file are not holes.
pub fn data_of_stored(trees: &Trees, entry: &Entry) -> u64 {
    let data = match entry.kind {
        Kind::File { content, size, .. } => trees.data_size(content, size).ok(),
        Kind::Directory { .. } | Kind::Symlink { .. } | Kind::Fifo => None,
    };
    // Damage is reported when the file is read.
    data.unwrap_or_else(|| entry.size())
}

/// Where the next data or the next hole of a stored file begins.
pub fn seek(trees: &Trees, entry: &Entry, from: u64, whence: u32) -> Io<u64> {
    let Kind::File { content, size, .. } = entry.kind else {
        return Err(Errno::INVAL);
    };
    if from >= size {
        return Err(Errno::NXIO);
    }
    match whence as i32 {
        libc::SEEK_DATA => {
            let found = trees.next_data(content, size, from);
            found.map_err(|_| Errno::IO)?.ok_or(Errno::NXIO)
        }
        libc::SEEK_HOLE => {
            let found = trees.next_hole(content, size, from);
            found.map_err(|_| Errno::IO)
        }
        _ => Err(Errno::INVAL),
    }
}

/// Up to `size` bytes of a stored file.
pub fn read(trees: &Trees, entry: &Entry, offset: u64, size: u32) -> Io<Vec<u8>> {
    let Kind::File {
        content,
        size: total,
        ..
    } = &entry.kind
    else {
        return Err(Errno::INVAL);
    };
    let length = total.saturating_sub(offset).min(u64::from(size)) as usize;
    if length == 0 {
        return Ok(Vec::new());
    }
    let read = trees.read(*content, offset, length);
    read.map_err(|_| Errno::IO)
}

pub fn timespec(time: Time) -> Timespec {
    Timespec {
        tv_sec: time.secs,
        tv_nsec: time.nanos.into(),
    }
}

/// Attribute names, each followed by a zero byte.
pub fn name_list(names: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        list.extend_from_slice(name.as_ref());
        list.push(0);
    }
    list
}
