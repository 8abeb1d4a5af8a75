//! Pruning: old versions, and checkpoints nobody asked for, are forgotten. What they alone held goes
//! with the next gc.

use avfs_store::ledger::Rows;
use avfs_store::{Durability, WayOut};
use serde_json::json;

use super::journal;
use super::vaults::{by_id, event};
use crate::{CheckpointOrigin, JournalEvent, Principal, Result, Time, VaultId, Vaults};

/// Which versions stay beside the newest, which always does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// So many of the newest.
    Newest(u64),
    /// Those made since.
    Since(Time),
}

/// What was forgotten, or would be.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub versions: u64,
    pub checkpoints: u64,
}

/// Versions before `first` go, and automatic checkpoints from before `time`.
struct Cut {
    first: u64,
    time: Time,
}

/// Checkpoints that somebody asked for are never pruned.
const ASKED: &str = CheckpointOrigin::Asked.as_str();

impl Vaults {
    /// Forgets versions, and checkpoints nobody asked for from before the oldest that stays.
    pub fn prune(&self, vault: VaultId, keep: Keep, by: &Principal) -> Result<Pruned> {
        self.freeing(WayOut::Large, Durability::Relaxed, |transaction| {
            let cut = cut(transaction, vault, keep)?;
            let pruned = count(transaction, vault, &cut)?;
            if pruned == Pruned::default() {
                return Ok(pruned);
            }
            let (id, time) = (vault.as_bytes(), cut.time.into());
            transaction.remove_versions_before(id, cut.first)?;
            transaction.remove_checkpoints_before(id, time, ASKED)?;
            let details = json!({
                "versions": pruned.versions,
                "checkpoints": pruned.checkpoints,
                "first_kept": cut.first,
            });
            journal::append(transaction, event(vault, *by, JournalEvent::Prune, details))?;
            Ok(pruned)
        })
    }

    /// What `prune` would forget.
    pub fn prune_dry_run(&self, vault: VaultId, keep: Keep) -> Result<Pruned> {
        self.store().read(|rows| {
            let cut = cut(rows, vault, keep)?;
            count(rows, vault, &cut)
        })
    }
}

fn cut(rows: &Rows<'_>, vault: VaultId, keep: Keep) -> Result<Cut> {
    let newest = by_id(rows, vault)?.version;
    let vault = vault.as_bytes();
    match keep {
        Keep::Newest(most) => {
            let first = rows.nth_newest_version(vault, most.max(1) - 1)?;
            Ok(match first {
                Some(first) => Cut {
                    first: first.number,
                    time: first.time.into(),
                },
                // There are not that many.
                None => Cut {
                    first: 0,
                    time: Time {
                        secs: i64::MIN,
                        nanos: 0,
                    },
                },
            })
        }
        Keep::Since(time) => {
            let first = rows.first_version_since(vault, time.into())?;
            let first = first.map_or(newest, |first| first.number);
            Ok(Cut { first, time })
        }
    }
}

fn count(rows: &Rows<'_>, vault: VaultId, cut: &Cut) -> Result<Pruned> {
    let (vault, time) = (vault.as_bytes(), cut.time.into());
    Ok(Pruned {
        versions: rows.count_versions_before(vault, cut.first)?,
        checkpoints: rows.count_checkpoints_before(vault, time, ASKED)?,
    })
}
