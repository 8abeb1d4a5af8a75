//! How something stored looks to the kernel, whichever view shows it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use avfs_vault::{Entry, Kind, Meta, Time};
use fuser::{Errno, FileAttr, FileType, INodeNo, ReplyXattr};

use crate::Owner;

/// What a view says about a stored thing besides what is stored about it.
pub struct Seen {
    pub number: u64,
    pub kind: FileType,
    pub size: u64,
    pub links: u32,
    pub owner: Owner,
}

pub fn attr_of_stored(seen: Seen, meta: &Meta) -> FileAttr {
    FileAttr {
        ino: INodeNo(seen.number),
        size: seen.size,
        blocks: seen.size.div_ceil(512),
        atime: system_time(meta.mtime),
        mtime: system_time(meta.mtime),
        ctime: system_time(meta.ctime),
        crtime: UNIX_EPOCH,
        kind: seen.kind,
        perm: (meta.mode & 0o7777) as u16,
        nlink: seen.links,
        uid: seen.owner.uid,
        gid: seen.owner.gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// The attributes of nothing: a number of 0 is "no such entry", cached like any other answer.
pub fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

pub fn kind_of_stored(entry: &Entry) -> FileType {
    match entry.kind {
        Kind::File { .. } => FileType::RegularFile,
        Kind::Directory { .. } => FileType::Directory,
        Kind::Symlink { .. } => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
    }
}

pub fn system_time(time: Time) -> SystemTime {
    let nanos = Duration::from_nanos(u64::from(time.nanos));
    match u64::try_from(time.secs) {
        Ok(secs) => UNIX_EPOCH + Duration::from_secs(secs) + nanos,
        Err(_) => UNIX_EPOCH - Duration::from_secs(time.secs.unsigned_abs()) + nanos,
    }
}

/// Gives the value, or says how long it is.
pub fn answer_xattr(outcome: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
    match outcome {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() <= size as usize => reply.data(&value),
        Ok(_) => reply.error(Errno::ERANGE),
        Err(errno) => reply.error(errno),
    }
}

/// One name after another, with a final zero each, as a list of attributes has them.
pub fn name_list(names: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        list.extend_from_slice(name.as_ref());
        list.push(0);
    }
    list
}
