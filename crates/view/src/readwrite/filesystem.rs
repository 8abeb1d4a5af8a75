//! Kernel requests in, operations on the view out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, INodeNo,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use rustix::fs::Mode;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::Access;
use super::attributes::NewAttributes;
use super::host::Io;
use super::listing::DOTS;
use super::nodes::Name;
use super::reply::{self, FOREVER, GENERATION};
use super::view::View;
use crate::shown::{answer_xattr, nothing};

thread_local! {
    /// The kernel has applied the umask of whoever asked; that of this process is nobody's wish.
    static OWN_UMASK: () = {
        // SAFETY: only directory and umask stop being shared, and no thread of a view has use for the
        // process's. Where it is refused, modes are set after the making instead.
        let unshared = unsafe { unshare_unsafe(UnshareFlags::FS) };
        if unshared.is_ok() {
            rustix::process::umask(Mode::empty());
        }
    };
}

pub struct ViewFilesystem {
    view: Arc<View>,
}

impl ViewFilesystem {
    pub fn new(view: Arc<View>) -> ViewFilesystem {
        ViewFilesystem { view }
    }

    fn ask<T>(&self, work: impl FnOnce(&View) -> Io<T>) -> Result<T, Errno> {
        if self.view.stopped.load(Ordering::Acquire) {
            return Err(Errno::ENOTCONN);
        }
        work(&self.view).map_err(|errno| Errno::from_i32(errno.raw_os_error()))
    }

    /// Something that changes the layer: it waits while a commit reads it.
    fn change<T>(&self, work: impl FnOnce(&View) -> Io<T>) -> Result<T, Errno> {
        if self.view.access == Access::ReadOnly {
            return Err(Errno::EROFS);
        }
        let _passing = self.view.gate.pass();
        OWN_UMASK.with(|()| ());
        self.ask(work)
    }

    fn is_fixed(&self) -> bool {
        self.view.upper.is_none()
    }
}

impl Filesystem for ViewFilesystem {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        reply::configure(config, self.is_fixed());
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.ask(|view| {
            let _looking = view.looking();
            let place = view.place(parent.0)?;
            view.hand_out_item(&place, parent.0, name.as_bytes())
        });
        match found {
            Ok(Some((_, attr))) => reply.entry(&FOREVER, &attr, GENERATION),
            Ok(None) => reply.entry(&FOREVER, &nothing(), GENERATION),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.view.forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply::answer_attr(self.ask(|view| view.attr(ino.0)), reply);
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let new = NewAttributes {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
        };
        let changed = self.change(|view| {
            let handle = fh.and_then(|fh| view.file_handle(fh).ok());
            view.set_attributes(req, ino.0, handle.as_deref(), &new)
        });
        reply::answer_attr(changed, reply);
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        reply::answer_data(self.ask(|view| view.read_link(ino.0)), reply);
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let name = name.as_bytes();
        let made = self.change(|view| view.make_node(req, parent.0, name, mode, rdev));
        reply::answer_entry(made, reply);
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let name = name.as_bytes();
        let made = self.change(|view| view.make_directory(req, parent.0, name, mode));
        reply::answer_entry(made, reply);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.as_bytes();
        reply::answer_empty(self.change(|view| view.unlink(parent.0, name)), reply);
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.as_bytes();
        let removed = self.change(|view| view.remove_directory(parent.0, name));
        reply::answer_empty(removed, reply);
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let (name, target) = (link_name.as_bytes(), target.as_os_str().as_bytes());
        let made = self.change(|view| view.make_symlink(req, parent.0, name, target));
        reply::answer_entry(made, reply);
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let old = name_in(parent, name);
        let new = name_in(newparent, newname);
        reply::answer_empty(self.change(|view| view.rename(old, new, flags)), reply);
    }

    fn link(
        &self,
        _req: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        let name = newname.as_bytes();
        let made = self.change(|view| view.link(ino.0, newparent.0, name));
        reply::answer_entry(made, reply);
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if self.is_fixed() {
            // "Not implemented" makes the kernel open and close files without telling us.
            return reply.error(Errno::ENOSYS);
        }
        let opened = match flags.acc_mode() {
            OpenAccMode::O_RDONLY => self.ask(|view| view.open_file(ino.0, flags.0)),
            _ => self.change(|view| view.open_file(ino.0, flags.0)),
        };
        match opened {
            Ok(handle) => reply.opened(handle, FopenFlags::FOPEN_KEEP_CACHE),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        reply::answer_data(self.ask(|view| view.read(ino.0, fh, offset, size)), reply);
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let kill = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        match self.change(|view| view.write(fh, offset, data, kill)) {
            Ok(written) => reply.written(written),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _r: &Request, _i: INodeNo, _f: FileHandle, _o: LockOwner, reply: ReplyEmpty) {
        // Nothing is held back that could be flushed; so told, the kernel never asks again.
        reply.error(Errno::ENOSYS);
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.view.handles.remove(fh);
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        reply::answer_empty(self.ask(|view| view.sync(fh, datasync)), reply);
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if self.is_fixed() {
            return reply.error(Errno::ENOSYS);
        }
        let flags = FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_CACHE_DIR;
        match self.ask(|view| view.open_directory(ino.0)) {
            Ok(handle) => reply.opened(handle, flags),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.ask(|view| {
            let _looking = view.looking();
            view.listing(ino.0, fh, offset)
        });
        let listing = match listed {
            Ok(listing) => listing,
            Err(errno) => return reply.error(errno),
        };
        for (position, name) in DOTS.into_iter().filter(|dot| dot.0 > offset) {
            let kind = fuser::FileType::Directory;
            if reply.add(ino, position, kind, OsStr::from_bytes(name)) {
                return reply.ok();
            }
        }
        for item in listing.after(offset) {
            let name = OsStr::from_bytes(&item.name);
            if reply.add(INodeNo(item.number), item.position, item.kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let listed = self.ask(|view| {
            let _looking = view.looking();
            reply::add_items(view, ino, (fh, offset), &mut reply)
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn releasedir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.view.handles.remove(fh);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        reply::answer_empty(self.ask(|view| view.sync_directory(ino.0)), reply);
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match self.ask(View::statistics) {
            Ok(it) => reply.statfs(
                it.blocks,
                it.free,
                it.available,
                it.files,
                it.files_free,
                it.block,
                255,
                it.block,
            ),
            Err(errno) => reply.error(errno),
        }
    }

    fn setxattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let name = name.as_bytes();
        let set = self.change(|view| view.set_xattr(ino.0, name, value, flags));
        reply::answer_empty(set, reply);
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = self.ask(|view| view.get_xattr(ino.0, name.as_bytes()));
        answer_xattr(value, size, reply);
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        answer_xattr(self.ask(|view| view.list_xattrs(ino.0)), size, reply);
    }

    fn removexattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.as_bytes();
        reply::answer_empty(self.change(|view| view.remove_xattr(ino.0, name)), reply);
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let name = name.as_bytes();
        match self.change(|view| view.create(req, parent.0, name, mode, flags)) {
            Ok((made, handle)) => {
                let flags = FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(&FOREVER, &made.attr, GENERATION, handle, flags);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let done = self.change(|view| view.allocate(fh, offset, length, mode));
        reply::answer_empty(done, reply);
    }

    fn lseek(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.ask(|view| view.seek(fh, offset, whence)) {
            Ok(found) => reply.offset(found),
            Err(errno) => reply.error(errno),
        }
    }

    fn copy_file_range(
        &self,
        _req: &Request,
        _ino_in: INodeNo,
        fh_in: FileHandle,
        offset_in: u64,
        _ino_out: INodeNo,
        fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let copied =
            self.change(|view| view.copy_range((fh_in, offset_in), (fh_out, offset_out), len));
        match copied {
            Ok(copied) => reply.written(copied),
            Err(errno) => reply.error(errno),
        }
    }
}

fn name_in(parent: INodeNo, name: &OsStr) -> Name {
    Name {
        parent: parent.0,
        name: name.as_bytes().to_vec(),
    }
}
