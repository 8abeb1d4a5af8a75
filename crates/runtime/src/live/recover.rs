//! What an earlier daemon left behind becomes history: for each vault before it is used, and in the background.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use avfs_store::Room;
use avfs_vault::{
    CheckpointLabel, CheckpointOrigin, ExecId, JournalEvent, NewJournalEntry, Principal, Vault,
    VaultId,
};
use avfs_view::{Found, HashCache, Retired, StagingUse, Writers};
use serde_json::json;

use crate::live::admission::{Stop, allowance, refusal};
use crate::live::engine::Engine;
use crate::live::layer_commit::{
    CommitPlan, OnQuota, Terms, commit_layer, interrupted_version, root_of,
};
use crate::live::slot::{Slot, State, is_without_keeper};
use crate::live::view::remove_in_background;
use crate::runtime::{Runtime, in_background};
use crate::{Error, ErrorKind, Result};

/// How long the last processes of a dead daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A layer that is still to be taken in.
pub(crate) struct LeftLayer {
    found: Found,
    /// Jobs whose work it may hold.
    jobs: Vec<ExecId>,
}

/// What an earlier daemon would have removed.
pub(crate) struct Leftovers {
    rubbish: Vec<Retired>,
    throwaway: Vec<VaultId>,
}

/// What was written in a vault and is not in its head, and why.
#[derive(Debug, Clone)]
pub struct Stranded {
    pub kind: ErrorKind,
    pub reason: String,
    pub hint: Option<String>,
    /// What was free on the disk, where it did not fit.
    pub(crate) room: Option<Room>,
}

impl Stranded {
    pub(crate) fn because(runtime: &Runtime, error: &Error) -> Stranded {
        runtime.inner.uncommitted.store(true, Ordering::Release);
        Stranded {
            room: error.is_full().then(|| runtime.room()),
            kind: error.kind(),
            reason: error.to_string(),
            hint: error.hint(),
        }
    }
}

/// A layer that could not be taken in. It stays on the disk; the vault is used without it.
pub(crate) struct StrandedLayer {
    left: LeftLayer,
    pub why: Stranded,
}

impl StrandedLayer {
    pub fn new(runtime: &Runtime, found: Found, error: &Error) -> StrandedLayer {
        let jobs = Vec::new();
        StrandedLayer::of(runtime, LeftLayer { found, jobs }, error)
    }

    fn of(runtime: &Runtime, left: LeftLayer, error: &Error) -> StrandedLayer {
        let hint = "make room, or raise the limit with `avfs quota set`, and run `avfs commit`; \
                    `avfs checkpoint restore --force` gives it up, and `avfs vault delete --force` \
                    removes it with its vault";
        let why = Stranded {
            hint: Some(hint.into()),
            ..Stranded::because(runtime, error)
        };
        StrandedLayer { left, why }
    }

    /// Removes it from the disk, which needs no room.
    pub fn give_up(self, engine: &Arc<Engine>) -> Result<()> {
        let layer = self.left.found.claim(PATIENCE)?;
        remove_in_background(layer.retire()?, engine.clone());
        Ok(())
    }
}

/// What the journal says of such a version, and of the jobs whose work it may hold.
fn lost(jobs: &[ExecId]) -> serde_json::Value {
    let mut details = json!({ "why": "the daemon was lost" });
    if !jobs.is_empty() {
        let execs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        details["execs"] = json!(execs);
    }
    details
}

impl Runtime {
    /// Notes which layers an earlier daemon left, each at its vault's slot; gives what only has to be removed. Comes before
    /// anybody can make such things anew.
    pub(crate) fn find_leftovers(&self) -> Result<Leftovers> {
        for found in self.inner.layers.find()? {
            let jobs = self.inner.jobs.lost_in(found.vault);
            self.slot(found.vault).expect(LeftLayer { found, jobs });
        }
        Ok(Leftovers {
            rubbish: self.inner.layers.rubbish()?,
            throwaway: self.throwaway_forks()?,
        })
    }

    /// Takes in what was found, one vault after the other, and removes rubbish. Whoever wants a vault before its turn takes
    /// it in itself.
    pub(crate) fn recover_in_background(&self, leftovers: Leftovers) {
        let Leftovers { rubbish, throwaway } = leftovers;
        // Without a thread, whoever uses a vault takes in what is left of it.
        let runtime = self.clone();
        let _ = in_background("recover", move || {
            for slot in runtime.slots() {
                if slot.is_recovering() {
                    // What became of it is in the journal, or is said to whoever asks.
                    let _ = slot.recovered(&runtime);
                }
            }
            // What is not removed now is at the next start.
            let _ = runtime.remove_throwaway_forks(throwaway);
            if rubbish.is_empty() || runtime.is_ending() {
                return;
            }
            if let Ok(engine) = runtime.engine() {
                for retired in rubbish {
                    engine.remove(retired);
                }
            }
        });
    }

    fn record_failure(&self, vault: Option<VaultId>, error: &Error) -> Result<()> {
        self.inner.vaults.record(NewJournalEntry {
            vault,
            exec: None,
            principal: Principal::SYSTEM,
            operation: JournalEvent::RecoveryFailed.into(),
            details: json!({ "error": error.to_string() }),
        })?;
        Ok(())
    }

    fn recover_layer(&self, engine: &Arc<Engine>, left: &LeftLayer, stop: Stop<'_>) -> Result<()> {
        let vaults = &self.inner.vaults;
        let mut layer = left.found.claim(PATIENCE)?;
        let same_boot = self.inner.layers.is_of_this_boot(&layer);
        let vault = match vaults.by_id(left.found.vault) {
            Err(avfs_vault::Error::VaultIdNotFound { .. }) => {
                remove_in_background(layer.retire()?, engine.clone());
                return Ok(());
            }
            found => found?,
        };
        let record = layer.record().clone();
        let ours = vault.head == record.last_commit || vault.head == record.pending;
        if same_boot && ours {
            // The crash may have come between publishing and noting it.
            if vault.head == record.pending {
                layer.finish_commit()?;
            }
            let plan = CommitPlan {
                vault: vault.id,
                layer: &mut layer,
                cache: &mut HashCache::default(),
                writers: Writers::None,
                staging: StagingUse::Abandoned,
                version: interrupted_version(lost(&left.jobs)),
                since: None,
                on_quota: OnQuota::KeepAside,
                stop,
            };
            commit_layer(self, engine, plan)?;
        } else {
            // Unsynced files may be missing: kept aside, and the head stays.
            let _lease = vaults.lease();
            let beside = self.weigh_scratch(engine, &vault)?;
            let terms = Terms {
                allowance: allowance(self, &vault, beside, OnQuota::KeepAside)?,
                staging: StagingUse::Abandoned,
                writers: Writers::None,
                stop,
            };
            let cache = &mut HashCache::default();
            let aside = root_of(self, engine, &layer, cache, &terms);
            let aside = aside.map_err(|error| refusal(error, &vault))?;
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

impl Slot {
    /// Has a layer be taken in before the vault is used.
    fn expect(&self, left: LeftLayer) {
        self.lock().left.push(left);
        self.recovering.store(true, Ordering::Release);
    }

    /// Whether something an earlier daemon left is still to be taken in.
    pub fn is_recovering(&self) -> bool {
        self.recovering.load(Ordering::Acquire)
    }

    /// The vault when all that was left of it has been taken in.
    pub fn recovered(&self, runtime: &Runtime) -> Result<Vault> {
        drop(self.ready(runtime)?);
        Ok(runtime.inner.vaults.by_id(self.vault)?)
    }

    /// Takes in what an earlier daemon left. What cannot be stays on the disk, is noted, and keeps nobody from the vault.
    pub(crate) fn recover(&self, runtime: &Runtime, state: &mut State) {
        let stop = || runtime.is_ending() || self.halts.any();
        self.recover_unless(runtime, state, &stop);
    }

    pub(crate) fn recover_unless(&self, runtime: &Runtime, state: &mut State, stop: Stop<'_>) {
        for left in std::mem::take(&mut state.left) {
            let recovered = runtime.engine().and_then(|engine| {
                let recovered = runtime.recover_layer(&engine, &left, stop);
                match is_without_keeper(&recovered, &engine) {
                    true => runtime.recover_layer(&runtime.engine()?, &left, stop),
                    false => recovered,
                }
            });
            match recovered {
                Ok(()) => {}
                // The next to come goes on.
                Err(Error::View(avfs_view::Error::Stopped)) => state.left.push(left),
                Err(error) => {
                    // On a full disk not even this can be recorded; `vault info` says it too.
                    let _ = runtime.record_failure(Some(self.vault), &error);
                    state
                        .stranded
                        .push(StrandedLayer::of(runtime, left, &error));
                }
            }
        }
        self.recovering
            .store(!state.left.is_empty(), Ordering::Release);
    }

    /// What could not be taken in. Never waits: while somebody is at work here, nothing is known.
    pub fn uncommitted(&self) -> Vec<Stranded> {
        let Some(state) = self.try_lock() else {
            return Vec::new();
        };
        let stranded = state.stranded.iter().map(|layer| layer.why.clone());
        stranded.chain(state.refusal().cloned()).collect()
    }

    /// Tries once more what could not be taken in before.
    pub(crate) fn retry(&self, runtime: &Runtime, state: &mut State) {
        let stranded = std::mem::take(&mut state.stranded).into_iter();
        state.left.extend(stranded.map(|layer| layer.left));
        self.recover(runtime, state);
    }
}
