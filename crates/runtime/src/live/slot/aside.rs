//! Making way for what needs no commit, whatever the layer holds.

use std::time::{Duration, Instant};

use avfs_vault::{JournalEvent, NewJournalEntry, Principal, Vault};
use avfs_view::{StagingUse, Writers};
use serde_json::json;

use super::{Slot, State, mount};
use crate::gate::Verb;
use crate::live::layer_commit::{CommitPlan, OnQuota, commit_layer, interrupted_version};
use crate::live::recover::StrandedLayer;
use crate::live::slot::IfBusy;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::{Error, ErrorKind, Result};

/// How long what a vault holds may be taken in before the vault is deleted by force.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// Whether a commit was refused for what the layer holds, or stopped; not that something is broken.
pub(super) fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Uncommitted { source, .. } => is_refusal(source),
        Error::View(avfs_view::Error::Stopped) => true,
        error => error.kind() == ErrorKind::Quota,
    }
}

impl Slot {
    /// Makes way: what a quota keeps out becomes a checkpoint. What is too much even for that stays in the way, unless
    /// commands in the way would be ended, too.
    pub fn put_aside(&self, by: &Session, if_busy: IfBusy) -> Result<()> {
        let runtime: &Runtime = by;
        let ended_by = (if_busy == IfBusy::End).then_some(by);
        let mut state = self.ready_after(runtime, ended_by)?;
        if if_busy == IfBusy::End {
            self.give_up_stranded(by, &mut state)?;
        }
        if state.is_in_use() {
            return Ok(());
        }
        let saved = self.save(runtime, &mut state);
        let Err(error) = saved else { return Ok(()) };
        if error.kind() != ErrorKind::Quota {
            return Err(error);
        }
        match self.keep_aside(runtime, &mut state) {
            Err(error) if if_busy == IfBusy::End && is_refusal(&error) => {
                self.check_owner(by)?;
                self.discard(runtime, &mut state, &error)
            }
            kept => kept,
        }
    }

    fn check_owner(&self, by: &Session) -> Result<()> {
        let vault = by.inner.vaults.by_id(self.vault)?;
        by.check(Verb::Own, &vault.made_by, || {
            format!("vault {}", vault.name)
        })
    }

    /// Layers of earlier daemons that do not fit are tried once more, and then go.
    fn give_up_stranded(&self, by: &Session, state: &mut State) -> Result<()> {
        if state.stranded.is_empty() {
            return Ok(());
        }
        self.check_owner(by)?;
        self.retry(by, state);
        let (gone, kept) = std::mem::take(&mut state.stranded)
            .into_iter()
            .partition(|layer| layer.why.kind == ErrorKind::Quota);
        state.stranded = kept;
        let gone: Vec<StrandedLayer> = gone;
        for layer in gone {
            self.note_discarded(by, &layer.why.reason)?;
            layer.give_up(&by.engine()?)?;
        }
        Ok(())
    }

    /// Runs `change`, which deletes the vault. By force, nothing that the layer holds is in its way.
    pub fn deleted<T>(
        &self,
        by: &Session,
        if_busy: IfBusy,
        change: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        let runtime: &Runtime = by;
        if if_busy == IfBusy::Refuse {
            self.put_aside(by, if_busy)?;
            return self.closed(by, change);
        }
        let halt = self.halts.halt();
        let mut state = self.without_commands_in(runtime, self.lock(), Some(by))?;
        drop(halt);
        // What is quickly taken in can be had back with the vault.
        let deadline = Instant::now() + LAST_LOOK;
        let stop = || Instant::now() >= deadline;
        self.recover_unless(runtime, &mut state, &stop);
        if state.mount().is_some() {
            by.govern("a mount")?;
            let finished = self.finish_mount(
                runtime,
                &mut state,
                mount::last_version(Principal::SYSTEM),
                &stop,
            );
            if let Err(error) = finished {
                self.note_discarded(runtime, &error.to_string())?;
            }
        }
        if state.live.as_ref().is_some_and(|live| live.unsaved) {
            let version = interrupted_version(json!({ "why": "the vault was deleted" }));
            if let Err(error) = self.commit_unless(runtime, &mut state, version, &stop) {
                self.discard(runtime, &mut state, &error)?;
            }
        }
        state.close()?;
        change(runtime.inner.vaults.by_id(self.vault)?)
    }

    /// Makes a checkpoint of what the quota keeps out of the head, and closes the view.
    fn keep_aside(&self, runtime: &Runtime, state: &mut State) -> Result<()> {
        let Some(live) = state.live.as_mut() else {
            return Ok(());
        };
        if !live.is_alive() {
            return self.salvage(runtime, state, None).map(drop);
        }
        let stop = || runtime.is_over() || self.halts.any();
        let mut engine = live.engine.clone();
        let kept = self.commit_by(runtime, &mut engine, |engine| {
            let plan = CommitPlan {
                vault: self.vault,
                layer: &mut live.layer,
                cache: &mut live.cache,
                writers: Writers::None,
                staging: StagingUse::InUse,
                version: interrupted_version(json!({ "why": "the quota kept it out" })),
                since: None,
                on_quota: OnQuota::KeepAside,
                stop: &stop,
            };
            commit_layer(runtime, engine, plan)
        });
        kept.map_err(|error| self.as_uncommitted(runtime, error))?;
        state.close()
    }

    /// Gives up what the layer holds. The journal says so.
    fn discard(&self, runtime: &Runtime, state: &mut State, why: &Error) -> Result<()> {
        self.note_discarded(runtime, &why.to_string())?;
        state.close()
    }

    fn note_discarded(&self, runtime: &Runtime, why: &str) -> Result<()> {
        runtime.inner.vaults.record(NewJournalEntry {
            vault: Some(self.vault),
            exec: None,
            principal: Principal::SYSTEM,
            operation: JournalEvent::UncommittedDiscarded.into(),
            details: json!({ "why": why }),
        })?;
        Ok(())
    }
}
