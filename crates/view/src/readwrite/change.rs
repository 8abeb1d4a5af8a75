//! Creating and removing names.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use avfs_fuse::{Caller, FileAttr, FileHandle, Name};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, linkat, mkdirat, mknodat, renameat,
    renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::Owners;
use super::copyup::{Data, link_open_file};
use super::host::{self, Io, Reach};
use super::nodes::{self, Body, Found, Key};
use super::view::{MergedDirectory, View};
use crate::Owner;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Directory,
    /// Something that takes several steps to make, and must appear atomically.
    DirectoryInSteps,
    Leaf,
}

impl View {
    /// The directory in the upper in which `name` can be made.
    fn parent_for(&self, Name { parent, name }: Name<'_>) -> Io<Arc<OwnedFd>> {
        if self.is_hidden(name) {
            return Err(Errno::PERM);
        }
        let upper = self.directory_for(parent)?;
        let place = self.place(parent)?;
        match host::stat(&*upper, name) {
            Ok(stat) if host::is_whiteout(&stat) => Ok(upper),
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) if self.shows_through(&place, name)? => Err(Errno::EXIST),
            Err(Errno::NOENT) => Ok(upper),
            Err(error) => Err(error),
        }
    }

    /// The directory `number` in the upper, for a new entry.
    pub fn directory_for(&self, number: u64) -> Io<Arc<OwnedFd>> {
        // A removed directory takes no new entries.
        if self.table().get(number).is_some_and(|it| it.gone.is_some()) {
            return Err(Errno::NOENT);
        }
        self.directory_in_upper(number)
    }

    /// Makes something called `name`; replaces a whiteout atomically.
    fn make<T>(
        &self,
        parent: &OwnedFd,
        name: &[u8],
        shape: Shape,
        make: impl Fn(&[u8]) -> Io<T>,
    ) -> Io<T> {
        if shape != Shape::DirectoryInSteps {
            match make(name) {
                Err(Errno::EXIST) => {}
                outcome => return outcome,
            }
        }
        let temporary = host::unfinished_name(&self.prefix);
        let made = make(&temporary)?;
        let moved = match shape {
            Shape::Leaf => renameat(parent, &temporary, parent, name),
            Shape::Directory | Shape::DirectoryInSteps => {
                directory_into_place(parent, &temporary, name)
            }
        };
        moved.inspect_err(|_| {
            let flags = match shape {
                Shape::Leaf => AtFlags::empty(),
                Shape::Directory | Shape::DirectoryInSteps => AtFlags::REMOVEDIR,
            };
            let _ = unlinkat(parent, &temporary, flags);
        })?;
        Ok(made)
    }

    fn hand_out(&self, Name { parent, name }: Name<'_>) -> Io<FileAttr> {
        let place = self.place(parent)?;
        let made = self.hand_out_item(&place, parent, name)?;
        made.ok_or(Errno::NOENT)
    }

    /// Sets owner and mode of a new file, whatever the umask of this process.
    fn settle(&self, caller: Caller, parent: &OwnedFd, new: &Reach, mode: u32) -> Io<()> {
        let owner = match self.owners {
            Owners::One => self.owner_on_host(),
            Owners::Each => {
                let directory = host::stat_open(parent)?;
                let inherits = host::mode(&directory) & 0o2000 != 0;
                let gid = if inherits {
                    directory.stx_gid
                } else {
                    caller.gid
                };
                let uid = caller.uid;
                Some(Owner { uid, gid })
            }
        };
        let stat = new.stat()?;
        let (uid, gid) = (stat.stx_uid, stat.stx_gid);
        let is_other = owner.filter(|owner| *owner != Owner { uid, gid });
        if let Some(Owner { uid, gid }) = is_other {
            new.chown(Some(uid), Some(gid))?;
        }
        let is_symlink = host::file_type(&stat) == FileType::Symlink;
        if !is_symlink && (is_other.is_some() || host::mode(&stat) != mode) {
            new.chmod(mode)?;
        }
        Ok(())
    }

    pub fn create(
        &self,
        caller: Caller,
        name: Name<'_>,
        mode: u32,
        flags: u32,
    ) -> Io<(FileAttr, FileHandle)> {
        let _changing = self.changing();
        let upper = self.parent_for(name)?;
        let charge = self.charge_name(0)?;
        let mode = mode & 0o7777;
        let file = self.make(&upper, name.name, Shape::Leaf, |name| {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
            let opened = host::open(&*upper, name, flags, Mode::from_raw_mode(mode))?;
            let file = Arc::new(File::from(opened));
            self.settle(caller, &upper, &Reach::Open(file.clone()), mode)?;
            Ok(file)
        })?;
        charge.keep();
        let made = self.hand_out(name)?;
        let handle = self.opened_new(made.number, file, flags)?;
        Ok((made, handle))
    }

    /// Makes an open unnamed file, which can be linked later.
    pub fn create_nameless(
        &self,
        caller: Caller,
        directory: u64,
        mode: u32,
        flags: u32,
    ) -> Io<(FileAttr, FileHandle)> {
        let _changing = self.changing();
        let upper = self.directory_for(directory)?;
        let file = Arc::new(self.nameless_file(&upper)?);
        self.settle(caller, &upper, &Reach::Open(file.clone()), mode & 0o7777)?;
        let stat = host::stat_open(&file)?;
        let found = Found {
            key: Key::Upper(stat.stx_ino),
            body: Body::Upper {
                kind: FileType::RegularFile,
            },
            stat: Some(stat),
        };
        let number = self.table().hand_out_nameless(&found);
        let handle = self.opened_new(number, file, flags)?;
        Ok((self.attr_of_found(number, &found), handle))
    }

    pub fn make_directory(&self, caller: Caller, name: Name<'_>, mode: u32) -> Io<FileAttr> {
        let _changing = self.changing();
        let upper = self.parent_for(name)?;
        let inherited = host::mode(&host::stat_open(&*upper)?) & 0o2000;
        let mode = mode & 0o7777 | inherited;
        // It must be writable to set the mark.
        let shape = match mode & 0o300 {
            0o300 => Shape::Directory,
            _ => Shape::DirectoryInSteps,
        };
        self.make(&upper, name.name, shape, |name| {
            mkdirat(&*upper, name, Mode::from_raw_mode(mode | 0o300))?;
            let made = host::open_directory(&*upper, name)?;
            // Opaque: whatever its name will be, nothing of the base shows through.
            self.marks.set_opaque(&made)?;
            let reach = Reach::Name {
                directory: upper.clone(),
                name: name.to_vec(),
            };
            self.settle(caller, &upper, &reach, mode)
        })?;
        self.hand_out(name)
    }

    pub fn make_symlink(&self, caller: Caller, name: Name<'_>, target: &[u8]) -> Io<FileAttr> {
        let _changing = self.changing();
        let upper = self.parent_for(name)?;
        let charge = self.charge_name(0)?;
        self.make(&upper, name.name, Shape::Leaf, |name| {
            symlinkat(target, &*upper, name)?;
            let reach = Reach::Name {
                directory: upper.clone(),
                name: name.to_vec(),
            };
            self.settle(caller, &upper, &reach, 0o777)
        })?;
        charge.keep();
        self.hand_out(name)
    }

    pub fn make_node(
        &self,
        caller: Caller,
        name: Name<'_>,
        mode: u32,
        device: u32,
    ) -> Io<FileAttr> {
        let kind = FileType::from_raw_mode(mode);
        let is_device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
        // That device is a whiteout.
        if kind == FileType::CharacterDevice && device == 0 {
            return Err(Errno::PERM);
        }
        let _changing = self.changing();
        let upper = self.parent_for(name)?;
        let charge = self.charge_name(0)?;
        let device = if is_device { expanded(device) } else { 0 };
        let mode = mode & 0o7777;
        self.make(&upper, name.name, Shape::Leaf, |name| {
            mknodat(&*upper, name, kind, Mode::from_raw_mode(mode), device)?;
            let reach = Reach::Name {
                directory: upper.clone(),
                name: name.to_vec(),
            };
            self.settle(caller, &upper, &reach, mode)
        })?;
        charge.keep();
        self.hand_out(name)
    }

    pub fn link(&self, number: u64, name: Name<'_>) -> Io<FileAttr> {
        self.copy_up(number, Data::Whole)?;
        let _changing = self.changing();
        let upper = self.parent_for(name)?;
        let reach = self.reach(number)?;
        let charge = self.charge_name(reach.stat()?.stx_size)?;
        let source = self.name_of(number);
        self.make(&upper, name.name, Shape::Leaf, |name| {
            match (&source, &reach) {
                (Ok(source), _) => {
                    let directory = self.directory(source.parent)?;
                    let flags = AtFlags::empty();
                    linkat(&*directory, &source.name, &*upper, name, flags)
                }
                (Err(_), Reach::Open(file)) => link_open_file(file, &upper, name),
                (Err(error), _) => Err(*error),
            }
        })?;
        charge.keep();
        self.hand_out(name)
    }

    pub fn unlink(&self, parent: u64, name: &[u8]) -> Io<()> {
        let _changing = self.changing();
        let found = self.find(parent, name)?.ok_or(Errno::NOENT)?;
        if matches!(found.body, Body::Directory { .. }) {
            return Err(Errno::ISDIR);
        }
        let upper = self.directory_in_upper(parent)?;
        let place = self.place(parent)?;
        let attr = self.attr_of_found(self.table().number(found.key), &found);
        match (&found.stat, self.shows_through(&place, name)?) {
            (Some(_), false) => unlinkat(&*upper, name, AtFlags::empty())?,
            _ => host::cover(&upper, name, &self.prefix)?,
        }
        self.lost_name(parent, name, &found, attr);
        Ok(())
    }

    /// Records that `name` no longer means this node.
    pub fn lost_name(&self, parent: u64, name: &[u8], found: &Found, mut attr: FileAttr) {
        let is_directory = matches!(found.body, Body::Directory { .. });
        if !is_directory {
            self.refund_name(attr.size);
        }
        let mut table = self.table();
        let Some(number) = table.by_key(found.key) else {
            return;
        };
        let Some(node) = table.get_mut(number) else {
            return;
        };
        node.names
            .retain(|it| it.parent != parent || it.name != name);
        if let Body::Stored { links, .. } = &mut node.body {
            *links = links.saturating_sub(1);
        }
        attr.links = attr.links.saturating_sub(1);
        if is_directory || attr.links == 0 {
            attr.links = 0;
            table.bury(number, attr);
        }
        drop(table);
        if is_directory {
            self.close_directory(number);
        }
    }

    pub fn remove_directory(&self, parent: u64, name: &[u8]) -> Io<()> {
        let _changing = self.changing();
        self.check_not_point(parent, name)?;
        let found = self.find(parent, name)?.ok_or(Errno::NOENT)?;
        let inner = self.place_of(parent, name, &found)?;
        if !self.is_empty(&inner)? {
            return Err(Errno::NOTEMPTY);
        }
        let upper = self.directory_in_upper(parent)?;
        let place = self.place(parent)?;
        let covers = self.shows_through(&place, name)?;
        let attr = self.attr_of_found(self.table().number(found.key), &found);
        match (&inner.upper, covers) {
            (None, _) => host::cover(&upper, name, &self.prefix)?,
            (Some(_), _) => self.take_directory_away(&upper, name, covers)?,
        }
        self.lost_name(parent, name, &found, attr);
        Ok(())
    }

    /// Removes the upper's directory `name`, which is empty in the view.
    pub fn take_directory_away(&self, upper: &OwnedFd, name: &[u8], covers: bool) -> Io<()> {
        if !covers {
            match unlinkat(upper, name, AtFlags::REMOVEDIR) {
                // It still has whiteouts.
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                outcome => return outcome,
            }
        }
        let aside = host::unfinished_name(&self.prefix);
        if covers {
            host::rename_covering((upper, name), (upper, &aside))?;
        } else {
            renameat(upper, name, upper, &aside)?;
        }
        // It is renamed to a hidden name; what is left is never committed.
        let _ = host::remove_directory(upper, &aside);
        Ok(())
    }

    /// Upper and origin of the directory that was found as `name`.
    pub fn place_of(&self, parent: u64, name: &[u8], found: &Found) -> Io<MergedDirectory> {
        let Body::Directory { in_upper, origin } = &found.body else {
            return Err(Errno::NOTDIR);
        };
        let upper = match in_upper {
            true => {
                let above = self.directory(parent)?;
                Some(Arc::new(host::open_directory(&*above, name)?))
            }
            false => None,
        };
        Ok(MergedDirectory {
            upper,
            origin: origin.clone(),
        })
    }

    /// Records that a node is now called `name`.
    pub fn renamed(&self, found: &Found, old: &nodes::Name, new: nodes::Name) {
        let mut table = self.table();
        let number = table.by_key(found.key);
        let Some(node) = number.and_then(|number| table.get_mut(number)) else {
            return;
        };
        node.names.retain(|it| it != old);
        node.names.push(new);
    }
}

/// Renames a directory to a free name, or over a whiteout.
fn directory_into_place(parent: &OwnedFd, from: &[u8], to: &[u8]) -> Io<()> {
    match renameat(parent, from, parent, to) {
        Err(Errno::NOTDIR) => {
            renameat_with(parent, from, parent, to, RenameFlags::EXCHANGE)?;
            unlinkat(parent, from, AtFlags::empty())
        }
        outcome => outcome,
    }
}

/// The kernel sends device numbers in their old 32-bit encoding.
fn expanded(device: u32) -> u64 {
    let major = (device >> 8) & 0xfff;
    let minor = (device & 0xff) | ((device >> 12) & 0xfff00);
    rustix::fs::makedev(major, minor)
}
