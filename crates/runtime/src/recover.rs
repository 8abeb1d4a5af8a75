//! What an earlier daemon left behind becomes history before anything else happens.

use std::time::Duration;

use avfs_vault::{CheckpointOrigin, Principal};
use avfs_view::{CommitInput, Found, HashCache, Writers};
use serde_json::json;

use crate::Result;
use crate::engine::{Engine, STORED_OWNER};
use crate::live::{commit_layer, interrupted_version};
use crate::runtime::Runtime;

/// How long the last processes of a dead daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

impl Runtime {
    /// Each layer that is found becomes a version marked interrupted, or, after a reboot, a checkpoint.
    pub(crate) fn recover(&self) -> Result<()> {
        let found = self.inner.layers.find(PATIENCE)?;
        let rubbish = self.inner.layers.rubbish()?;
        if found.is_empty() && rubbish.is_empty() {
            return Ok(());
        }
        let engine = self.engine()?;
        for layer in found {
            self.recover_layer(&engine, layer)?;
        }
        for retired in rubbish {
            retired.remove(&engine.scanner)?;
        }
        Ok(())
    }

    fn recover_layer(&self, engine: &Engine, found: Found) -> Result<()> {
        let Found {
            vault,
            mut layer,
            same_boot,
        } = found;
        let vaults = &self.inner.vaults;
        let Ok(vault) = vaults.by_id(vault) else {
            return Ok(layer.retire()?.remove(&engine.scanner)?);
        };
        let record = layer.record().clone();
        let ours = vault.head == record.last_commit || vault.head == record.pending;
        if same_boot && ours {
            // The crash may have come between publishing and noting it.
            if vault.head == record.pending {
                layer.finish_commit()?;
            }
            let version = interrupted_version(json!({ "why": "the daemon was lost" }));
            let cache = &mut HashCache::default();
            commit_layer(
                self,
                engine,
                vault.id,
                &mut layer,
                cache,
                Writers::None,
                version,
            )?;
        } else {
            // Unsynced files may be missing: kept aside, and the head stays.
            let input = CommitInput {
                trees: vaults.trees(),
                base: record.base,
                mount_points: &self.inner.host.mount_points,
                owner: STORED_OWNER,
                writers: Writers::None,
            };
            let cache = &mut HashCache::default();
            let aside = avfs_view::commit(&input, &engine.scanner, layer.upper(), cache)?;
            if aside.root != record.last_commit && aside.root != vault.head {
                let origin = CheckpointOrigin::Automatic;
                vaults.save_checkpoint(vault.id, None, aside.root, origin, &Principal::System)?;
            }
        }
        Ok(layer.retire()?.remove(&engine.scanner)?)
    }
}
