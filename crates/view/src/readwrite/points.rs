//! Directories that a view has although neither the base nor the layer does: the mount points of a sandbox.
//!
//! They are found by name and not listed: programs of the host see no more than the vault. What is written in one makes it a
//! directory of the layer.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use avfs_vault::{Entry, Time, VaultPath};
use rustix::fs::{AtFlags, CWD, Nsecs, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;

use super::host::{self, Io};
use super::nodes::{Key, Origin, TOP};
use super::view::View;

/// The mode of a mount point, as in the skeleton of an overlay.
const MODE: u32 = 0o755;

/// The directories on which a sandbox mounts, and others that it needs.
#[derive(Debug, Clone, Default)]
pub struct MountPoints {
    /// Mounted on. They and the directories above them can be neither renamed nor removed: the kernel would unmount what
    /// is there without a word.
    pub mounted: BTreeSet<VaultPath>,
    /// Only there.
    pub others: BTreeSet<VaultPath>,
}

pub struct Points {
    /// All of them, with the directories above.
    all: BTreeSet<VaultPath>,
    kept: BTreeSet<VaultPath>,
    are_shown: AtomicBool,
}

impl Points {
    pub fn new(points: &MountPoints) -> Points {
        let kept = with_parents(&points.mounted);
        let mut all = with_parents(&points.others);
        all.extend(kept.iter().cloned());
        Points {
            all,
            kept,
            are_shown: AtomicBool::new(false),
        }
    }

    fn are_shown(&self) -> bool {
        self.are_shown.load(Ordering::Acquire)
    }

    /// What is at this name of a directory, where the base has nothing.
    pub fn entry(&self, origin: &Origin, name: &[u8]) -> Option<Entry> {
        if !self.are_shown() {
            return None;
        }
        let path = origin.path.join(name).ok()?;
        let directory = || Entry::directory(MODE, Time { secs: 0, nanos: 0 });
        self.all.contains(&path).then(directory)
    }
}

fn special(tv_nsec: Nsecs) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec }
}

fn with_parents(paths: &BTreeSet<VaultPath>) -> BTreeSet<VaultPath> {
    let mut all = BTreeSet::new();
    for path in paths {
        let mut at = Some(path.clone());
        while let Some(path) = at.filter(|path| !path.is_root()) {
            at = path.parent();
            all.insert(path);
        }
    }
    all
}

impl View {
    /// Shows the mount points from now on.
    pub fn show_points(&self) {
        if self.points.are_shown.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(notifier) = self.notifier.get() else {
            return;
        };
        // The kernel may remember that there is no such name.
        for path in &self.points.all {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            let parent = match parent.is_root() {
                true => Some(TOP),
                false => self.table().by_key(Key::of_path(&parent)),
            };
            if let Some(parent) = parent {
                notifier.forget_name(parent, name);
            }
        }
    }

    /// Whether this is in no base: nothing but a mount point.
    pub fn is_point(&self, origin: &Origin) -> Io<bool> {
        if !self.points.are_shown() || !self.points.all.contains(&origin.path) {
            return Ok(false);
        }
        let stored = self.trees.entry(self.base, &origin.path);
        Ok(stored.map_err(|_| Errno::IO)?.is_none())
    }

    /// A mount point is now a directory of the layer, which listings of its parent have. The kernel does not know that,
    /// and drops its listing if the time of the parent is another one.
    pub fn listed_now(&self, parent: u64, directory: &OwnedFd) -> Io<()> {
        let times = Timestamps {
            last_access: special(UTIME_OMIT),
            last_modification: special(UTIME_NOW),
        };
        rustix::fs::utimensat(CWD, host::again(directory), &times, AtFlags::empty())?;
        if let Some(notifier) = self.notifier.get() {
            notifier.forget_attributes(parent);
        }
        Ok(())
    }

    /// Refuses to take a name away beneath which a sandbox has mounts.
    pub fn check_not_point(&self, parent: u64, name: &[u8]) -> Io<()> {
        if !self.points.are_shown() {
            return Ok(());
        }
        // No mount point is deeper; not every name of a deep tree is walked up.
        let deepest = self
            .points
            .kept
            .iter()
            .map(|path| path.components().count());
        let mut names = vec![name.to_vec()];
        let mut at = parent;
        while at != TOP {
            if names.len() >= deepest.clone().max().unwrap_or(0) {
                return Ok(());
            }
            let above = self.name_of(at)?;
            names.push(above.name);
            at = above.parent;
        }
        let text = names.iter().rev().flat_map(|name| [b"/", &**name].concat());
        let path = VaultPath::parse(&text.collect::<Vec<u8>>()).map_err(|_| Errno::INVAL)?;
        match self.points.kept.contains(&path) {
            true => Err(Errno::BUSY),
            false => Ok(()),
        }
    }
}
