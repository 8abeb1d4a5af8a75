//! How the kernel is answered: what is switched on, what is cached, and the shapes of replies.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use fuser::{
    Errno, FileAttr, FileHandle, Generation, INodeNo, InitFlags, KernelConfig, ReplyAttr,
    ReplyData, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
};

use super::change::Made;
use super::host::Io;
use super::listing::DOTS;
use super::view::View;
use crate::shown::nothing;

/// Only the kernel's requests change anything, and what others change is announced.
pub const FOREVER: Duration = Duration::from_secs(1 << 30);
pub const GENERATION: Generation = Generation(0);

/// Asks for what makes it fast. Not for truncation while opening: the kernel would find out only
/// afterwards that the file is a program that runs.  a fixed view is one that nothing ever changes.
pub fn configure(config: &mut KernelConfig, is_fixed: bool) {
    let mut wanted = vec![
        InitFlags::FUSE_ASYNC_READ,
        InitFlags::FUSE_ASYNC_DIO,
        InitFlags::FUSE_BIG_WRITES,
        InitFlags::FUSE_MAX_PAGES,
        InitFlags::FUSE_PARALLEL_DIROPS,
        InitFlags::FUSE_CACHE_SYMLINKS,
        InitFlags::FUSE_EXPLICIT_INVAL_DATA,
        InitFlags::FUSE_DO_READDIRPLUS,
        InitFlags::FUSE_READDIRPLUS_AUTO,
        // Else the kernel asks for a file's capabilities before each write.
        InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    ];
    if is_fixed {
        wanted.push(InitFlags::FUSE_NO_OPEN_SUPPORT);
        wanted.push(InitFlags::FUSE_NO_OPENDIR_SUPPORT);
    }
    for flag in wanted {
        // An older kernel works without.
        let _ = config.add_capabilities(flag);
    }
    let _ = config.set_max_write(1 << 20);
    let _ = config.set_max_readahead(1 << 20);
    let _ = config.set_max_background(64);
}

pub fn answer_entry(outcome: Result<Made, Errno>, reply: ReplyEntry) {
    match outcome {
        Ok(made) => reply.entry(&FOREVER, &made.attr, GENERATION),
        Err(errno) => reply.error(errno),
    }
}

pub fn answer_empty(outcome: Result<(), Errno>, reply: ReplyEmpty) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

pub fn answer_attr(outcome: Result<FileAttr, Errno>, reply: ReplyAttr) {
    match outcome {
        Ok(attr) => reply.attr(&FOREVER, &attr),
        Err(errno) => reply.error(errno),
    }
}

pub fn answer_data(outcome: Result<Vec<u8>, Errno>, reply: ReplyData) {
    match outcome {
        Ok(bytes) => reply.data(&bytes),
        Err(errno) => reply.error(errno),
    }
}

/// Lists what fits, and hands out the node of each item.
pub fn add_items(
    view: &View,
    ino: INodeNo,
    (fh, offset): (FileHandle, u64),
    reply: &mut ReplyDirectoryPlus,
) -> Io<()> {
    let listing = view.listing(ino.0, fh, offset)?;
    let place = view.place(ino.0)?;
    // The kernel takes no reference to these two, so they are not handed out.
    for (position, name) in DOTS.into_iter().filter(|dot| dot.0 > offset) {
        let attr = FileAttr {
            ino,
            kind: fuser::FileType::Directory,
            ..nothing()
        };
        let name = OsStr::from_bytes(name);
        if reply.add(ino, position, name, &FOREVER, &attr, GENERATION) {
            return Ok(());
        }
    }
    for item in listing.after(offset) {
        // It may have been removed since it was listed.
        let Some((number, attr)) = view.hand_out_item(&place, ino.0, &item.name)? else {
            continue;
        };
        let name = OsStr::from_bytes(&item.name);
        let position = item.position;
        if reply.add(INodeNo(number), position, name, &FOREVER, &attr, GENERATION) {
            view.forget(number, 1);
            break;
        }
    }
    Ok(())
}
