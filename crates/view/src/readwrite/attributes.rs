//! Sizes, modes, owners, times and extended attributes.

use std::sync::Arc;

use avfs_fuse::{FileAttr, NewAttributes};
use avfs_vault::{Kind, Meta};
use rustix::fs::{FileType, OFlags, Statx, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;

use super::Owners;
use super::copyup::Data;
use super::files::Handle;
use super::host::{self, Io, Reach};
use super::nodes::{Body, Found, TOP};
use super::view::View;
use crate::shown::{Seen, attr_of_stored, data_of_stored, kind_of_stored, name_list, timespec};

impl View {
    pub fn attr_of_found(&self, number: u64, found: &Found) -> FileAttr {
        match (&found.stat, &found.body) {
            (Some(stat), body) => self.attr_of_stat(number, stat, body),
            (None, body) => self.attr_of_body(number, body),
        }
    }

    pub fn attr(&self, number: u64) -> Io<FileAttr> {
        // Otherwise its name might soon mean another file.
        let _looking = self.looking();
        let body = {
            let table = self.table();
            let node = table.get(number).ok_or(Errno::STALE)?;
            if let (Some(gone), None) = (&node.gone, node.opened.upgrade()) {
                return Ok(*gone);
            }
            node.body.clone()
        };
        match &body {
            Body::Stored { .. }
            | Body::Directory {
                in_upper: false, ..
            } => Ok(self.attr_of_body(number, &body)),
            _ => match self.reach(number).and_then(|reach| reach.stat()) {
                Ok(stat) => Ok(self.attr_of_stat(number, &stat, &body)),
                Err(error) => {
                    let table = self.table();
                    table.get(number).and_then(|node| node.gone).ok_or(error)
                }
            },
        }
    }

    fn attr_of_stat(&self, number: u64, stat: &Statx, body: &Body) -> FileAttr {
        let time = |at: &rustix::fs::StatxTimestamp| Timespec {
            tv_sec: at.tv_sec,
            tv_nsec: at.tv_nsec.into(),
        };
        let (uid, gid) = match self.owners {
            Owners::One => (self.owner.uid, self.owner.gid),
            Owners::Each => (stat.stx_uid, stat.stx_gid),
        };
        let links = match body {
            // Counting the subdirectories of a merged directory would need a listing; 1 means "not counted".
            Body::Directory {
                origin: Some(_), ..
            } => 1,
            _ => stat.stx_nlink,
        };
        let device = rustix::fs::makedev(stat.stx_rdev_major, stat.stx_rdev_minor);
        FileAttr {
            number,
            kind: host::file_type(stat),
            mode: host::mode(stat),
            size: stat.stx_size,
            blocks: stat.stx_blocks,
            atime: time(&stat.stx_atime),
            mtime: time(&stat.stx_mtime),
            ctime: time(&stat.stx_ctime),
            links,
            uid,
            gid,
            device: device as u32,
        }
    }

    fn attr_of_body(&self, number: u64, body: &Body) -> FileAttr {
        let (meta, kind, size, data, links) = match body {
            Body::Directory { origin, .. } => {
                let origin = origin
                    .as_ref()
                    .expect("what is not in the upper has an origin");
                (&origin.meta, FileType::Directory, 4096, 4096, 1)
            }
            Body::Stored { entry, links } => {
                let (kind, data) = (kind_of_stored(entry), data_of_stored(&self.trees, entry));
                (&entry.meta, kind, entry.size(), data, *links)
            }
            Body::Upper { .. } => unreachable!("what is in the upper is asked there"),
        };
        let seen = Seen {
            number,
            kind,
            size,
            data,
            links,
            owner: self.owner,
        };
        attr_of_stored(seen, meta)
    }

    pub fn set_attributes(
        &self,
        number: u64,
        handle: Option<&Handle>,
        new: &NewAttributes,
    ) -> Io<FileAttr> {
        if self.owners == Owners::One {
            let is_other = |asked: Option<u32>, owner: u32| asked.is_some_and(|it| it != owner);
            if is_other(new.uid, self.owner.uid) || is_other(new.gid, self.owner.gid) {
                return Err(Errno::PERM);
            }
        }
        let data = match new.size {
            Some(size) => Data::UpTo(size),
            None => Data::Whole,
        };
        self.copy_up(number, data)?;
        self.set_in_upper(number, handle, new)?;
        self.attr(number)
    }

    fn set_in_upper(&self, number: u64, handle: Option<&Handle>, new: &NewAttributes) -> Io<()> {
        let _looking = self.looking();
        let reach = self.reach(number)?;
        if let Some(size) = new.size {
            self.truncate(&reach, handle, size)?;
            if new.kill_privileges {
                clear_privileges(&reach)?;
            }
        }
        if new.uid.is_some() || new.gid.is_some() {
            self.change_owner(&reach, new)?;
        }
        if let Some(mode) = new.mode {
            reach.chmod(mode)?;
        }
        if let Some(times) = &new.times {
            reach.set_times(times)?;
        }
        Ok(())
    }

    fn change_owner(&self, reach: &Reach, new: &NewAttributes) -> Io<()> {
        match self.owners {
            Owners::Each => reach.chown(new.uid, new.gid),
            Owners::One => clear_privileges(reach),
        }
    }

    fn truncate(&self, reach: &Reach, handle: Option<&Handle>, size: u64) -> Io<()> {
        let opened = match handle {
            Some(Handle::File(open)) => open.writable().cloned(),
            _ => None,
        };
        let file = match opened {
            Some(file) => file,
            None => Arc::new(reach.reopen(OFlags::WRONLY | OFlags::NONBLOCK)?),
        };
        let charge = self.charge_size(&file, size)?;
        rustix::fs::ftruncate(&file, size)?;
        charge.keep();
        Ok(())
    }

    pub fn get_xattr(&self, number: u64, name: &[u8]) -> Io<Vec<u8>> {
        if !is_shown(name) {
            return Err(Errno::NODATA);
        }
        let _looking = self.looking();
        match self.stored_meta(number)? {
            Some(meta) => {
                let value = meta.xattrs.get(name);
                value.map(<[u8]>::to_vec).ok_or(Errno::NODATA)
            }
            None => self.reach(number)?.get_xattr(name),
        }
    }

    pub fn list_xattrs(&self, number: u64) -> Io<Vec<u8>> {
        let _looking = self.looking();
        let names: Vec<Vec<u8>> = match self.stored_meta(number)? {
            Some(meta) => meta.xattrs.keys().map(<[u8]>::to_vec).collect(),
            None => {
                let names = self.reach(number)?.list_xattrs()?;
                let names = names.split(|&byte| byte == 0);
                names.map(<[u8]>::to_vec).collect()
            }
        };
        Ok(name_list(names.iter().filter(|name| is_shown(name))))
    }

    pub fn set_xattr(&self, number: u64, name: &[u8], value: &[u8], flags: u32) -> Io<()> {
        if !is_shown(name) {
            return Err(Errno::NOTSUP);
        }
        self.copy_up(number, Data::Whole)?;
        let _looking = self.looking();
        let flags = XattrFlags::from_bits_retain(flags);
        self.reach(number)?.set_xattr(name, value, flags)
    }

    pub fn remove_xattr(&self, number: u64, name: &[u8]) -> Io<()> {
        if !is_shown(name) {
            return Err(Errno::NODATA);
        }
        self.copy_up(number, Data::Whole)?;
        let _looking = self.looking();
        self.reach(number)?.remove_xattr(name)
    }

    /// The metadata of an entry of the base.
    fn stored_meta(&self, number: u64) -> Io<Option<Meta>> {
        Ok(match self.body(number)? {
            Body::Stored { entry, .. } => Some(entry.meta.clone()),
            Body::Directory {
                in_upper: false,
                origin: Some(origin),
            } => Some(origin.meta.clone()),
            _ => None,
        })
    }

    pub fn read_link(&self, number: u64) -> Io<Vec<u8>> {
        let _looking = self.looking();
        match self.body(number)? {
            Body::Stored { entry, .. } => match &entry.kind {
                Kind::Symlink { target } => Ok(target.clone()),
                _ => Err(Errno::INVAL),
            },
            Body::Upper { kind } if kind == FileType::Symlink && number != TOP => {
                let name = self.name_of(number)?;
                let directory = self.directory(name.parent)?;
                let target = rustix::fs::readlinkat(directory, name.name, Vec::new())?;
                Ok(target.into_bytes())
            }
            _ => Err(Errno::INVAL),
        }
    }
}

/// The mode bits that an unprivileged change clears: set-user-id, and set-group-id with group execute.
pub fn clear_privileges(reach: &Reach) -> Io<()> {
    let stat = reach.stat()?;
    if host::file_type(&stat) != FileType::RegularFile {
        return Ok(());
    }
    let mode = host::mode(&stat);
    let group = if mode & 0o010 != 0 { 0o2000 } else { 0 };
    match mode & !(0o4000 | group) {
        cleared if cleared != mode => reach.chmod(cleared),
        _ => Ok(()),
    }
}

/// A tree stores `user.` attributes, except those that overlayfs would interpret.
fn is_shown(name: &[u8]) -> bool {
    name.starts_with(b"user.") && !name.starts_with(b"user.overlay.")
}

/// The times of a copied-up file.
pub fn stored_times(meta: &Meta) -> Timestamps {
    let time = timespec(meta.mtime);
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}
