//! How an exec leaves its sandbox: what it wrote is committed, and the outcome says what became of the vault.

use std::sync::atomic::Ordering;
use std::time::Instant;

use avfs_vault::{Cause, CheckpointName, ExecId, NewJournalEntry, NewVersion, RootId};
use avfs_view::Skipped;
use serde_json::json;

use super::commits::names;
use super::exec_session::{ExecSession, Seat};
use super::{Sharing, Slot};
use crate::Result;
use crate::live::admission::Stop;
use crate::live::layer_commit::{Committed, interrupted_version};
use crate::runtime::Runtime;

/// Commits that may look at many names before the layer is exchanged for a fresh one, even between two commands of one
/// piece of work: by then looking at them has cost as much as fetching what is in the page cache would.
const ROTATE_COMMITS: u32 = 20;

/// What an exec left behind.
pub(crate) struct SessionOutcome {
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

impl SessionOutcome {
    /// For a commit that did not come about.
    pub fn nothing(before: RootId) -> SessionOutcome {
        SessionOutcome {
            before,
            after: before,
            version: None,
            skipped: Vec::new(),
            shared_with: Vec::new(),
            aside: None,
        }
    }
}

impl ExecSession {
    /// Commits what the layer holds by now, unless it is stopped.
    pub fn leave(mut self, version: NewVersion, stop: Stop<'_>) -> Result<SessionOutcome> {
        match self.seat.take() {
            Some(seat) => self.leave_seat(seat, version, stop),
            None => Ok(SessionOutcome::nothing(self.before)),
        }
    }

    fn leave_seat(
        &self,
        seat: Seat,
        version: NewVersion,
        stop: Stop<'_>,
    ) -> Result<SessionOutcome> {
        match seat {
            Seat::Shared { slot, exec } => slot.leave(&self.runtime, exec, version, stop),
            Seat::Apart { view, vault } => {
                view.close()?.in_background();
                self.runtime.inner.vaults.record(NewJournalEntry {
                    vault: Some(vault),
                    exec: version.exec,
                    principal: version.by,
                    operation: version.cause.into(),
                    details: version.details,
                })?;
                Ok(SessionOutcome::nothing(self.before))
            }
        }
    }
}

impl Drop for ExecSession {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            // Only after an error of ours: what the command may have written is still kept.
            // Others may go on: whether the sandbox is lost, the slot sees for itself.
            let version = NewVersion {
                cause: Cause::Exec,
                ..interrupted_version(json!({ "why": "the exec failed" }))
            };
            let _ = self.leave_seat(seat, version, &|| false);
        }
    }
}

impl Slot {
    /// Commits what the layer holds once `exec` has ended.
    fn leave(
        &self,
        runtime: &Runtime,
        exec: ExecId,
        mut version: NewVersion,
        stop: Stop<'_>,
    ) -> Result<SessionOutcome> {
        let mut state = self.lock();
        let left = state.running.remove(&exec).expect("an exec leaves once");
        self.running.store(state.running.len(), Ordering::Relaxed);
        let shared_with: Vec<ExecId> = left.beside.iter().copied().collect();
        self.left.notify_all();
        if !state.running.is_empty() {
            // Theirs is in it too, as far as they have come.
            version.details["execs"] = json!(names(state.running.keys().chain([&exec])));
        }
        state.used = Instant::now();
        // Whoever watched the command may know of the sandbox's end before it shows.
        let known = version.cause == Cause::Interrupted;
        let lost = state
            .live
            .as_ref()
            .is_some_and(|live| known || !live.is_alive());
        let committed = if lost {
            self.salvage(runtime, &mut state, Some(version))
        } else {
            self.commit_unless(runtime, &mut state, version, stop)
        };
        let committed = committed.map_err(|error| self.as_uncommitted(runtime, error))?;
        if left.sharing == Sharing::Alone {
            // The next command wants the vault's own /tmp.
            state.close()?;
        }
        if state.running.is_empty() && state.has_grown() {
            let live = state.live.as_mut().expect("it has grown");
            live.commits_grown += 1;
            if live.commits_grown > ROTATE_COMMITS {
                self.rotate_in_background(runtime);
            }
        }
        let Committed {
            after,
            version,
            skipped,
            aside,
        } = committed;
        Ok(SessionOutcome {
            before: left.before,
            after,
            version,
            skipped,
            shared_with,
            aside,
        })
    }
}
