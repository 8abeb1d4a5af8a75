//! Care of a home: gc, fsck, quotas, pruning, figures.

use std::time::Duration;

use avfs_net::CacheUsage;
use avfs_vault::{
    FsckReport, GcMode, GcOptions, GcReport, HomeUsage, JournalEntry, JournalFilter, Keep, Pruned,
    Quota, QuotaLimit, Vault, VaultId, VaultName,
};

use crate::Result;
use crate::bounds::JOURNAL_MAX;
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;

/// How long a deleted vault can be had back unless something else is said.
pub const GRACE: Duration = Duration::from_secs(24 * 3600);

/// With less than this, gc does not wait for old jobs to be a week old.
const LITTLE_ROOM: u64 = 64 << 20;

/// A vault's limits and how much of them is used.
#[derive(Debug, Clone)]
pub struct QuotaState {
    pub vault: VaultName,
    pub quota: Quota,
    pub bytes: u64,
    pub files: u64,
}

/// Whether something is done, or only said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    Real,
    Dry,
}

/// What was pruned in all.
#[derive(Debug, Clone, Default)]
pub struct PruneReport {
    pub vaults: u64,
    /// In the vaults that were looked at.
    pub files: u64,
    pub pruned: Pruned,
    /// Those of them whose files cannot be read, and why.
    pub damaged: Vec<(VaultName, String)>,
}

/// Which vaults to prune.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PruneScope {
    One(Select),
    All,
}

/// What `maintain` shall do.
#[derive(Debug, Clone, Copy)]
pub struct MaintainOptions {
    /// Prunes nothing when left out.
    pub keep: Option<Keep>,
    pub gc: bool,
    pub compact: bool,
}

#[derive(Debug, Clone)]
pub struct MaintainReport {
    pub before: HomeUsage,
    pub pruned: Pruned,
    pub gc: Option<GcReport>,
    /// Bytes that the home takes less on the disk after compaction.
    pub compacted: u64,
    pub after: HomeUsage,
}

impl Session {
    /// Deletes unreachable objects, while others go on with their work.
    pub fn gc(&self, grace: Duration, run: Run) -> Result<GcReport> {
        self.govern("removing objects")?;
        if run == Run::Real {
            self.sweep_output(Some(grace));
            if self.room().bytes < LITTLE_ROOM {
                self.inner.jobs.sweep_older(grace);
                self.inner.networks.downloads().clear();
            }
        }
        let options = GcOptions {
            mode: match run {
                Run::Real => GcMode::Collect,
                Run::Dry => GcMode::DryRun,
            },
            grace,
            roots: self.inner.layers.roots()?,
        };
        Ok(self.inner.vaults.gc(&options, &self.principal())?)
    }

    /// How much of what package registries answered is kept.
    pub fn downloads(&self) -> CacheUsage {
        self.inner.networks.downloads().usage()
    }

    /// Removes what package registries answered; gives how much that was.
    pub fn clear_downloads(&self) -> Result<CacheUsage> {
        self.govern("removing downloads")?;
        Ok(self.inner.networks.downloads().clear())
    }

    /// Reads what package registries answered, and removes what is damaged: it is downloaded again. Gives how many answers that were.
    pub fn check_downloads(&self) -> u64 {
        self.inner.networks.downloads().check()
    }

    /// Checks every byte and every reference.
    pub fn fsck(&self) -> FsckReport {
        self.inner.vaults.fsck()
    }

    pub fn stats(&self) -> Result<HomeUsage> {
        Ok(self.inner.vaults.usage(self.inner.layers.roots()?)?)
    }

    pub fn quota(&self, vault: Select) -> Result<QuotaState> {
        self.quota_state(self.vault(&vault, Verb::Read)?)
    }

    /// Sets a limit, or lifts it.
    pub fn set_quota(
        &self,
        vault: Select,
        limit: QuotaLimit,
        value: Option<u64>,
    ) -> Result<QuotaState> {
        let vault = self.vault(&vault, Verb::Govern)?;
        let by = &self.principal();
        self.quota_state(self.inner.vaults.set_quota(vault.id, limit, value, by)?)
    }

    fn quota_state(&self, vault: Vault) -> Result<QuotaState> {
        let root = self.inner.vaults.trees().root(vault.head)?;
        Ok(QuotaState {
            vault: vault.name,
            quota: vault.quota,
            bytes: root.bytes(),
            files: root.files(),
        })
    }

    /// Forgets old versions, and old checkpoints nobody asked for.
    pub fn prune(&self, scope: &PruneScope, keep: Keep, run: Run) -> Result<PruneReport> {
        self.govern("removing versions")?;
        let vaults = &self.inner.vaults;
        let chosen = match scope {
            PruneScope::One(select) => vec![self.vault(select, Verb::Govern)?],
            PruneScope::All => vaults.list()?,
        };
        let mut report = PruneReport::default();
        for vault in chosen {
            let pruned = match run {
                Run::Real => vaults.prune(vault.id, keep, &self.principal()),
                Run::Dry => vaults.prune_dry_run(vault.id, keep),
            };
            let pruned = match pruned {
                // Deleted since it was listed: then there is nothing to prune.
                Err(avfs_vault::Error::VaultIdNotFound { .. }) if *scope == PruneScope::All => {
                    continue;
                }
                pruned => pruned?,
            };
            let totals = self.totals(vault.head)?;
            report.vaults += 1;
            report.files += totals.files;
            let damaged = totals.damaged.map(|problem| (vault.name, problem));
            report.damaged.extend(damaged);
            report.pruned.versions += pruned.versions;
            report.pruned.checkpoints += pruned.checkpoints;
        }
        Ok(report)
    }

    /// Prunes, collects and compacts in one go.
    pub fn maintain(&self, options: MaintainOptions) -> Result<MaintainReport> {
        self.govern("maintenance")?;
        let before = self.stats()?;
        let pruned = match options.keep {
            Some(keep) => self.prune(&PruneScope::All, keep, Run::Real)?.pruned,
            None => Pruned::default(),
        };
        let gc = match options.gc {
            true => Some(self.gc(GRACE, Run::Real)?),
            false => None,
        };
        let mut compacted = 0;
        if options.compact {
            let large = self.stats()?.on_disk();
            self.inner.vaults.compact()?;
            compacted = large.saturating_sub(self.stats()?.on_disk());
        }
        Ok(MaintainReport {
            before,
            pruned,
            gc,
            compacted,
            after: self.stats()?,
        })
    }

    /// Entries of the journal, of this vault or of all.
    pub fn journal(
        &self,
        vault: Option<&VaultName>,
        filter: JournalFilter,
    ) -> Result<Vec<JournalEntry>> {
        let vault = vault.map(|name| self.vault_or_deleted(name)).transpose()?;
        Ok(self.inner.vaults.journal(&JournalFilter {
            vault,
            limit: Some(filter.limit.unwrap_or(JOURNAL_MAX).min(JOURNAL_MAX)),
            ..filter
        })?)
    }

    /// The vault of this name, also when it was deleted.
    fn vault_or_deleted(&self, name: &VaultName) -> Result<VaultId> {
        let missing = match self.inner.vaults.get(name) {
            Ok(vault) => return Ok(vault.id),
            Err(error) => error,
        };
        let mut deleted = self.inner.vaults.deleted()?.into_iter();
        let found = deleted.find(|deleted| deleted.vault.name == *name);
        found.map(|deleted| deleted.vault.id).ok_or(missing.into())
    }
}
