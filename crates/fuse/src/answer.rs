//! Decodes requests, calls the filesystem, encodes answers.

use rustix::fs::{FileType, RenameFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;
use zerocopy::{Immutable, IntoBytes};

use crate::filesystem::{FileAttr, FileHandle, Filesystem, Io, NewAttributes, WriteFlags};
use crate::listing::{Listing, ListingPlus};
use crate::request::Request;
use crate::wire::{self, opcode, opened, valid};

/// How long the kernel may cache an answer: forever, in seconds.
const FOREVER: u64 = 1 << 30;
/// Node numbers are not reused while the kernel knows them.
const GENERATION: u64 = 0;
/// The longest name.
const NAME_MAX: u32 = 255;

/// The answer to the kernel, if it waits for one.
pub enum Answer {
    Awaited(Io<Vec<u8>>),
    NotAwaited,
}

/// Lets the filesystem answer one request.
pub fn answer<F: Filesystem>(filesystem: &F, mut request: Request<'_>) -> Answer {
    match request.header.opcode {
        opcode::FORGET | opcode::BATCH_FORGET => {
            // These requests have no answer, even if they are malformed.
            let _ = forget(filesystem, &mut request);
            Answer::NotAwaited
        }
        _ => Answer::Awaited(dispatch(filesystem, &mut request)),
    }
}

fn dispatch<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    match request.header.opcode {
        opcode::LOOKUP => lookup(filesystem, request),
        opcode::GETATTR => filesystem.getattr(request.header.node).map(attr_out),
        opcode::SETATTR => setattr(filesystem, request),
        opcode::READLINK => filesystem.readlink(request.header.node),
        opcode::SYMLINK => symlink(filesystem, request),
        opcode::MKNOD => mknod(filesystem, request),
        opcode::MKDIR => mkdir(filesystem, request),
        opcode::UNLINK => done(filesystem.unlink(request.name()?)),
        opcode::RMDIR => done(filesystem.rmdir(request.name()?)),
        opcode::RENAME | opcode::RENAME2 => rename(filesystem, request),
        opcode::LINK => link(filesystem, request),
        opcode::OPEN => open(filesystem, request),
        opcode::READ => read(filesystem, request),
        opcode::WRITE => write(filesystem, request),
        opcode::STATFS => statfs(filesystem),
        opcode::RELEASE | opcode::RELEASEDIR => release(filesystem, request),
        opcode::FSYNC => fsync(filesystem, request),
        opcode::SETXATTR => setxattr(filesystem, request),
        opcode::GETXATTR | opcode::LISTXATTR => getxattr(filesystem, request),
        opcode::REMOVEXATTR => removexattr(filesystem, request),
        opcode::OPENDIR => opendir(filesystem, request),
        opcode::READDIR => readdir(filesystem, request),
        opcode::READDIRPLUS => readdirplus(filesystem, request),
        opcode::FSYNCDIR => done(filesystem.fsyncdir(request.header.node)),
        opcode::CREATE => create(filesystem, request),
        opcode::TMPFILE => tmpfile(filesystem, request),
        opcode::FALLOCATE => fallocate(filesystem, request),
        opcode::LSEEK => lseek(filesystem, request),
        opcode::COPY_FILE_RANGE | opcode::COPY_FILE_RANGE_64 => copy_range(filesystem, request),
        opcode::DESTROY => Ok(Vec::new()),
        // After one ENOSYS, the kernel does without it, or uses an older request.
        _ => Err(Errno::NOSYS),
    }
}

fn forget<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<()> {
    if request.header.opcode == opcode::FORGET {
        let asked: wire::ForgetIn = request.take()?;
        filesystem.forget(request.header.node, asked.times);
        return Ok(());
    }
    let asked: wire::BatchForgetIn = request.take()?;
    for _ in 0..asked.count {
        let one: wire::ForgetOne = request.take()?;
        filesystem.forget(one.node, one.times);
    }
    Ok(())
}

fn lookup<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    match filesystem.lookup(request.name()?)? {
        Some(attr) => Ok(entry_out(attr)),
        // Node 0 means "no such name", and is cached like any other answer.
        None => Ok(bytes(wire::EntryOut {
            entry_valid: FOREVER,
            ..Default::default()
        })),
    }
}

fn setattr<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::SetAttrIn = request.take()?;
    let has = |field: u32| asked.valid & field != 0;
    let time = |set: u32, now: u32, secs: i64, nanos: u32| match (has(set), has(now)) {
        (false, _) => special(UTIME_OMIT),
        (true, true) => special(UTIME_NOW),
        (true, false) => Timespec {
            tv_sec: secs,
            tv_nsec: nanos.into(),
        },
    };
    let times = Timestamps {
        last_access: time(
            valid::ATIME,
            valid::ATIME_NOW,
            asked.atime,
            asked.atime_nanos,
        ),
        last_modification: time(
            valid::MTIME,
            valid::MTIME_NOW,
            asked.mtime,
            asked.mtime_nanos,
        ),
    };
    let new = NewAttributes {
        mode: has(valid::MODE).then_some(asked.mode),
        uid: has(valid::UID).then_some(asked.uid),
        gid: has(valid::GID).then_some(asked.gid),
        size: has(valid::SIZE).then_some(asked.size),
        times: has(valid::ATIME | valid::MTIME).then_some(times),
        kill_privileges: has(valid::KILL_PRIVILEGES),
    };
    let handle = has(valid::HANDLE).then_some(FileHandle(asked.handle));
    let changed = filesystem.setattr(request.header.node, handle, &new);
    changed.map(attr_out)
}

fn special(tv_nsec: rustix::fs::Nsecs) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec }
}

fn symlink<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let name = request.name()?;
    let target = request.text()?;
    let made = filesystem.symlink(request.caller(), name, target);
    made.map(entry_out)
}

fn mknod<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::MknodIn = request.take()?;
    let name = request.name()?;
    let made = filesystem.mknod(request.caller(), name, asked.mode, asked.device);
    made.map(entry_out)
}

fn mkdir<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::MkdirIn = request.take()?;
    let name = request.name()?;
    let made = filesystem.mkdir(request.caller(), name, asked.mode);
    made.map(entry_out)
}

fn rename<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let (directory, flags) = if request.header.opcode == opcode::RENAME2 {
        let asked: wire::Rename2In = request.take()?;
        (asked.directory, RenameFlags::from_bits_retain(asked.flags))
    } else {
        let asked: wire::RenameIn = request.take()?;
        (asked.directory, RenameFlags::empty())
    };
    let old = request.name()?;
    let new = request.name_in(directory)?;
    done(filesystem.rename(old, new, flags))
}

fn link<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::LinkIn = request.take()?;
    filesystem.link(asked.node, request.name()?).map(entry_out)
}

fn open<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::OpenIn = request.take()?;
    let handle = filesystem.open(request.header.node, asked.flags)?;
    Ok(bytes(open_out(handle, opened::KEEP_CACHE)))
}

fn opendir<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let handle = filesystem.opendir(request.header.node)?;
    let flags = opened::KEEP_CACHE | opened::CACHE_DIRECTORY;
    Ok(bytes(open_out(handle, flags)))
}

fn create<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::CreateIn = request.take()?;
    let name = request.name()?;
    let made = filesystem.create(request.caller(), name, asked.mode, asked.flags)?;
    Ok(created_out(made))
}

fn tmpfile<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::CreateIn = request.take()?;
    // The kernel appends an empty name.
    let directory = request.header.node;
    let made = filesystem.tmpfile(request.caller(), directory, asked.mode, asked.flags)?;
    Ok(created_out(made))
}

fn read<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::ReadIn = request.take()?;
    let handle = FileHandle(asked.handle);
    let data = filesystem.read(request.header.node, handle, asked.offset, asked.size)?;
    debug_assert!(data.len() <= asked.size as usize);
    Ok(data)
}

fn write<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::WriteIn = request.take()?;
    let data = request.bytes(asked.size)?;
    let flags = WriteFlags::from_bits_retain(asked.write_flags);
    let size = filesystem.write(FileHandle(asked.handle), asked.offset, data, flags)?;
    Ok(bytes(wire::WriteOut { size, padding: 0 }))
}

fn release<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::ReleaseIn = request.take()?;
    filesystem.release(FileHandle(asked.handle));
    Ok(Vec::new())
}

fn fsync<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::FsyncIn = request.take()?;
    let data_only = asked.flags & wire::FSYNC_DATA_ONLY != 0;
    done(filesystem.fsync(FileHandle(asked.handle), data_only))
}

fn fallocate<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::FallocateIn = request.take()?;
    let handle = FileHandle(asked.handle);
    done(filesystem.fallocate(handle, asked.offset, asked.length, asked.mode))
}

fn lseek<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::LseekIn = request.take()?;
    let (node, handle) = (request.header.node, FileHandle(asked.handle));
    let offset = filesystem.lseek(node, handle, asked.offset, asked.whence)?;
    Ok(bytes(wire::LseekOut { offset }))
}

fn copy_range<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::CopyFileRangeIn = request.take()?;
    let from = (FileHandle(asked.from), asked.from_offset);
    let to = (FileHandle(asked.to), asked.to_offset);
    if request.header.opcode == opcode::COPY_FILE_RANGE_64 {
        let copied = filesystem.copy_file_range(from, to, asked.length)?;
        return Ok(bytes(wire::CopyFileRangeOut { copied }));
    }
    // The old answer has 32 bits; after a shorter copy the caller continues.
    let length = asked.length.min(u64::from(u32::MAX) & !0xfff);
    let size = filesystem.copy_file_range(from, to, length)? as u32;
    Ok(bytes(wire::WriteOut { size, padding: 0 }))
}

fn readdir<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::ReadIn = request.take()?;
    let (node, handle) = (request.header.node, FileHandle(asked.handle));
    let mut listing = Listing::new(asked.size);
    filesystem.readdir(node, handle, asked.offset, &mut listing)?;
    Ok(listing.into_bytes())
}

fn readdirplus<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::ReadIn = request.take()?;
    let (node, handle) = (request.header.node, FileHandle(asked.handle));
    let mut listing = ListingPlus::new(asked.size);
    filesystem.readdirplus(node, handle, asked.offset, &mut listing)?;
    Ok(listing.into_bytes())
}

fn statfs<F: Filesystem>(filesystem: &F) -> Io<Vec<u8>> {
    let it = filesystem.statfs()?;
    Ok(bytes(wire::StatfsOut {
        blocks: it.blocks,
        free: it.free,
        available: it.available,
        files: it.files,
        files_free: it.files_free,
        block: it.block,
        name_max: NAME_MAX,
        fragment: it.block,
        ..Default::default()
    }))
}

fn setxattr<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::SetXattrIn = request.take()?;
    let name = request.text()?;
    let value = request.bytes(asked.size)?;
    done(filesystem.setxattr(request.header.node, name, value, asked.flags))
}

/// Returns the value, or the list of names, or its length if the buffer is empty.
fn getxattr<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    let asked: wire::GetXattrIn = request.take()?;
    let node = request.header.node;
    let value = match request.header.opcode {
        opcode::GETXATTR => filesystem.getxattr(node, request.text()?)?,
        _ => filesystem.listxattr(node)?,
    };
    let size = u32::try_from(value.len()).map_err(|_| Errno::TOOBIG)?;
    match asked.size {
        0 => Ok(bytes(wire::GetXattrOut { size, padding: 0 })),
        most if size <= most => Ok(value),
        _ => Err(Errno::RANGE),
    }
}

fn removexattr<F: Filesystem>(filesystem: &F, request: &mut Request<'_>) -> Io<Vec<u8>> {
    done(filesystem.removexattr(request.header.node, request.text()?))
}

fn done(outcome: Io<()>) -> Io<Vec<u8>> {
    outcome.map(|()| Vec::new())
}

fn bytes(structure: impl IntoBytes + Immutable) -> Vec<u8> {
    structure.as_bytes().to_vec()
}

fn open_out(handle: FileHandle, flags: u32) -> wire::OpenOut {
    wire::OpenOut {
        handle: handle.0,
        flags,
        backing: 0,
    }
}

fn created_out((attr, handle): (FileAttr, FileHandle)) -> Vec<u8> {
    let mut both = entry_out(attr);
    both.extend_from_slice(open_out(handle, opened::KEEP_CACHE).as_bytes());
    both
}

fn entry_out(attr: FileAttr) -> Vec<u8> {
    bytes(entry(&attr))
}

fn attr_out(attr: FileAttr) -> Vec<u8> {
    bytes(wire::AttrOut {
        valid: FOREVER,
        valid_nanos: 0,
        padding: 0,
        attr: attr_of(&attr),
    })
}

pub fn entry(attr: &FileAttr) -> wire::EntryOut {
    wire::EntryOut {
        node: attr.number,
        generation: GENERATION,
        entry_valid: FOREVER,
        attr_valid: FOREVER,
        entry_valid_nanos: 0,
        attr_valid_nanos: 0,
        attr: attr_of(attr),
    }
}

fn attr_of(attr: &FileAttr) -> wire::Attr {
    let kind = match attr.kind {
        // The kernel requires a file type in the mode.
        FileType::Unknown => FileType::RegularFile,
        known => known,
    };
    wire::Attr {
        number: attr.number,
        size: attr.size,
        blocks: attr.blocks,
        atime: attr.atime.tv_sec,
        mtime: attr.mtime.tv_sec,
        ctime: attr.ctime.tv_sec,
        atime_nanos: attr.atime.tv_nsec as u32,
        mtime_nanos: attr.mtime.tv_nsec as u32,
        ctime_nanos: attr.ctime.tv_nsec as u32,
        mode: kind.as_raw_mode() | attr.mode,
        links: attr.links,
        uid: attr.uid,
        gid: attr.gid,
        device: attr.device,
        block: 4096,
        flags: 0,
    }
}
