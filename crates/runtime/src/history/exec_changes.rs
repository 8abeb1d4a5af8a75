//! What one exec changed, told again: all of it, from the roots that the journal has of it.

use avfs_vault::{
    Cause, Change, ExecId, JournalEntry, JournalFilter, JournalOrder, Operation, RecordedOperation,
    RootId, Trees, Vault, VaultName,
};

use crate::bounds::{LISTED_MAX, ListRoom};
use crate::gate::Verb;
use crate::history::changes::{ChangeSet, Patch, each_change};
use crate::history::ignored::{Ignored, Place, Sorter};
use crate::history::patch;
use crate::session::Session;
use crate::{Error, Result};

const UNKNOWN: &str = "no command with this id has ended";
const UNVERSIONED: &str = "it has not ended, did not run, or ran read-only";
const DELETED: &str = "the vault that it ran in is deleted";
const PRUNED: &str = "its versions are pruned";

/// Which changes are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChangesOf {
    /// Those that its report lists, or would if it had room for all.
    #[default]
    Report,
    /// Also what is ignored and what is in the home directory.
    All,
}

#[derive(Debug, Clone)]
pub struct ExecChangesRequest {
    pub exec: ExecId,
    pub of: ChangesOf,
    /// Adds the changes as a patch.
    pub patch: bool,
    /// Where the list goes on: [`ExecChanges::next`] of the part before.
    pub from: u64,
    /// At most so many paths.
    pub limit: Option<usize>,
}

/// A part of what an exec changed.
#[derive(Debug)]
pub struct ExecChanges {
    pub exec: ExecId,
    pub vault: VaultName,
    /// The vault's version when it had ended.
    pub version: u64,
    /// The whole list has its renames paired, a part of it has not.
    pub changes: ChangeSet,
    pub patch: Option<Patch>,
    pub ignored: Ignored,
    /// How many paths of the home directory differ, without caches.
    pub home_changes: u64,
    /// Where the next part begins.
    pub next: Option<u64>,
}

/// The roots of an exec.
struct Span {
    vault: Vault,
    version: u64,
    before: RootId,
    after: RootId,
}

impl Session {
    /// What an exec changed, as long as its versions are kept.
    pub fn exec_changes(&self, request: &ExecChangesRequest) -> Result<ExecChanges> {
        let span = self.span_of(request.exec)?;
        let vaults = &self.inner.vaults;
        let _held = [span.before, span.after].map(|root| vaults.hold(root));
        for root in [span.before, span.after] {
            if !self.is_kept(&span.vault, root)? {
                return Err(unknown(request.exec, PRUNED));
            }
        }
        self.changes_in(&span, request)
    }

    /// Whether a version or a checkpoint has this root. Else it may be swept, as a whole or in part.
    fn is_kept(&self, vault: &Vault, root: RootId) -> Result<bool> {
        let vaults = &self.inner.vaults;
        if vaults.version_of(vault.id, root)?.is_some() {
            return Ok(true);
        }
        let checkpoints = vaults.checkpoints(vault.id)?;
        Ok(checkpoints.iter().any(|it| it.root == root))
    }

    fn changes_in(&self, span: &Span, request: &ExecChangesRequest) -> Result<ExecChanges> {
        let trees = self.inner.vaults.trees();
        let mut part = Part::new(request);
        let mut sorter = Sorter::new(trees, span.after);
        each_change(trees, span.before, span.after, &mut |change| {
            let place = sorter.place(&change);
            part.take(change, place);
        })?;
        let told = match part.whole(request, trees)? {
            Some(told) => told,
            None => part.page(request, trees)?,
        };
        Ok(ExecChanges {
            exec: request.exec,
            vault: span.vault.name.clone(),
            version: span.version,
            changes: told.changes,
            patch: told.patch,
            ignored: part.ignored,
            home_changes: part.in_home,
            next: told.next,
        })
    }

    /// Where the vault was before an exec and after it.
    fn span_of(&self, exec: ExecId) -> Result<Span> {
        let entry = self.end_of(exec)?;
        let (vaults, untold) = (&self.inner.vaults, || unknown(exec, UNVERSIONED));
        let vault = entry.vault.ok_or_else(untold)?;
        let vault = match vaults.by_id(vault) {
            Err(avfs_vault::Error::VaultIdNotFound { .. }) => return Err(unknown(exec, DELETED)),
            found => found?,
        };
        self.check(Verb::Read, &vault.made_by, || {
            format!("vault {}", vault.name)
        })?;
        let root = |name: &str| {
            let text = entry.details[name].as_str();
            text.and_then(|text| text.parse::<RootId>().ok())
        };
        let version = entry.details["version"].as_u64().ok_or_else(untold)?;
        let before = match root("before") {
            Some(before) => before,
            // Entries of older versions do not say it.
            None => match vaults.version(vault.id, version.saturating_sub(1)) {
                Err(avfs_vault::Error::VersionNotFound { .. }) => {
                    return Err(unknown(exec, PRUNED));
                }
                found => found?.root,
            },
        };
        Ok(Span {
            before,
            after: root("root").ok_or_else(untold)?,
            version,
            vault,
        })
    }

    /// The entry of the journal that says how it ended.
    fn end_of(&self, exec: ExecId) -> Result<JournalEntry> {
        let vaults = &self.inner.vaults;
        let entries = vaults.journal(&JournalFilter {
            exec: Some(exec),
            limit: Some(ENTRIES_MAX),
            order: JournalOrder::NewestFirst,
            ..JournalFilter::default()
        })?;
        let why = match entries.is_empty() {
            true => UNKNOWN,
            false => UNVERSIONED,
        };
        let ended = RecordedOperation::Known(Operation::Head(Cause::Exec));
        let interrupted = RecordedOperation::Known(Operation::Head(Cause::Interrupted));
        let mut entries = entries.into_iter();
        let end = entries.find(|it| it.operation == ended || it.operation == interrupted);
        end.ok_or_else(|| unknown(exec, why))
    }
}

/// An exec has a few entries in the journal; its end is among the newest.
const ENTRIES_MAX: usize = 100;

fn unknown(exec: ExecId, why: &'static str) -> Error {
    Error::ChangesUnknown { exec, why }
}

/// A part of a list, while all changes go by. Roots never change, so a place in the list is a number.
struct Part {
    of: ChangesOf,
    from: u64,
    limit: usize,
    room: ListRoom,
    /// How many have gone by.
    passed: u64,
    /// Each with its place.
    listed: Vec<(u64, Change)>,
    total: u64,
    ignored: Ignored,
    in_home: u64,
    next: Option<u64>,
}

/// What of a part is told.
struct Told {
    changes: ChangeSet,
    patch: Option<Patch>,
    next: Option<u64>,
}

impl Part {
    fn new(request: &ExecChangesRequest) -> Part {
        Part {
            of: request.of,
            from: request.from,
            limit: request.limit.unwrap_or(LISTED_MAX).min(LISTED_MAX),
            room: ListRoom::default(),
            passed: 0,
            listed: Vec::new(),
            total: 0,
            ignored: Ignored::default(),
            in_home: 0,
            next: None,
        }
    }

    fn take(&mut self, change: Change, place: Place) {
        let at = self.passed;
        self.passed += 1;
        let is_listed = place == Place::Listed || self.of == ChangesOf::All;
        match place {
            Place::Listed => {}
            Place::InHome => self.in_home += 1,
            Place::Counted(directory) => self.ignored.add(&directory, &change),
        }
        if !is_listed {
            return;
        }
        self.total += 1;
        if at < self.from || self.next.is_some() {
            return;
        }
        // The first one fits always, so that every part goes on.
        let fits = self.listed.len() < self.limit && self.room.take(change.path.as_bytes());
        match fits || self.listed.is_empty() {
            true => self.listed.push((at, change)),
            false => self.next = Some(at),
        }
    }

    /// The whole list, with its renames paired, if it fits into one answer.
    fn whole(&self, request: &ExecChangesRequest, trees: &Trees) -> Result<Option<Told>> {
        if request.from > 0 || self.next.is_some() {
            return Ok(None);
        }
        let listed = self.listed.iter().map(|(_, change)| change.clone());
        let changes = ChangeSet::read(listed.collect(), self.total, false).paired();
        let patch = request.patch.then(|| changes.patch(trees)).transpose()?;
        let fits = patch.as_ref().is_none_or(|patch| !patch.truncated);
        Ok(fits.then_some(Told {
            changes,
            patch,
            next: None,
        }))
    }

    /// As much of the list as fits, and where the rest begins. The patches of all pages are the whole patch, without those
    /// that fit into no answer.
    fn page(&mut self, request: &ExecChangesRequest, trees: &Trees) -> Result<Told> {
        let mut patch = None;
        if request.patch {
            let changes = self.listed.iter();
            let changes = changes.map(|(_, change)| (change, change.path.clone()));
            let (text, done) = patch::patches(trees, changes)?;
            let kept = done.max(1);
            if let Some((at, _)) = self.listed.get(kept) {
                self.next = Some(*at);
            }
            self.listed.truncate(kept);
            let truncated = done < self.listed.len();
            patch = Some(Patch { text, truncated });
        }
        let listed = std::mem::take(&mut self.listed).into_iter();
        let listed = listed.map(|(_, change)| change).collect();
        Ok(Told {
            changes: ChangeSet::read(listed, self.total, true),
            patch,
            next: self.next,
        })
    }
}
