//! What an earlier daemon left behind becomes history before anything else happens.

use std::sync::Arc;
use std::time::Duration;

use avfs_vault::{CheckpointLabel, CheckpointOrigin, ExecId, NewJournalEntry, Principal, VaultId};
use avfs_view::{CommitInput, Found, HashCache, StagingUse, Writers};
use serde_json::json;

use crate::engine::{Engine, STORED_OWNER};
use crate::opened::{
    CommitPlan, Otherwise, commit_layer, interrupted_version, own_work, remove_in_background,
    skeleton,
};
use crate::runtime::Runtime;
use crate::{Error, Result};

/// What the journal says of such a version, and of the jobs whose work it may hold.
fn lost(jobs: &[ExecId]) -> serde_json::Value {
    let mut details = json!({ "why": "the daemon was lost" });
    if !jobs.is_empty() {
        let execs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        details["execs"] = json!(execs);
    }
    details
}

/// How long the last processes of a dead daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

impl Runtime {
    /// Each layer that is found becomes a version marked interrupted, or, after a reboot, a checkpoint.
    pub(crate) fn recover(&self) -> Result<()> {
        let found = self.inner.layers.find()?;
        let rubbish = self.inner.layers.rubbish()?;
        if found.is_empty() && rubbish.is_empty() {
            return Ok(());
        }
        // A host that cannot show vaults at present still has its files; the layers wait on disk.
        let engine = match self.engine() {
            Ok(engine) => engine,
            Err(error) => return self.record_failure(None, &error),
        };
        for layer in found {
            let vault = layer.vault;
            if let Err(error) = self.recover_layer(&engine, layer) {
                self.record_failure(Some(vault), &error)?;
            }
        }
        for retired in rubbish {
            remove_in_background(retired, engine.clone());
        }
        Ok(())
    }

    fn record_failure(&self, vault: Option<VaultId>, error: &Error) -> Result<()> {
        self.inner.vaults.record(NewJournalEntry {
            vault,
            exec: None,
            principal: Principal::SYSTEM,
            operation: "recovery_failed".into(),
            details: json!({ "error": error.to_string() }),
        })?;
        Ok(())
    }

    fn recover_layer(&self, engine: &Arc<Engine>, found: Found) -> Result<()> {
        let vaults = &self.inner.vaults;
        let vault = found.vault;
        let mut layer = found.claim(PATIENCE)?;
        let same_boot = self.inner.layers.is_of_this_boot(&layer);
        let Ok(vault) = vaults.by_id(vault) else {
            remove_in_background(layer.retire()?, engine.clone());
            return Ok(());
        };
        let record = layer.record().clone();
        let ours = vault.head == record.last_commit || vault.head == record.pending;
        if same_boot && ours {
            // The crash may have come between publishing and noting it.
            if vault.head == record.pending {
                layer.finish_commit()?;
            }
            let version = interrupted_version(lost(&self.inner.jobs.lost_in(vault.id)));
            let plan = CommitPlan {
                vault: vault.id,
                layer: &mut layer,
                cache: &mut HashCache::default(),
                writers: Writers::None,
                staging: StagingUse::Abandoned,
                version,
                otherwise: Otherwise::KeepAside,
            };
            commit_layer(self, engine, plan)?;
        } else {
            // Unsynced files may be missing: kept aside, and the head stays.
            let _lease = vaults.lease();
            let input = CommitInput {
                trees: vaults.trees(),
                base: record.base,
                last_commit: record.last_commit,
                skeleton: skeleton(self, record.used_by),
                own_work: own_work(&layer, StagingUse::Abandoned),
                owner: STORED_OWNER,
                writers: Writers::None,
            };
            let cache = &mut HashCache::default();
            let aside = avfs_view::commit(&input, &engine.scanner, layer.upper(), cache)?;
            if aside.root != record.last_commit && aside.root != vault.head {
                let origin = CheckpointOrigin::Automatic;
                let label = CheckpointLabel::default();
                vaults.save_checkpoint(vault.id, label, aside.root, origin, &Principal::SYSTEM)?;
            }
        }
        remove_in_background(layer.retire()?, engine.clone());
        Ok(())
    }
}
