//! Renames, including directories of the base.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::copyup::Data;
use super::host::{self, Io};
use super::nodes::{Body, Found, Name};
use super::view::{MergedDirectory, View};

/// One end of a rename, with its directory in the upper.
struct End {
    name: Name,
    upper: Arc<OwnedFd>,
    /// Whether the base has this name, so that removing it needs a whiteout.
    shows_through: bool,
}

impl View {
    pub fn rename(&self, old: Name, new: Name, flags: RenameFlags) -> Io<()> {
        if self.is_hidden(&new.name) {
            return Err(Errno::PERM);
        }
        self.leaf_in_upper(&old)?;
        let exchanges = flags.contains(RenameFlags::EXCHANGE);
        if exchanges {
            self.leaf_in_upper(&new)?;
        }
        let _changing = self.changing();
        self.check_not_point(old.parent, &old.name)?;
        self.check_not_point(new.parent, &new.name)?;
        let source = self.find(old.parent, &old.name)?.ok_or(Errno::NOENT)?;
        let target = self.find(new.parent, &new.name)?;
        match &target {
            Some(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EXIST),
            None if exchanges => return Err(Errno::NOENT),
            Some(target) if target.key == source.key => return Ok(()),
            _ => {}
        }
        let (from, to) = (self.end(old)?, self.end(new)?);
        // Looked up again: the parent directories may have been copied up meanwhile.
        let source = self.ready(&from, source)?;
        match target {
            Some(target) if exchanges => self.exchange(&from, source, &to, target),
            target => self.replace(&from, source, &to, target),
        }
    }

    /// Copies up what is not a directory, before the lock is taken, because it may take long.
    fn leaf_in_upper(&self, name: &Name) -> Io<()> {
        let number = {
            let _looking = self.looking();
            let Some(found) = self.find(name.parent, &name.name)? else {
                return Ok(());
            };
            if !matches!(found.body, Body::Stored { .. }) {
                return Ok(());
            }
            self.table().hand_out(&found, name.clone())
        };
        let outcome = self.copy_up(number, Data::Whole);
        self.forget(number, 1);
        outcome
    }

    fn end(&self, name: Name) -> Io<End> {
        let upper = self.directory_for(name.parent)?;
        let place: MergedDirectory = self.place(name.parent)?;
        let shows_through = self.shows_through(&place, &name.name)?;
        Ok(End {
            name,
            upper,
            shows_through,
        })
    }

    /// Copies a directory up and records its redirect.
    fn ready(&self, end: &End, found: Found) -> Io<Found> {
        let Body::Directory { in_upper, origin } = &found.body else {
            return Ok(found);
        };
        if let (false, Some(origin)) = (in_upper, origin) {
            self.copy_directory(&end.upper, &end.name.name, origin)?;
        }
        let directory = host::open_directory(&*end.upper, &end.name.name)?;
        match origin {
            Some(origin) => self
                .marks
                .set_redirect(&directory, origin.path.as_bytes())?,
            None => self.marks.set_opaque(&directory)?,
        }
        let again = self.find(end.name.parent, &end.name.name)?;
        again.ok_or(Errno::NOENT)
    }

    fn exchange(&self, from: &End, source: Found, to: &End, target: Found) -> Io<()> {
        let target = self.ready(to, target)?;
        exchange(from, to)?;
        self.renamed(&source, &from.name, to.name.clone());
        self.renamed(&target, &to.name, from.name.clone());
        Ok(())
    }

    fn replace(&self, from: &End, source: Found, to: &End, target: Option<Found>) -> Io<()> {
        let is_directory = matches!(source.body, Body::Directory { .. });
        let lost = match target {
            Some(target) => {
                self.check_replaced(to, is_directory, &target)?;
                let number = self.table().number(target.key);
                let attr = self.attr_of_found(number, &target);
                Some((target, attr))
            }
            None => None,
        };
        if is_directory {
            self.move_directory(from, to)?;
        } else {
            move_over(from, to)?;
        }
        if let Some((target, attr)) = lost {
            self.lost_name(to.name.parent, &to.name.name, &target, attr);
        }
        self.renamed(&source, &from.name, to.name.clone());
        Ok(())
    }

    fn check_replaced(&self, to: &End, by_directory: bool, target: &Found) -> Io<()> {
        match (by_directory, &target.body) {
            (true, Body::Directory { .. }) => {
                let inner = self.place_of(to.name.parent, &to.name.name, target)?;
                match self.is_empty(&inner)? {
                    true => Ok(()),
                    false => Err(Errno::NOTEMPTY),
                }
            }
            (true, _) => Err(Errno::NOTDIR),
            (false, Body::Directory { .. }) => Err(Errno::ISDIR),
            (false, _) => Ok(()),
        }
    }

    /// A directory cannot be renamed over a whiteout, nor over a directory with whiteouts in it: they are exchanged, and
    /// the whiteouts are removed at the old name.
    fn move_directory(&self, from: &End, to: &End) -> Io<()> {
        let in_the_way = match host::stat(&*to.upper, &to.name.name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return move_over(from, to),
            Err(error) => return Err(error),
        };
        exchange(from, to)?;
        match (host::is_whiteout(&in_the_way), from.shows_through) {
            (true, true) => Ok(()),
            (true, false) => unlinkat(&*from.upper, &from.name.name, AtFlags::empty()),
            (false, covers) => self.take_directory_away(&from.upper, &from.name.name, covers),
        }
    }
}

/// Exchanges what is at two names of the upper directory.
fn exchange(from: &End, to: &End) -> Io<()> {
    let (old, new) = (&from.name.name, &to.name.name);
    renameat_with(&*from.upper, old, &*to.upper, new, RenameFlags::EXCHANGE)
}

fn move_over(from: &End, to: &End) -> Io<()> {
    let (old, new) = (&from.name.name, &to.name.name);
    if from.shows_through {
        host::rename_covering((&from.upper, old), (&to.upper, new))
    } else {
        renameat(&*from.upper, old, &*to.upper, new)
    }
}
