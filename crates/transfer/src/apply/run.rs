//! Carries a plan out: new files are created in a temporary directory and renamed to their places.

use std::os::fd::OwnedFd;
use std::path::Path;

use avfs_vault::{Trees, VaultPath};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::plan::Plan;
use super::record::{Kept, Step, chmod, clear_away, new_name, old_name};
use crate::aside::{Aside, AsideKind};
use crate::error::{Error, Result};
use crate::export::HostWriter;
use crate::host_tree::{HostTree, Stamp, name, rename_new};
use crate::progress::Tally;
use crate::report::Skipped;

impl Plan {
    /// Does all steps, or undoes them. Returns what the host kept or refused.
    pub fn apply(
        self,
        trees: &Trees,
        host: &HostTree,
        records: &Path,
        tally: Tally<'_>,
    ) -> Result<Vec<Skipped>> {
        let (kept, work, mut skipped) = self.begin(trees, host, records, tally)?;
        for (at, step) in kept.record.steps.iter().enumerate() {
            match work.take(step) {
                Ok(left) => skipped.extend(left),
                Err(error) => {
                    // A directory that could not be created is not ours to remove.
                    let count = at + usize::from(!matches!(step, Step::MakeDirectory { .. }));
                    // If undoing fails, the record stays, and the next start undoes the rest.
                    kept.record.undo(host, &work.aside, count)?;
                    clear_away(host, &kept.record.aside)?;
                    kept.forget()?;
                    return Err(error);
                }
            }
        }
        let done = kept.done()?;
        clear_away(host, &done.record.aside)?;
        done.forget()?;
        Ok(skipped)
    }

    /// Creates all new files in a temporary directory, then writes the record of the steps.
    pub(super) fn begin<'a>(
        self,
        trees: &Trees,
        host: &'a HostTree,
        records: &Path,
        tally: Tally<'_>,
    ) -> Result<(Kept, Work<'a>, Vec<Skipped>)> {
        // Dropped on failure, which removes it with its content; after success the record is in charge.
        let made = Aside::make(records, &host.path, AsideKind::Directory)?;
        let fd = made.fd.try_clone();
        let fd = fd.map_err(Error::host("open", &*made.path))?;
        let work = Work { host, aside: fd };
        let skipped = work.stage(&self, trees, &made.path, tally)?;
        let kept = Kept::write(records, &host.path, &made.name, self.steps)?;
        made.hand_over();
        Ok((kept, work, skipped))
    }
}

/// The host directory, and the temporary directory in it.
pub struct Work<'a> {
    host: &'a HostTree,
    aside: OwnedFd,
}

impl Work<'_> {
    /// Creates every new file, with content and metadata, in the temporary directory.
    fn stage(
        &self,
        plan: &Plan,
        trees: &Trees,
        aside_path: &Path,
        tally: Tally<'_>,
    ) -> Result<Vec<Skipped>> {
        let mut writer = HostWriter::new(trees, aside_path, tally);
        for step in &plan.steps {
            let (Step::Create { path, number } | Step::Replace { path, number, .. }) = step else {
                continue;
            };
            let name = new_name(*number);
            let aside = VaultPath::root().join(name.as_bytes())?;
            let entry = plan.entries[number].clone();
            let is_file = entry.is_file();
            writer.make((&self.aside, &self.aside), &aside, entry)?;
            self.give_away(path, &name);
            if is_file {
                self.sync(&name).map_err(self.host.failed("write", path))?;
            }
        }
        let mut skipped = writer.report.skipped;
        for left in &mut skipped {
            let path = plan.steps.iter().find_map(|step| match step {
                Step::Create { path, number } | Step::Replace { path, number, .. }
                    if new_name(*number).as_bytes() == left.path =>
                {
                    Some(path.as_bytes()[1..].to_vec())
                }
                _ => None,
            });
            left.path = path.unwrap_or_default();
        }
        Ok(skipped)
    }

    /// Gives a new file the owner of the file that it replaces, or of its directory. Only root can.
    fn give_away(&self, path: &VaultPath, new: &str) {
        let Some(owner) = self.owner_of(path) else {
            return;
        };
        let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
        let nofollow = AtFlags::SYMLINK_NOFOLLOW;
        // Without root it fails, and the file stays the caller's.
        let _ = rustix::fs::chownat(&self.aside, new, Some(uid), Some(gid), nofollow);
    }

    /// The status of the path, or of the nearest directory above it that exists.
    fn owner_of(&self, path: &VaultPath) -> Option<Stat> {
        let mut at = path.clone();
        while !at.is_root() {
            let found = self.host.parent(&at).and_then(|parent| {
                rustix::fs::statat(&parent, name(&at), AtFlags::SYMLINK_NOFOLLOW)
            });
            if let Ok(stat) = found {
                return Some(stat);
            }
            at = at.parent()?;
        }
        rustix::fs::fstat(&self.host.top).ok()
    }

    fn sync(&self, new: &str) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.aside, new, flags, Mode::empty()) {
            Ok(file) => rustix::fs::fsync(&file),
            // Its mode forbids its owner to read it.
            Err(Errno::ACCESS) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Does one step. Returns a directory that had to stay.
    pub fn take(&self, step: &Step) -> Result<Option<Skipped>> {
        match step {
            Step::Remove {
                path,
                number,
                stamp,
            } => self.remove(path, *number, *stamp)?,
            Step::RemoveDirectory { path, must_go, .. } => {
                return self.remove_directory(path, *must_go);
            }
            Step::MakeDirectory { path, mode } => self.make_directory(path, *mode)?,
            Step::Create { path, number } => {
                let placed = self.host.parent(path).and_then(|parent| {
                    rename_new(&self.aside, &new_name(*number)[..], &parent, name(path))
                });
                self.settle(path, placed)?;
            }
            Step::Replace {
                path,
                number,
                stamp,
            } => self.replace(path, *number, *stamp)?,
            Step::Chmod { path, to, .. } => self.settle(path, chmod(self.host, path, *to))?,
        }
        Ok(None)
    }

    fn remove(&self, path: &VaultPath, number: usize, stamp: Stamp) -> Result<()> {
        let old = old_name(number);
        let moved = self
            .host
            .parent(path)
            .and_then(|parent| rename_new(&parent, name(path), &self.aside, &old[..]));
        self.settle(path, moved)?;
        self.check_old(path, &old, stamp)
    }

    /// Hard-links the old file into the temporary directory first, so that its path is never missing.
    fn replace(&self, path: &VaultPath, number: usize, stamp: Stamp) -> Result<()> {
        let (old, new) = (old_name(number), new_name(number));
        let parent = self.host.parent(path).map_err(|_| self.changed(path))?;
        let linked = rustix::fs::linkat(&parent, name(path), &self.aside, &old, AtFlags::empty());
        let kept = match linked {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => Err(Errno::NOENT),
            // Some filesystems have no hard links, and `protected_hardlinks` may forbid one.
            Err(_) => rename_new(&parent, name(path), &self.aside, &old[..]),
        };
        self.settle(path, kept)?;
        self.check_old(path, &old, stamp)?;
        let placed = rustix::fs::renameat(&self.aside, &new, &parent, name(path));
        self.settle(path, placed)
    }

    /// Checks that the old file that was kept is the one that was planned for.
    fn check_old(&self, path: &VaultPath, old: &str, stamp: Stamp) -> Result<()> {
        let stat = rustix::fs::statat(&self.aside, old, AtFlags::SYMLINK_NOFOLLOW);
        match stat {
            Ok(stat) if Stamp::of(&stat) == stamp => Ok(()),
            Ok(_) => Err(self.changed(path)),
            Err(errno) => Err(self.host.failed("look at", path)(errno)),
        }
    }

    fn remove_directory(&self, path: &VaultPath, must_go: bool) -> Result<Option<Skipped>> {
        let removed = self
            .host
            .parent(path)
            .and_then(|parent| rustix::fs::unlinkat(&parent, name(path), AtFlags::REMOVEDIR));
        match removed {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) if !must_go => Ok(Some(Skipped {
                path: path.as_bytes()[1..].to_vec(),
                reason: "the directory stays: the host has more in it".into(),
            })),
            Err(Errno::NOTEMPTY) => Err(self.changed(path)),
            removed => self.settle(path, removed).map(|()| None),
        }
    }

    fn make_directory(&self, path: &VaultPath, mode: u32) -> Result<()> {
        let owner = self.owner_of(path);
        let made = self.host.parent(path).and_then(|parent| {
            rustix::fs::mkdirat(&parent, name(path), Mode::RWXU)?;
            if let Some(owner) = owner {
                let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
                let nofollow = AtFlags::SYMLINK_NOFOLLOW;
                let _ = rustix::fs::chownat(&parent, name(path), Some(uid), Some(gid), nofollow);
            }
            let made = chmod(self.host, path, mode | 0o700);
            if made.is_err() {
                let _ = rustix::fs::unlinkat(&parent, name(path), AtFlags::REMOVEDIR);
            }
            made
        });
        self.settle(path, made)
    }

    /// A name that came, went or changed since the plan is `HostChanged`; other failures are errors of the host.
    fn settle(&self, path: &VaultPath, done: Result<(), Errno>) -> Result<()> {
        match done {
            Ok(()) => Ok(()),
            Err(Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                Err(self.changed(path))
            }
            Err(errno) => Err(self.host.failed("write", path)(errno)),
        }
    }

    fn changed(&self, path: &VaultPath) -> Error {
        let shown = String::from_utf8_lossy(&path.as_bytes()[1..]).into_owned();
        Error::HostChanged {
            host_dir: self.host.path.clone(),
            paths: vec![(shown, "it changed there just now")],
        }
    }
}
