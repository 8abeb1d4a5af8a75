//! Copy-up: what is in the base and about to change is first copied to the upper, with all its metadata.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use avfs_vault::{Content, Entry, Kind, Meta};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, linkat, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use super::Access;
use super::host::{self, Io};
use super::nodes::{Body, Key, Origin};
use super::view::View;
use crate::Owner;

/// How much of a stored file is copied.
#[derive(Clone, Copy)]
pub enum Data {
    Whole,
    /// The rest is about to be truncated.
    UpTo(u64),
}

impl View {
    /// Makes sure that the node is in the upper. The caller must not hold the names lock.
    pub fn copy_up(&self, number: u64, data: Data) -> Io<()> {
        match self.body(number)? {
            Body::Upper { .. } | Body::Directory { in_upper: true, .. } => Ok(()),
            Body::Directory { .. } => {
                let _changing = self.changing();
                self.directory_in_upper(number).map(drop)
            }
            Body::Stored { entry, .. } => {
                // Copying happens without a lock.
                let copy = match entry.kind {
                    Kind::File { content, size, .. } => {
                        let size = match data {
                            Data::Whole => size,
                            Data::UpTo(most) => size.min(most),
                        };
                        Some(self.copy_of_file(&entry.meta, content, size)?)
                    }
                    _ => None,
                };
                let _changing = self.changing();
                self.publish(number, copy)
            }
        }
    }

    /// Links the copy to the file's name. Another thread may have been faster.
    fn publish(&self, number: u64, copy: Option<File>) -> Io<()> {
        let Body::Stored { entry, .. } = self.body(number)? else {
            return Ok(());
        };
        let (name, opened) = {
            let table = self.table();
            let node = table.get(number).ok_or(Errno::STALE)?;
            (node.names.first().cloned(), node.opened.upgrade())
        };
        let mut linked = Ok(());
        if let Some(name) = &name {
            let parent = self.directory_in_upper(name.parent)?;
            host::keeping_times(&parent, || {
                host::overriding(&parent, || {
                    self.give_name(&parent, &name.name, &entry, copy.as_ref())
                })
            })?;
            if let (Some(link), Some(copy)) = (entry.link(), &copy) {
                linked = self.link_other_names(link, copy);
            }
            let stat = host::stat(&*parent, &name.name)?;
            let cut_off = entry.size().saturating_sub(stat.stx_size);
            self.refund_bytes(cut_off.saturating_mul(stat.stx_nlink.into()));
            self.table().rekey(number, Key::Upper(stat.stx_ino));
        }
        let kind = match entry.kind {
            Kind::Symlink { .. } => FileType::Symlink,
            Kind::Fifo => FileType::Fifo,
            Kind::File { .. } | Kind::Directory { .. } => FileType::RegularFile,
        };
        if let Some(node) = self.table().get_mut(number) {
            node.body = Body::Upper { kind };
        }
        // Older descriptors read the copy from now on.
        if let (Some(opened), Some(copy)) = (opened, copy) {
            opened.file.get_or_init(|| Arc::new(copy));
        }
        // An error is reported only now: the found name is a copy, whatever happened to the others.
        linked
    }

    fn give_name(
        &self,
        parent: &Arc<OwnedFd>,
        name: &[u8],
        entry: &Entry,
        copy: Option<&File>,
    ) -> Io<()> {
        match copy {
            Some(copy) => link_open_file(copy, parent, name),
            None => host::copy_special(parent, name, entry, self.owner_on_host()),
        }
    }

    /// An unnamed file on the upper's filesystem with the first `size` bytes of `content`.
    fn copy_of_file(&self, meta: &Meta, content: Content, size: u64) -> Io<File> {
        let top = self.upper.as_ref().ok_or(Errno::ROFS)?;
        let file = self.nameless_file(top)?;
        host::copy_content(&self.trees, &file, content, size)?;
        host::copy_metadata(&file, meta, self.owner_on_host())?;
        Ok(file)
    }

    /// Whether the upper supports O_TMPFILE: a file must be complete before it has a name.
    pub fn check_upper(&self) -> std::io::Result<()> {
        let (Some(upper), Access::ReadWrite) = (&self.upper, self.access) else {
            return Ok(());
        };
        match self.nameless_file(upper) {
            Ok(_) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => Err(std::io::Error::new(
                std::io::ErrorKind::Unsupported,
                "the filesystem of AVFS_HOME has no files without a name (O_TMPFILE), which a read-write \
                 mount needs; put AVFS_HOME on ext4, xfs, btrfs or tmpfs, or mount with --readonly",
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// An unnamed file on the filesystem of `directory`, which is in the upper.
    pub fn nameless_file(&self, directory: &OwnedFd) -> Io<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let opened = host::overriding(directory, || openat(directory, c".", flags, mode))?;
        Ok(opened.into())
    }

    /// The directory `number` in the upper; it and its parents are copied up as needed. The caller holds the names lock.
    pub fn directory_in_upper(&self, number: u64) -> Io<Arc<OwnedFd>> {
        // The deepest first. Not recursion: trees may be deeper than a stack.
        let mut missing = Vec::new();
        let mut at = number;
        let mut directory = loop {
            let origin = match self.body(at)? {
                Body::Directory { in_upper: true, .. } => break self.directory(at)?,
                Body::Directory { origin, .. } => origin.ok_or(Errno::IO)?,
                _ => return Err(Errno::NOTDIR),
            };
            let name = self.name_of(at)?;
            let parent = name.parent;
            missing.push((at, name, origin));
            at = parent;
        };
        while let Some((number, name, origin)) = missing.pop() {
            self.copy_directory(&directory, &name.name, &origin)?;
            if self.is_point(&origin)? {
                self.listed_now(name.parent, &directory)?;
            }
            directory = self.directory(number)?;
        }
        Ok(directory)
    }

    /// Makes a directory in the upper with the metadata of its origin, which still shows through.
    pub fn copy_directory(&self, parent: &OwnedFd, name: &[u8], origin: &Arc<Origin>) -> Io<()> {
        let temporary = host::unfinished_name(&self.prefix);
        host::keeping_times(parent, || {
            host::overriding(parent, || {
                mkdirat(parent, &temporary, Mode::from_raw_mode(0o700))?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let opened = host::open(parent, &temporary, flags, Mode::empty())?;
                host::copy_metadata(&opened, &origin.meta, self.owner_on_host())?;
                renameat(parent, &temporary, parent, name)
            })
            .inspect_err(|_| {
                let _ = unlinkat(parent, &temporary, AtFlags::REMOVEDIR);
            })
        })?;
        let mut table = self.table();
        let number = table.by_key(Key::of_path(&origin.path));
        if let Some(node) = number.and_then(|number| table.get_mut(number)) {
            node.body = Body::Directory {
                in_upper: true,
                origin: Some(origin.clone()),
            };
        }
        Ok(())
    }

    /// The owner of files in the upper, if that is not the serving user.
    pub fn owner_on_host(&self) -> Option<Owner> {
        let serving = rustix::process::geteuid().as_raw();
        (serving == 0 && (self.owner.uid, self.owner.gid) != (0, 0)).then_some(self.owner)
    }
}

/// Links an open file to a name.
pub fn link_open_file(file: &File, parent: &OwnedFd, name: &[u8]) -> Io<()> {
    linkat(
        CWD,
        host::again(file),
        parent,
        name,
        AtFlags::SYMLINK_FOLLOW,
    )
}
