//! Garbage collection: what no vault can come to need any more is swept.
//!
//! Kept is what can be reached from heads, versions, checkpoints, the beginnings of forks, deleted
//! vaults within their grace, roots that somebody holds, and whatever is being stored meanwhile. While something of that
//! cannot be read, nothing is swept: what is not reached may belong to it.

use std::time::Duration;

use avfs_store::ledger::{RootKind, Rows};
use avfs_store::{Compacted, Durability, Mark, ObjectId, Swept, WayOut};
use serde_json::json;

use super::journal;
use super::rows::values;
use super::vaults::event;
use crate::tree::reach::Reach;
use crate::{
    Damage, DeletedVault, JournalEvent, NewJournalEntry, Principal, Result, RootId, Time, VaultId,
    Vaults,
};

#[derive(Clone, Debug)]
pub struct GcOptions {
    pub mode: GcMode,
    /// How long a deleted vault can be had back.
    pub grace: Duration,
    /// Roots in use that no vault needs to name: those of layers on the disk.
    pub roots: Vec<RootId>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum GcMode {
    Collect,
    /// Only tells what would go.
    DryRun,
}

/// What a collection found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    /// Deleted vaults that can no longer be had back.
    pub forgotten: Vec<DeletedVault>,
    /// Deleted vaults that still can.
    pub recoverable: Vec<DeletedVault>,
    pub roots: RootCounts,
    /// Objects that can be reached.
    pub live: u64,
    /// Objects that cannot, whether they could go already or not.
    pub dead: Swept,
    pub swept: Swept,
    pub compacted: Compacted,
    /// What cannot be read. Nobody knows what it refers to, so as long as there is any, nothing is swept.
    pub held_back: Vec<Damage>,
}

/// Why objects are kept: how many roots of each kind.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RootCounts {
    pub heads: u64,
    pub versions: u64,
    pub checkpoints: u64,
    /// Where forks began.
    pub beginnings: u64,
    /// What a host directory was when it was imported.
    pub imports: u64,
    /// Of deleted vaults that can still be had back, all of the above.
    pub deleted: u64,
    /// Held by views and other work under way.
    pub held: u64,
}

/// Everything that takes part in one collection.
struct Collection<'a> {
    vaults: &'a Vaults,
    options: &'a GcOptions,
    mark: Mark,
    reach: Reach,
    report: GcReport,
}

impl Vaults {
    /// Keeps `root` and all it refers to until the hold is dropped, whatever vaults do.
    pub fn hold(&self, root: RootId) -> crate::Hold {
        self.shared().holds.hold(root)
    }

    /// Finds, and unless it is a dry run removes, what nothing can come to need any more. Others
    /// may write, import, fork, restore and delete meanwhile.
    pub fn gc(&self, options: &GcOptions, by: &Principal) -> Result<GcReport> {
        let _alone = self.shared().collecting();
        match options.mode {
            GcMode::Collect => self.way_out(WayOut::Large, || self.collect(options, by)),
            GcMode::DryRun => self.collect(options, by),
        }
    }

    /// `gc` for somebody who keeps all others from removing anything.
    pub(crate) fn collect(&self, options: &GcOptions, by: &Principal) -> Result<GcReport> {
        let mut collection = Collection {
            vaults: self,
            options,
            // Before anything else, so that all that comes meanwhile counts as young.
            mark: self.store().mark(),
            reach: Reach::new(self.trees().clone()),
            report: GcReport::default(),
        };
        collection.forget_deleted(*by)?;
        collection.reach_roots()?;
        collection.sweep()?;
        let held_back = self.unreadable(&collection.reach)?;
        let mut report = collection.report;
        report.held_back = held_back;
        if options.mode == GcMode::Collect {
            report.compacted = self.store().compact()?;
            self.record_gc(&report, *by)?;
        }
        Ok(report)
    }

    fn record_gc(&self, report: &GcReport, by: Principal) -> Result<()> {
        let details = json!({
            "objects": report.swept.objects,
            "bytes": report.swept.bytes,
            "vaults": report.forgotten.len(),
            "packs": report.compacted.packs,
            "unreadable": report.held_back.len(),
        });
        self.record(NewJournalEntry {
            vault: None,
            exec: None,
            principal: by,
            operation: JournalEvent::Gc.into(),
            details,
        })?;
        Ok(())
    }
}

impl Collection<'_> {
    fn forget_deleted(&mut self, by: Principal) -> Result<()> {
        let grace = i64::try_from(self.options.grace.as_secs()).unwrap_or(i64::MAX);
        let since = Time::now().secs.saturating_sub(grace);
        let store = self.vaults.store();
        // The first deleted first.
        let split = |rows: &Rows<'_>| {
            let all: Vec<DeletedVault> = values(rows.deleted_vaults()?)?;
            let all = all.into_iter().rev();
            Ok::<_, crate::Error>(all.partition(|it| it.deleted.secs <= since))
        };
        let (forgotten, recoverable) = match self.options.mode {
            GcMode::DryRun => store.read(split)?,
            GcMode::Collect => store.write(Durability::Relaxed, |transaction| {
                let (forgotten, recoverable): (Vec<DeletedVault>, _) = split(transaction)?;
                for it in &forgotten {
                    let vault = &it.vault;
                    transaction.remove_vault(vault.id.as_bytes())?;
                    let details = json!({ "name": vault.name.as_str() });
                    journal::append(
                        transaction,
                        event(vault.id, by, JournalEvent::VaultForget, details),
                    )?;
                }
                Ok::<_, crate::Error>((forgotten, recoverable))
            })?,
        };
        (self.report.forgotten, self.report.recoverable) = (forgotten, recoverable);
        Ok(())
    }

    fn reach_roots(&mut self) -> Result<()> {
        let roots = self.vaults.store().read(|rows| rows.roots())?;
        let forgotten: Vec<VaultId> = self.report.forgotten.iter().map(|it| it.vault.id).collect();
        let recoverable: Vec<_> = self
            .report
            .recoverable
            .iter()
            .map(|it| it.vault.id)
            .collect();
        let counts = &mut self.report.roots;
        for row in roots {
            let vault = VaultId::from_bytes(row.vault);
            // In a dry run they are still there.
            if forgotten.contains(&vault) {
                continue;
            }
            let count = match row.kind {
                _ if recoverable.contains(&vault) => &mut counts.deleted,
                RootKind::Head => &mut counts.heads,
                RootKind::Version(_) => &mut counts.versions,
                RootKind::Checkpoint(_) => &mut counts.checkpoints,
                RootKind::Import => &mut counts.imports,
                RootKind::Speculation => &mut counts.held,
                RootKind::Beginning => &mut counts.beginnings,
            };
            *count += 1;
            self.reach.add(RootId::new(row.root))?;
        }
        for root in self.held()? {
            self.report.roots.held += 1;
            self.reach.add(root)?;
        }
        self.report.live = self.reach.len() as u64;
        Ok(())
    }

    /// Roots that no row needs to name. A layer may record one that never came to be stored.
    fn held(&self) -> Result<Vec<RootId>> {
        let mut roots = self.vaults.shared().holds.roots();
        for root in &self.options.roots {
            if self.vaults.store().contains(root.object())? {
                roots.push(*root);
            }
        }
        roots.sort_unstable();
        roots.dedup();
        Ok(roots)
    }

    fn sweep(&mut self) -> Result<()> {
        let store = self.vaults.store().clone();
        for page in store.pages() {
            let page = page?;
            let dead = page.iter().filter(|stored| !self.reach.contains(stored.id));
            let mut ids = Vec::new();
            for stored in dead {
                self.report.dead.objects += 1;
                self.report.dead.bytes += stored.stored;
                ids.push(stored.id);
            }
            let holds_back = !self.reach.unreadable().is_empty();
            if ids.is_empty() || holds_back || self.options.mode == GcMode::DryRun {
                continue;
            }
            let mark = self.mark;
            let swept = store.sweep(mark, ids, |rows, ids| self.confirm(rows, ids))?;
            self.report.swept.objects += swept.objects;
            self.report.swept.bytes += swept.bytes;
        }
        Ok(())
    }

    /// Of `ids`, those that are still dead when nobody else can change anything.
    fn confirm(&mut self, rows: &Rows<'_>, mut ids: Vec<ObjectId>) -> Result<Vec<ObjectId>> {
        for row in rows.roots()? {
            self.reach.add(RootId::new(row.root))?;
        }
        for root in self.held()? {
            self.reach.add(root)?;
        }
        if !self.reach.unreadable().is_empty() {
            return Ok(Vec::new());
        }
        ids.retain(|id| !self.reach.contains(*id));
        Ok(ids)
    }
}
