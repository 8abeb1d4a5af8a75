//! Pruning: old versions, and checkpoints nobody asked for, are forgotten. What they alone held goes
//! with the next gc.

use avfs_store::rusqlite::{Connection, OptionalExtension};
use avfs_store::{Durability, WayOut};
use serde_json::json;

use crate::vaults::{by_id, event, version_row};
use crate::{CheckpointOrigin, Principal, Result, Time, VaultId, Vaults, Version, journal};

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
    first: i64,
    time: Time,
}

const OLD_VERSIONS: &str = "FROM version WHERE vault = ?1 AND number < ?2";
const OLD_CHECKPOINTS: &str = "FROM checkpoint
    WHERE vault = ?1 AND origin != ?2 AND (secs, nanos) < (?3, ?4)";

impl Vaults {
    /// Forgets versions, and checkpoints nobody asked for from before the oldest that stays.
    pub fn prune(&self, vault: VaultId, keep: Keep, by: &Principal) -> Result<Pruned> {
        self.freeing(WayOut::Large, Durability::Relaxed, |transaction| {
            let cut = cut(transaction, vault, keep)?;
            let pruned = count(transaction, vault, &cut)?;
            if pruned == Pruned::default() {
                return Ok(pruned);
            }
            let delete = format!("DELETE {OLD_VERSIONS}");
            transaction.execute(&delete, (vault.as_bytes(), cut.first))?;
            let delete = format!("DELETE {OLD_CHECKPOINTS}");
            transaction.execute(&delete, checkpoint_values(&vault, &cut))?;
            let details = json!({
                "versions": pruned.versions,
                "checkpoints": pruned.checkpoints,
                "first_kept": cut.first,
            });
            journal::append(transaction, event(vault, *by, "prune", details))?;
            Ok(pruned)
        })
    }

    /// What `prune` would forget.
    pub fn prune_dry_run(&self, vault: VaultId, keep: Keep) -> Result<Pruned> {
        self.store().read(|connection| {
            let cut = cut(connection, vault, keep)?;
            count(connection, vault, &cut)
        })
    }
}

fn cut(connection: &Connection, vault: VaultId, keep: Keep) -> Result<Cut> {
    let newest = by_id(connection, vault)?.version as i64;
    let version = |sql: &str, value: (i64, i64)| -> Result<Option<Version>> {
        let mut select = connection.prepare_cached(sql)?;
        let values = (vault.as_bytes(), value.0, value.1);
        Ok(select.query_row(values, version_row).optional()?)
    };
    match keep {
        Keep::Newest(most) => {
            let sql = "SELECT * FROM version WHERE vault = ?1 AND number <= ?3
                ORDER BY number DESC LIMIT 1 OFFSET ?2";
            let skip = i64::try_from(most.max(1) - 1).unwrap_or(i64::MAX);
            Ok(match version(sql, (skip, newest))? {
                Some(first) => Cut {
                    first: first.number as i64,
                    time: first.time,
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
            let sql = "SELECT * FROM version WHERE vault = ?1 AND (secs, nanos) >= (?2, ?3)
                ORDER BY number LIMIT 1";
            let first = version(sql, (time.secs, i64::from(time.nanos)))?;
            let first = first.map_or(newest, |first| first.number as i64);
            Ok(Cut { first, time })
        }
    }
}

fn count(connection: &Connection, vault: VaultId, cut: &Cut) -> Result<Pruned> {
    let versions = format!("SELECT count(*) {OLD_VERSIONS}");
    let values = (vault.as_bytes(), cut.first);
    let versions: i64 = connection.query_row(&versions, values, |row| row.get(0))?;
    let checkpoints = format!("SELECT count(*) {OLD_CHECKPOINTS}");
    let values = checkpoint_values(&vault, cut);
    let checkpoints: i64 = connection.query_row(&checkpoints, values, |row| row.get(0))?;
    Ok(Pruned {
        versions: versions as u64,
        checkpoints: checkpoints as u64,
    })
}

fn checkpoint_values<'a>(vault: &'a VaultId, cut: &Cut) -> (&'a [u8; 16], &'static str, i64, u32) {
    let asked = CheckpointOrigin::Asked.as_str();
    (vault.as_bytes(), asked, cut.time.secs, cut.time.nanos)
}
