//! Computes the steps for the host, or the conflicts that forbid them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use avfs_vault::{Change, ChangeKind, Entry, Kind, RootId, Trees, VaultPath};
use rustix::fs::{FileType, Stat};

use super::record::Step;
use super::{ApplyAction, ApplyReport};
use crate::error::{Error, Result};
use crate::export::FILE_MODE;
use crate::host_tree::{HostTree, Look, Stamp};
use crate::progress::Tally;

/// All steps, in order.
#[derive(Default)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// The entries of the numbered new files.
    pub entries: BTreeMap<usize, Entry>,
    changes: Vec<(Vec<u8>, ApplyAction)>,
}

/// Steps in the order in which they are done: removals first, modes last.
#[derive(Default)]
struct Parts {
    removals: Vec<Step>,
    directories: Vec<Step>,
    files: Vec<Step>,
    modes: Vec<Step>,
}

struct Planning<'a> {
    trees: &'a Trees,
    host: &'a HostTree,
    parts: Parts,
    plan: Plan,
    conflicts: Vec<(String, &'static str)>,
    /// Paths that change between directory and other kinds, so that paths beneath them cannot exist on the host yet.
    remade: BTreeSet<VaultPath>,
    numbers: usize,
}

impl Plan {
    /// Compares the tree at the import, the tree now, and the host.
    /// `HostChanged` where the host differs from the tree at the import.
    pub fn make(
        trees: &Trees,
        (base, head): (RootId, RootId),
        at: &VaultPath,
        host: &HostTree,
        tally: &Tally<'_>,
    ) -> Result<Plan> {
        let mut planning = Planning {
            trees,
            host,
            parts: Parts::default(),
            plan: Plan::default(),
            conflicts: Vec::new(),
            remade: BTreeSet::new(),
            numbers: 0,
        };
        for change in trees.diff(base, head)? {
            tally.check()?;
            let Some(path) = change.path.rebase(at, &VaultPath::root()) else {
                continue;
            };
            if !path.is_root() && change.kind != ChangeKind::Times {
                planning.add(path, change)?;
            }
        }
        planning.finish()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub fn report(&self, at: VaultPath, host_dir: PathBuf) -> ApplyReport {
        let count = |wanted: fn(&Step) -> bool| {
            let steps = self.steps.iter().filter(|step| wanted(step));
            steps.count() as u64
        };
        ApplyReport {
            at,
            host_dir,
            files: self.entries.len() as u64,
            deleted: count(|step| matches!(step, Step::Remove { .. })),
            directories: count(|step| matches!(step, Step::MakeDirectory { .. })),
            bytes: self
                .entries
                .values()
                .filter(|e| e.is_file())
                .map(Entry::size)
                .fold(0, u64::saturating_add),
            changes: self.changes.clone(),
            skipped: Vec::new(),
            runs_by_itself: Vec::new(),
        }
    }
}

impl Planning<'_> {
    fn add(&mut self, path: VaultPath, change: Change) -> Result<()> {
        let (before, after) = (change.before, change.after.map(outside));
        let is_dir = |entry: &Option<Entry>| entry.as_ref().is_some_and(Entry::is_dir);
        if before.is_some() && after.is_some() && is_dir(&before) != is_dir(&after) {
            self.remade.insert(path.clone());
        }
        let stat = match self.host.look(&path)? {
            Look::There(stat) => Some(stat),
            Look::Nothing => None,
            Look::Blocked if self.is_remade(&path) => None,
            Look::Blocked => return self.refuse(&path, "what it is in is no directory there"),
        };
        let has = |entry: &Option<Entry>| match (&stat, entry) {
            (None, None) => Ok(true),
            (Some(stat), Some(entry)) => self.host.holds(self.trees, &path, stat, entry),
            _ => Ok(false),
        };
        // If the host has the new state already, there is nothing to do. Its attributes are not compared.
        if change.kind != ChangeKind::Xattrs && has(&after)? {
            return Ok(());
        }
        let there = stat.as_ref().is_some_and(is_directory);
        if is_dir(&after) && there && (before.is_none() || change.kind == ChangeKind::Xattrs) {
            return Ok(());
        }
        // A directory that is removed may have another mode by now.
        let goes = is_dir(&before) && !is_dir(&after) && there;
        if !goes && !has(&before)? {
            let why = match (&before, &stat) {
                (None, _) => "it is new there too",
                (Some(_), None) => "it was removed there",
                (Some(_), Some(_)) => "it changed there",
            };
            return self.refuse(&path, why);
        }
        self.steps_for(path, before, after, stat.as_ref());
        Ok(())
    }

    fn refuse(&mut self, path: &VaultPath, why: &'static str) -> Result<()> {
        let shown = String::from_utf8_lossy(&path.as_bytes()[1..]).into_owned();
        self.conflicts.push((shown, why));
        Ok(())
    }

    fn is_remade(&self, path: &VaultPath) -> bool {
        let mut above = path.parent();
        while let Some(dir) = above {
            if self.remade.contains(&dir) {
                return true;
            }
            above = dir.parent();
        }
        false
    }

    fn steps_for(
        &mut self,
        path: VaultPath,
        before: Option<Entry>,
        after: Option<Entry>,
        stat: Option<&Stat>,
    ) {
        let shown = path.as_bytes()[1..].to_vec();
        let action = match (&before, &after) {
            (None, _) => ApplyAction::Created,
            (_, None) => ApplyAction::Deleted,
            (Some(before), Some(after)) if only_mode(before, after) => ApplyAction::Mode,
            _ => ApplyAction::Replaced,
        };
        self.plan.changes.push((shown, action));
        if let (ApplyAction::Mode, Some(before), Some(after)) = (action, &before, &after) {
            self.parts.modes.push(Step::Chmod {
                path,
                from: before.meta.mode & 0o7777,
                to: after.meta.mode,
            });
            return;
        }
        if let (Some(before), Some(after), Some(stat)) = (&before, &after, stat)
            && !before.is_dir()
            && !after.is_dir()
        {
            let number = self.number();
            self.plan.entries.insert(number, after.clone());
            self.parts.files.push(Step::Replace {
                path,
                number,
                stamp: Stamp::of(stat),
            });
            return;
        }
        if let (Some(before), Some(stat)) = (before, stat) {
            let must_go = after.as_ref().is_some_and(|after| !after.is_dir());
            self.make_room(&path, &before, stat, must_go);
        }
        if let Some(after) = after {
            self.fill(path, after);
        }
    }

    /// Plans the removal of what is at the path.
    fn make_room(&mut self, path: &VaultPath, before: &Entry, stat: &Stat, must_go: bool) {
        let path = path.clone();
        let step = match before.is_dir() {
            true => Step::RemoveDirectory {
                path,
                mode: stat.st_mode & 0o7777,
                must_go,
            },
            false => Step::Remove {
                path,
                number: self.number(),
                stamp: Stamp::of(stat),
            },
        };
        self.parts.removals.push(step);
    }

    /// Plans the creation of an entry where nothing is.
    fn fill(&mut self, path: VaultPath, after: Entry) {
        if !after.is_dir() {
            let number = self.number();
            self.plan.entries.insert(number, after);
            self.parts.files.push(Step::Create { path, number });
            return;
        }
        let (from, to) = (after.meta.mode | 0o700, after.meta.mode);
        if from != to {
            // Its final mode is set last, since it may forbid writing into it.
            let path = path.clone();
            self.parts.modes.push(Step::Chmod { path, from, to });
        }
        let made = Step::MakeDirectory { path, mode: from };
        self.parts.directories.push(made);
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    fn finish(mut self) -> Result<Plan> {
        if !self.conflicts.is_empty() {
            return Err(Error::HostChanged {
                host_dir: self.host.path.clone(),
                paths: self.conflicts,
            });
        }
        // The deepest first.
        self.parts.removals.reverse();
        let Parts {
            removals,
            directories,
            files,
            modes,
        } = self.parts;
        self.plan.steps = [removals, directories, files, modes].concat();
        Ok(self.plan)
    }
}

/// An entry without the mode bits that do not leave the vault.
fn outside(mut entry: Entry) -> Entry {
    entry.meta.mode &= match entry.kind {
        Kind::Directory { .. } => 0o7777,
        _ => FILE_MODE,
    };
    entry
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Whether two states of a path differ only in their mode.
fn only_mode(before: &Entry, after: &Entry) -> bool {
    let same_content = match (&before.kind, &after.kind) {
        (Kind::File { content: a, .. }, Kind::File { content: b, .. }) => a == b,
        (Kind::Directory { .. }, Kind::Directory { .. }) => true,
        _ => false,
    };
    same_content && (before.is_dir() || before.meta.xattrs == after.meta.xattrs)
}
