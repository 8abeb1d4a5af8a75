//! An exec in its sandbox, until it leaves.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use avfs_sandbox::Sandbox;
use avfs_vault::{CheckpointName, ExecId, NewJournalEntry, NewVersion, RootId, VaultId};
use avfs_view::Skipped;
use serde_json::json;

use crate::Result;
use crate::gauge::Gauge;
use crate::live::{Slot, interrupted_version};
use crate::opened::LiveView;
use crate::runtime::Runtime;

/// An exec that has its sandbox; it must `leave`, or dropping it does.
pub(crate) struct Entered {
    pub sandbox: Arc<Sandbox>,
    /// The vault's state when the exec began.
    pub before: RootId,
    /// Set when somebody wants the commands of the vault ended.
    pub ending: Arc<AtomicBool>,
    runtime: Runtime,
    /// There until it leaves.
    place: Option<Place>,
}

/// Where an exec runs.
pub(crate) enum Place {
    /// In the vault's own view, with others.
    Shared { slot: Arc<Slot>, exec: ExecId },
    /// In a view that nothing can change.
    Apart { view: Box<LiveView>, vault: VaultId },
}

/// What an exec left behind.
pub(crate) struct Left {
    pub before: RootId,
    pub after: RootId,
    /// The new version, where the state differs from the one before the commit.
    pub version: Option<u64>,
    pub skipped: Vec<Skipped>,
    /// Other execs whose changes may be among these.
    pub shared_with: Vec<ExecId>,
    /// The checkpoint that holds what the quota kept out of the vault.
    pub aside: Option<CheckpointName>,
}

impl Left {
    /// For a commit that did not come about.
    pub fn nothing(before: RootId) -> Left {
        Left {
            before,
            after: before,
            version: None,
            skipped: Vec::new(),
            shared_with: Vec::new(),
            aside: None,
        }
    }
}

impl Entered {
    pub fn new(
        runtime: &Runtime,
        sandbox: Arc<Sandbox>,
        before: RootId,
        ending: Arc<AtomicBool>,
        place: Place,
    ) -> Entered {
        Entered {
            sandbox,
            before,
            ending,
            runtime: runtime.clone(),
            place: Some(place),
        }
    }

    /// Watches how much is written in the view, beyond what is there now.
    pub fn gauge(&self, growth: u64) -> Result<Option<Gauge>> {
        match &self.place {
            Some(Place::Shared { slot, .. }) => slot.gauge(&self.runtime, growth).map(Some),
            Some(Place::Apart { view, vault }) => {
                view.gauge(&self.runtime, *vault, growth).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Commits what the layer holds by now.
    pub fn leave(mut self, version: NewVersion) -> Result<Left> {
        match self.place.take() {
            Some(place) => self.leave_place(place, version),
            None => Ok(Left::nothing(self.before)),
        }
    }

    fn leave_place(&self, place: Place, version: NewVersion) -> Result<Left> {
        match place {
            Place::Shared { slot, exec } => slot.leave(&self.runtime, exec, version),
            Place::Apart { view, vault } => {
                view.close()?.in_background();
                self.runtime.inner.vaults.record(NewJournalEntry {
                    vault: Some(vault),
                    exec: version.exec,
                    principal: version.by,
                    operation: version.cause.as_str().into(),
                    details: version.details,
                })?;
                Ok(Left::nothing(self.before))
            }
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            // Only after an error of ours: what the command may have written is still kept.
            let version = interrupted_version(json!({ "why": "the exec failed" }));
            let _ = self.leave_place(place, version);
        }
    }
}
