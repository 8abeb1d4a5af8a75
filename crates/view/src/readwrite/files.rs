//! Open files: every write goes directly to the file in the upper.

use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use avfs_fuse::FileHandle;
use avfs_vault::Entry;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use rustix::io::Errno;

use super::attributes::clear_privileges;
use super::copyup::Data;
use super::host::{Io, Reach};
use super::listing::Listing;
use super::nodes::{Body, Opened};
use super::view::View;
use crate::shown;

/// What an open handle of the kernel means.
pub enum Handle {
    File(OpenFile),
    /// The listing that reading the directory began with.
    Directory(Mutex<Option<Arc<Listing>>>),
}

pub struct OpenFile {
    node: u64,
    opened: Arc<Opened>,
    source: Source,
    access: OpenAccess,
}

/// What a descriptor was opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenAccess {
    Read,
    Write,
    /// Then there may be a shared writable mapping, too.
    Both,
}

impl OpenAccess {
    fn of(flags: u32) -> OpenAccess {
        match flags as i32 & libc::O_ACCMODE {
            libc::O_RDONLY => OpenAccess::Read,
            libc::O_WRONLY => OpenAccess::Write,
            _ => OpenAccess::Both,
        }
    }
}

enum Source {
    Host(Arc<File>),
    /// Until the file is changed.
    Stored(Arc<Entry>),
}

#[derive(Default)]
pub struct Handles {
    next: AtomicU64,
    open: RwLock<HashMap<u64, Arc<Handle>>>,
}

impl Handles {
    pub fn insert(&self, handle: Handle) -> FileHandle {
        // The kernel sends 0 if nothing was opened.
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(number, Arc::new(handle));
        FileHandle(number)
    }

    pub fn get(&self, handle: FileHandle) -> Io<Arc<Handle>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&handle.0).cloned().ok_or(Errno::BADF)
    }

    pub fn remove(&self, handle: FileHandle) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let removed = open.remove(&handle.0);
        drop(open);
        drop(removed);
    }

    /// Nodes that may have been written through a mapping.
    pub fn maybe_mapped(&self) -> Vec<u64> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let files = open.values().filter_map(|handle| match &**handle {
            Handle::File(file) if file.access == OpenAccess::Both => Some(file.node),
            _ => None,
        });
        let mut nodes: Vec<u64> = files.collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

impl OpenFile {
    /// The file in the upper, if it is there.
    pub fn host(&self) -> Option<&Arc<File>> {
        match &self.source {
            Source::Host(file) => Some(file),
            Source::Stored(_) => self.opened.file.get(),
        }
    }

    /// The file in the upper, if it is there and this handle may write to it.
    pub fn writable(&self) -> Option<&Arc<File>> {
        match self.access {
            OpenAccess::Read => None,
            // The copy of a stored file is open for reading and writing.
            OpenAccess::Write | OpenAccess::Both => self.host(),
        }
    }
}

impl View {
    /// Opens the node's file with the access of `flags`. A stored file is copied up by the first change.
    pub fn open_file(&self, number: u64, flags: u32) -> Io<FileHandle> {
        let _looking = self.looking();
        let opened = self.opened(number)?;
        let source = match self.body(number)? {
            Body::Stored { entry, .. } => Source::Stored(entry),
            Body::Upper { .. } => {
                let access = OFlags::from_bits_retain(flags & libc::O_ACCMODE as u32);
                // The kernel handles FIFOs itself; O_NONBLOCK is only a precaution.
                let file = self.reach(number)?.reopen(access | OFlags::NONBLOCK)?;
                let file = Arc::new(file);
                opened.file.get_or_init(|| file.clone());
                Source::Host(file)
            }
            Body::Directory { .. } => return Err(Errno::ISDIR),
        };
        Ok(self.handles.insert(Handle::File(OpenFile {
            node: number,
            opened,
            source,
            access: OpenAccess::of(flags),
        })))
    }

    /// Registers a new file as open.
    pub fn opened_new(&self, number: u64, file: Arc<File>, flags: u32) -> Io<FileHandle> {
        let opened = self.opened(number)?;
        opened.file.get_or_init(|| file.clone());
        Ok(self.handles.insert(Handle::File(OpenFile {
            node: number,
            opened,
            source: Source::Host(file),
            access: OpenAccess::of(flags),
        })))
    }

    /// What the open descriptors of the node share.
    fn opened(&self, number: u64) -> Io<Arc<Opened>> {
        let mut table = self.table();
        let node = table.get_mut(number).ok_or(Errno::STALE)?;
        if let Some(opened) = node.opened.upgrade() {
            return Ok(opened);
        }
        let opened = Arc::new(Opened::default());
        node.opened = Arc::downgrade(&opened);
        Ok(opened)
    }

    pub fn file_handle(&self, handle: FileHandle) -> Io<Arc<Handle>> {
        let handle = self.handles.get(handle)?;
        match &*handle {
            Handle::File(_) => Ok(handle),
            Handle::Directory(_) => Err(Errno::ISDIR),
        }
    }

    /// The file in the upper that a handle writes to; copies it up if it was only stored.
    fn to_write<'a>(&self, open: &'a OpenFile) -> Io<&'a Arc<File>> {
        if open.host().is_none() {
            self.copy_up(open.node, Data::Whole)?;
        }
        open.writable().ok_or(Errno::BADF)
    }

    pub fn read(&self, number: u64, handle: FileHandle, offset: u64, size: u32) -> Io<Vec<u8>> {
        if handle.0 == 0 {
            // A view of the base alone has no open handles.
            return match self.body(number)? {
                Body::Stored { entry, .. } => shown::read(&self.trees, &entry, offset, size),
                _ => Err(Errno::BADF),
            };
        }
        let handle = self.file_handle(handle)?;
        let Handle::File(open) = &*handle else {
            return Err(Errno::BADF);
        };
        let Some(file) = open.host() else {
            return match &open.source {
                Source::Stored(entry) => shown::read(&self.trees, entry, offset, size),
                Source::Host(_) => Err(Errno::BADF),
            };
        };
        let mut bytes = vec![0; size as usize];
        let mut length = 0;
        while length < bytes.len() {
            match rustix::io::pread(file, &mut bytes[length..], offset + length as u64) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// When this returns, all of it is in the file, or as much as fitted.
    pub fn write(&self, handle: FileHandle, offset: u64, data: &[u8], kill: bool) -> Io<u32> {
        let handle = self.file_handle(handle)?;
        let Handle::File(open) = &*handle else {
            return Err(Errno::BADF);
        };
        let file = self.to_write(open)?;
        if kill {
            self.drop_privileges(open.node, file)?;
        }
        let charge = self.charge_end(file, offset + data.len() as u64)?;
        let mut written = 0;
        while written < data.len() {
            match rustix::io::pwrite(file, &data[written..], offset + written as u64) {
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                // The kernel reports a short write; the next write gets the error.
                Err(_) if written > 0 => break,
                Err(error) => return Err(error),
            }
        }
        charge.keep();
        Ok(written as u32)
    }

    /// The kernel leaves clearing these bits to us, and must be told when they were set.
    fn drop_privileges(&self, number: u64, file: &Arc<File>) -> Io<()> {
        let reach = Reach::Open(file.clone());
        if reach.stat()?.stx_mode & 0o6000 == 0 {
            return Ok(());
        }
        clear_privileges(&reach)?;
        if let Some(notifier) = self.notifier.get() {
            notifier.forget_attributes(number);
        }
        Ok(())
    }

    pub fn sync(&self, handle: FileHandle, data_only: bool) -> Io<()> {
        let handle = self.file_handle(handle)?;
        let Handle::File(open) = &*handle else {
            return Err(Errno::BADF);
        };
        match open.host() {
            Some(file) if data_only => rustix::fs::fdatasync(file),
            Some(file) => rustix::fs::fsync(file),
            // Stored content was synced when it was committed.
            None => Ok(()),
        }
    }

    pub fn allocate(&self, handle: FileHandle, offset: u64, length: u64, mode: u32) -> Io<()> {
        let handle = self.file_handle(handle)?;
        let Handle::File(open) = &*handle else {
            return Err(Errno::BADF);
        };
        let file = self.to_write(open)?;
        let mode = FallocateFlags::from_bits_retain(mode);
        let charge = if mode.contains(FallocateFlags::KEEP_SIZE) {
            self.charge(0, 0)?
        } else {
            self.charge_end(file, offset + length)?
        };
        rustix::fs::fallocate(file, mode, offset, length)?;
        charge.keep();
        Ok(())
    }

    pub fn seek(&self, number: u64, handle: FileHandle, from: u64, whence: u32) -> Io<u64> {
        if i64::try_from(from).is_err() {
            return Err(Errno::NXIO);
        }
        if handle.0 == 0 {
            return match self.body(number)? {
                Body::Stored { entry, .. } => shown::seek(&self.trees, &entry, from, whence),
                _ => Err(Errno::BADF),
            };
        }
        let handle = self.file_handle(handle)?;
        let Handle::File(open) = &*handle else {
            return Err(Errno::BADF);
        };
        let Some(file) = open.host() else {
            let Source::Stored(entry) = &open.source else {
                return Err(Errno::BADF);
            };
            return shown::seek(&self.trees, entry, from, whence);
        };
        let position = match whence as i32 {
            libc::SEEK_DATA => SeekFrom::Data(from),
            libc::SEEK_HOLE => SeekFrom::Hole(from),
            _ => return Err(Errno::INVAL),
        };
        rustix::fs::seek(file, position)
    }

    pub fn copy_range(
        &self,
        (from, from_offset): (FileHandle, u64),
        (to, to_offset): (FileHandle, u64),
        length: u64,
    ) -> Io<u64> {
        let (from, to) = (self.file_handle(from)?, self.file_handle(to)?);
        let (Handle::File(from), Handle::File(to)) = (&*from, &*to) else {
            return Err(Errno::BADF);
        };
        // The kernel then copies by reading and writing.
        let Some(source) = from.host() else {
            return Err(Errno::XDEV);
        };
        let target = self.to_write(to)?;
        let length = length.min(1 << 30);
        let available = super::host::stat_open(source)?.stx_size;
        let length = length.min(available.saturating_sub(from_offset)) as usize;
        let charge = self.charge_end(target, to_offset + length as u64)?;
        let (mut read_at, mut write_at) = (from_offset, to_offset);
        let copied = rustix::fs::copy_file_range(
            source,
            Some(&mut read_at),
            target,
            Some(&mut write_at),
            length,
        )?;
        charge.keep();
        Ok(copied as u64)
    }
}
