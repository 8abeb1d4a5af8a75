//! What a commit may take in, and how long it may go on.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use avfs_vault::{Beside, Quota, QuotaLimit, Vault, VaultId, VaultName, VaultPath};
use avfs_view::{Allowance, TooMuch, Totals};
use rustix::fs::{Mode, OFlags};

use crate::live::engine::Engine;
use crate::live::layer_commit::OnQuota;
use crate::runtime::Runtime;
use crate::{Error, Result};

/// How long commits may go on when the daemon is asked to end. What is not taken in by then is, by the next daemon.
pub(crate) const LAST_COMMITS: Duration = Duration::from_secs(10);
/// How long the commit after a command may go on that nobody waits for any more.
const UNWATCHED_COMMIT: Duration = Duration::from_secs(10);
/// What may be kept in a checkpoint that the quota does not let into the head.
pub(crate) const ASIDE_BYTES: u64 = 64 << 20;
pub(crate) const ASIDE_FILES: u64 = 10_000;

/// Whether a commit is to end without a result.
pub(crate) type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// How many want the commit to end that is under way in a slot.
#[derive(Default)]
pub(crate) struct Halts(AtomicUsize);

impl Halts {
    /// Ends the commit under way, and any that begins, until the guard is dropped.
    pub fn halt(&self) -> Halt<'_> {
        self.0.fetch_add(1, Ordering::AcqRel);
        Halt(self)
    }

    pub fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

pub(crate) struct Halt<'a>(&'a Halts);

impl Drop for Halt<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Lets the work go on for a while after `has_left` was first seen.
pub(crate) fn unwatched(has_left: impl Fn() -> bool + Sync) -> impl Fn() -> bool + Sync {
    let since: OnceLock<Instant> = OnceLock::new();
    move || match since.get() {
        Some(since) => since.elapsed() > UNWATCHED_COMMIT,
        None if has_left() => {
            since.get_or_init(Instant::now);
            false
        }
        None => false,
    }
}

/// What the quota of a vault leaves to the layer that is to be committed.
///
/// All that is in the layer will be in the next root. So a layer that is above both the quota and the head alone is
/// refused by the quota for certain, and need not be read.
pub(crate) fn allowance(
    runtime: &Runtime,
    vault: &Vault,
    beside: Beside,
    on_quota: OnQuota,
) -> Result<Allowance> {
    let Quota {
        bytes,
        files,
        file_bytes,
    } = vault.quota;
    if vault.quota == Quota::default() {
        return Ok(Allowance::default());
    }
    let head = runtime.inner.vaults.trees().root(vault.head)?;
    let (least_bytes, least_files) = match on_quota {
        OnQuota::Refuse => (head.bytes(), head.files()),
        OnQuota::KeepAside => (head.bytes().max(ASIDE_BYTES), head.files().max(ASIDE_FILES)),
    };
    let left = |most: u64, beside: u64, least: u64| most.saturating_sub(beside).max(least);
    Ok(Allowance {
        bytes: bytes.map(|most| left(most, beside.bytes, least_bytes)),
        files: files.map(|most| left(most, beside.files, least_files)),
        // A file that is larger than all there was has grown.
        file_bytes: file_bytes.map(|most| most.max(least_bytes)),
    })
}

/// Turns a refusal of the commit into that of a root that is above the quota.
pub(crate) fn refusal(error: avfs_view::Error, vault: &Vault) -> Error {
    let avfs_view::Error::TooMuch {
        what, found, path, ..
    } = &error
    else {
        return error.into();
    };
    let limit = match what {
        TooMuch::Bytes => QuotaLimit::Bytes,
        TooMuch::Files => QuotaLimit::Files,
        TooMuch::FileBytes => QuotaLimit::FileBytes,
        TooMuch::Listing | TooMuch::Links => return error.into(),
    };
    let Some(most) = vault.quota.get(limit) else {
        return error.into();
    };
    let path = path.as_ref().map(|path| [b"/", path.as_slice()].concat());
    let path = path.and_then(|path| VaultPath::parse(&path).ok());
    exceeded(&vault.name, limit, most, *found, path)
}

/// What the quota of a vault leaves for its scratch directory.
pub(crate) struct Room {
    vault: VaultName,
    quota: Quota,
    /// What there is by now, in the head and beside it.
    used: Totals,
}

impl Room {
    /// Refuses one file more than the quota allows.
    pub fn check_new_file(&self) -> Result<()> {
        match self.quota.files {
            Some(most) if self.used.files >= most => {
                let wanted = self.used.files + 1;
                Err(exceeded(&self.vault, QuotaLimit::Files, most, wanted, None))
            }
            _ => Ok(()),
        }
    }

    /// By how many bytes a file of this size may grow.
    pub fn bytes_left(&self, size: u64) -> u64 {
        let all = self
            .quota
            .bytes
            .map_or(u64::MAX, |most| most.saturating_sub(self.used.bytes));
        let own = self
            .quota
            .file_bytes
            .map_or(u64::MAX, |most| most.saturating_sub(size));
        all.min(own)
    }

    /// That the file at `path` would get too large.
    pub fn refusal(&self, path: &VaultPath, size: u64) -> Error {
        match (self.quota.file_bytes, self.quota.bytes) {
            (Some(most), _) if size > most => exceeded(
                &self.vault,
                QuotaLimit::FileBytes,
                most,
                size,
                Some(path.clone()),
            ),
            (_, most) => {
                let wanted = self.used.bytes.saturating_add(size);
                exceeded(
                    &self.vault,
                    QuotaLimit::Bytes,
                    most.unwrap_or_default(),
                    wanted,
                    None,
                )
            }
        }
    }
}

fn exceeded(
    vault: &VaultName,
    limit: QuotaLimit,
    most: u64,
    wanted: u64,
    path: Option<VaultPath>,
) -> Error {
    avfs_vault::Error::QuotaExceeded {
        vault: vault.clone(),
        limit,
        most,
        wanted,
        path,
    }
    .into()
}

impl Runtime {
    /// What may still be written to the scratch directory.
    pub(crate) fn scratch_room(&self, vault: &Vault) -> Result<Room> {
        let mut used = Totals::default();
        if vault.quota != Quota::default() {
            let weigh = |engine: &Engine| self.weigh_scratch(engine, vault);
            let Beside { bytes, files } = self.with_engine(weigh)?;
            let head = self.inner.vaults.trees().root(vault.head)?;
            used = Totals {
                files: head.files() + files,
                bytes: head.bytes().saturating_add(bytes),
            };
        }
        Ok(Room {
            vault: vault.name.clone(),
            quota: vault.quota,
            used,
        })
    }

    /// Weighs what a vault with a quota has in its scratch directory, which counts. Others have nothing to count.
    pub(crate) fn weigh_scratch(&self, engine: &Engine, vault: &Vault) -> Result<Beside> {
        if vault.quota == Quota::default() {
            return Ok(Beside::default());
        }
        let scratch = self.open_scratch(vault.id)?;
        let stopped = || self.is_ending();
        let Totals { files, bytes } = engine.scanner.measure(scratch.as_fd(), &stopped)?;
        let beside = Beside { files, bytes };
        self.inner.vaults.note_beside(vault.id, beside);
        Ok(beside)
    }

    /// Weighs it when commands may have written there, and refuses what has grown beyond the quota by itself.
    pub(crate) fn check_scratch(&self, engine: &Engine, vault: &Vault) -> Result<Beside> {
        let before = self.inner.vaults.beside(vault.id);
        let now = self.weigh_scratch(engine, vault)?;
        if now == before || now == Beside::default() {
            return Ok(now);
        }
        let head = self.inner.vaults.trees().root(vault.head)?;
        let totals = [
            (QuotaLimit::Bytes, before.bytes, now.bytes, head.bytes()),
            (QuotaLimit::Files, before.files, now.files, head.files()),
        ];
        for (limit, before, now, head) in totals {
            let wanted = head.saturating_add(now);
            if let Some(most) = vault.quota.get(limit)
                && wanted > most
                && now > before
            {
                return Err(exceeded(&vault.name, limit, most, wanted, None));
            }
        }
        Ok(now)
    }

    /// The scratch directory as a path descriptor, which opens for whoever has the right to.
    pub(crate) fn open_scratch(&self, vault: VaultId) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let scratch = rustix::fs::open(self.inner.layers.scratch(vault)?, flags, Mode::empty());
        scratch
            .map_err(std::io::Error::from)
            .map_err(Error::io("opening what a command writes to"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_halt_lasts_as_long_as_somebody_holds_it() {
        let halts = Halts::default();
        let (first, second) = (halts.halt(), halts.halt());
        drop(first);
        assert!(halts.any());
        drop(second);
        assert!(!halts.any());
    }
}
