//! The view as a FUSE filesystem: requests of the kernel, as operations on the view.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avfs_fuse::{
    Caller, FileAttr, FileHandle, Filesystem, Fill, Io, Listing, ListingPlus, Name, NewAttributes,
    Statistics, WriteFlags,
};
use rustix::fs::{FileType, Mode, RenameFlags};
use rustix::io::Errno;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::Access;
use super::listing::DOTS;
use super::nodes;
use super::view::View;
use crate::shown::bare_directory;

thread_local! {
    /// The kernel has applied the caller's umask; that of this process must not apply.
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

    fn ask<T>(&self, work: impl FnOnce(&View) -> Io<T>) -> Io<T> {
        if self.view.stopped.load(Ordering::Acquire) {
            return Err(Errno::NOTCONN);
        }
        work(&self.view)
    }

    /// An operation that changes the layer: it waits while a commit reads.
    fn change<T>(&self, work: impl FnOnce(&View) -> Io<T>) -> Io<T> {
        if self.view.access == Access::ReadOnly {
            return Err(Errno::ROFS);
        }
        let _passing = self.view.gate.pass();
        OWN_UMASK.with(|()| ());
        self.ask(work)
    }
}

impl Filesystem for ViewFilesystem {
    fn lookup(&self, Name { parent, name }: Name<'_>) -> Io<Option<FileAttr>> {
        self.ask(|view| {
            let _looking = view.looking();
            let place = view.place(parent)?;
            view.hand_out_item(&place, parent, name)
        })
    }

    fn forget(&self, node: u64, times: u64) {
        self.view.forget(node, times);
    }

    fn getattr(&self, node: u64) -> Io<FileAttr> {
        self.ask(|view| view.attr(node))
    }

    fn setattr(&self, node: u64, handle: Option<FileHandle>, new: &NewAttributes) -> Io<FileAttr> {
        self.change(|view| {
            let handle = handle.and_then(|handle| view.file_handle(handle).ok());
            view.set_attributes(node, handle.as_deref(), new)
        })
    }

    fn readlink(&self, node: u64) -> Io<Vec<u8>> {
        self.ask(|view| view.read_link(node))
    }

    fn mknod(&self, caller: Caller, name: Name<'_>, mode: u32, device: u32) -> Io<FileAttr> {
        self.change(|view| view.make_node(caller, name, mode, device))
    }

    fn mkdir(&self, caller: Caller, name: Name<'_>, mode: u32) -> Io<FileAttr> {
        self.change(|view| view.make_directory(caller, name, mode))
    }

    fn symlink(&self, caller: Caller, name: Name<'_>, target: &[u8]) -> Io<FileAttr> {
        self.change(|view| view.make_symlink(caller, name, target))
    }

    fn link(&self, node: u64, name: Name<'_>) -> Io<FileAttr> {
        self.change(|view| view.link(node, name))
    }

    fn unlink(&self, name: Name<'_>) -> Io<()> {
        self.change(|view| view.unlink(name.parent, name.name))
    }

    fn rmdir(&self, name: Name<'_>) -> Io<()> {
        self.change(|view| view.remove_directory(name.parent, name.name))
    }

    fn rename(&self, old: Name<'_>, new: Name<'_>, flags: RenameFlags) -> Io<()> {
        let (old, new) = (nodes::Name::from(old), nodes::Name::from(new));
        self.change(|view| view.rename(old, new, flags))
    }

    fn create(
        &self,
        caller: Caller,
        name: Name<'_>,
        mode: u32,
        flags: u32,
    ) -> Io<(FileAttr, FileHandle)> {
        self.change(|view| view.create(caller, name, mode, flags))
    }

    fn tmpfile(
        &self,
        caller: Caller,
        directory: u64,
        mode: u32,
        flags: u32,
    ) -> Io<(FileAttr, FileHandle)> {
        self.change(|view| view.create_nameless(caller, directory, mode, flags))
    }

    fn open(&self, node: u64, flags: u32) -> Io<FileHandle> {
        if self.view.is_fixed() {
            // After ENOSYS the kernel opens and closes files without requests.
            return Err(Errno::NOSYS);
        }
        match flags as i32 & libc::O_ACCMODE {
            libc::O_RDONLY => self.ask(|view| view.open_file(node, flags)),
            _ => self.change(|view| view.open_file(node, flags)),
        }
    }

    fn read(&self, node: u64, handle: FileHandle, offset: u64, size: u32) -> Io<Vec<u8>> {
        self.ask(|view| view.read(node, handle, offset, size))
    }

    fn write(&self, handle: FileHandle, offset: u64, data: &[u8], flags: WriteFlags) -> Io<u32> {
        let kill = flags.contains(WriteFlags::KILL_PRIVILEGES);
        self.change(|view| view.write(handle, offset, data, kill))
    }

    fn release(&self, handle: FileHandle) {
        self.view.handles.remove(handle);
    }

    fn fsync(&self, handle: FileHandle, data_only: bool) -> Io<()> {
        self.ask(|view| view.sync(handle, data_only))
    }

    fn fallocate(&self, handle: FileHandle, offset: u64, length: u64, mode: u32) -> Io<()> {
        self.change(|view| view.allocate(handle, offset, length, mode))
    }

    fn lseek(&self, node: u64, handle: FileHandle, offset: u64, whence: u32) -> Io<u64> {
        self.ask(|view| view.seek(node, handle, offset, whence))
    }

    fn copy_file_range(
        &self,
        from: (FileHandle, u64),
        to: (FileHandle, u64),
        length: u64,
    ) -> Io<u64> {
        self.change(|view| view.copy_range(from, to, length))
    }

    fn opendir(&self, node: u64) -> Io<FileHandle> {
        if self.view.is_fixed() {
            return Err(Errno::NOSYS);
        }
        self.ask(|view| view.open_directory(node))
    }

    fn readdir(&self, node: u64, handle: FileHandle, after: u64, into: &mut Listing) -> Io<()> {
        let listing = self.ask(|view| {
            let _looking = view.looking();
            view.listing(node, handle, after)
        })?;
        for (position, name) in DOTS.into_iter().filter(|dot| dot.0 > after) {
            if into.add(position, name, node, FileType::Directory) == Fill::Full {
                return Ok(());
            }
        }
        for item in listing.after(after) {
            if into.add(item.position, &item.name, item.number, item.kind) == Fill::Full {
                break;
            }
        }
        Ok(())
    }

    fn readdirplus(
        &self,
        node: u64,
        handle: FileHandle,
        after: u64,
        into: &mut ListingPlus,
    ) -> Io<()> {
        self.ask(|view| {
            let _looking = view.looking();
            list_with_attributes(view, node, handle, after, into)
        })
    }

    fn fsyncdir(&self, node: u64) -> Io<()> {
        self.ask(|view| view.sync_directory(node))
    }

    fn statfs(&self) -> Io<Statistics> {
        self.ask(View::statistics)
    }

    fn setxattr(&self, node: u64, name: &[u8], value: &[u8], flags: u32) -> Io<()> {
        self.change(|view| view.set_xattr(node, name, value, flags))
    }

    fn getxattr(&self, node: u64, name: &[u8]) -> Io<Vec<u8>> {
        self.ask(|view| view.get_xattr(node, name))
    }

    fn listxattr(&self, node: u64) -> Io<Vec<u8>> {
        self.ask(|view| view.list_xattrs(node))
    }

    fn removexattr(&self, node: u64, name: &[u8]) -> Io<()> {
        self.change(|view| view.remove_xattr(node, name))
    }
}

/// Lists what fits, and looks each entry up.
fn list_with_attributes(
    view: &View,
    node: u64,
    handle: FileHandle,
    after: u64,
    into: &mut ListingPlus,
) -> Io<()> {
    let listing = view.listing(node, handle, after)?;
    let place = view.place(node)?;
    // The kernel takes no reference to `.` and `..`, so they are not looked up.
    for (position, name) in DOTS.into_iter().filter(|dot| dot.0 > after) {
        let attr = bare_directory(node, view.owner);
        if into.add(position, name, &attr) == Fill::Full {
            return Ok(());
        }
    }
    for item in listing.after(after) {
        // It may have been removed since it was listed.
        let Some(attr) = view.hand_out_item(&place, node, &item.name)? else {
            continue;
        };
        if into.add(item.position, &item.name, &attr) == Fill::Full {
            view.forget(attr.number, 1);
            break;
        }
    }
    Ok(())
}
