//! A vault's view as a mount on the host: opened, tended and closed through the vault's slot.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Instant;

use avfs_sandbox::onhost::InUse;
use avfs_vault::{NewVersion, Principal};
use avfs_view::{StagingUse, Writers};
use serde_json::json;

use super::{Slot, State};
use crate::live::admission::Stop;
use crate::live::layer_commit::commit_version;
use crate::live::layer_commit::{
    CommitPlan, Committed, OnQuota, commit_layer, interrupted_version,
};
use crate::live::mounts::{HostMount, MountInfo, Showing, Unmounted, open_on_host};
use crate::live::recover::StrandedLayer;
use crate::live::view::{LiveView, remove_in_background};
use crate::live::view_backend::ViewBackend;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::{Error, Result};

impl State {
    pub(super) fn mount(&self) -> Option<&HostMount> {
        match &self.live.as_ref()?.backend {
            ViewBackend::Mount(mount) => Some(mount),
            ViewBackend::Sandbox(_) => None,
        }
    }

    /// Whether somebody may be writing in the view at this moment.
    pub(super) fn is_in_use(&self) -> bool {
        !self.running.is_empty() || self.mount().is_some()
    }

    /// Refuses what cannot be while the vault is mounted.
    pub(super) fn check_unmounted(&self) -> Result<()> {
        match self.mount() {
            None => Ok(()),
            Some(mount) => Err(mount.in_the_way()),
        }
    }

    /// Refuses a command that must have the vault to itself.
    pub(super) fn check_free_for_one(&self) -> Result<()> {
        match self.mount() {
            None => Ok(()),
            Some(mount) => Err(Error::MountedNotAlone {
                vault: mount.vault.to_string(),
                dir: mount.dir.clone(),
            }),
        }
    }
}

impl Slot {
    /// The slot; a mount that cannot go on is given up first. Somebody may have taken it away
    /// without asking, or the keeper may have died.
    pub(crate) fn ready(&self, runtime: &Runtime) -> Result<MutexGuard<'_, State>> {
        self.ready_after(runtime, None)
    }

    /// The slot, as [`Slot::ready`] gives it. A caller that may end anybody's commands also ends a commit that is under way.
    pub(super) fn ready_after(
        &self,
        runtime: &Runtime,
        ended_by: Option<&Session>,
    ) -> Result<MutexGuard<'_, State>> {
        let mut state = match ended_by {
            Some(by) if !by.principal().is_agent() => {
                let _halt = self.halts.halt();
                self.lock()
            }
            _ => self.lock(),
        };
        self.recover(runtime, &mut state);
        let stop = || runtime.is_over() || self.halts.any();
        let has_commands = !state.running.is_empty();
        let Some(live) = &mut state.live else {
            return Ok(state);
        };
        let ViewBackend::Mount(mount) = &live.backend else {
            if live.unsaved {
                self.bury(runtime, &mut state)?;
            }
            return Ok(state);
        };
        let kept = live.engine.keeper.is_alive();
        if !mount.is_alive() && has_commands {
            // Commands beside it have a clone of it, and end first.
        } else if !mount.is_alive() {
            self.finish_mount(runtime, &mut state, last_version(Principal::SYSTEM), &stop)?;
        } else if !kept && live.base.lens.is_some() {
            // What it stands on is shown no more.
            let version = interrupted_version(json!({ "why": "the keeper was lost" }));
            self.finish_mount(runtime, &mut state, version, &stop)?;
        } else if !kept {
            live.engine = runtime.engine()?;
            live.close_dead_beside();
        }
        Ok(state)
    }

    pub fn mount(&self, runtime: &Runtime, showing: &Showing<'_>) -> Result<()> {
        let mut state = self.ready(runtime)?;
        let vault = runtime.inner.vaults.by_id(self.vault)?;
        if let Some(mount) = state.mount() {
            return Err(Error::AlreadyMounted {
                vault: vault.name.to_string(),
                dir: mount.dir.clone(),
            });
        }
        if !state.running.is_empty() {
            return Err(self.busy(runtime, &state)?);
        }
        self.save(runtime, &mut state)?;
        state.close()?;
        let vault = runtime.inner.vaults.by_id(self.vault)?;
        state.live = Some(open_on_host(runtime, &vault, showing)?);
        self.mounted.store(true, Ordering::Relaxed);
        state.used = Instant::now();
        Ok(())
    }

    pub fn mount_info(&self, runtime: &Runtime) -> Result<Option<MountInfo>> {
        let state = self.ready(runtime)?;
        let Some(mount) = state.mount() else {
            return Ok(None);
        };
        Ok(Some(mount.info(&runtime.inner.vaults.by_id(self.vault)?)))
    }

    /// Never waits: a slot at which somebody is at work is what it was before.
    pub fn is_mounted(&self) -> bool {
        match self.state.try_lock() {
            Ok(state) => state.mount().is_some(),
            Err(_) => self.mounted.load(Ordering::Relaxed),
        }
    }

    /// Takes the mount away. Without force, what cannot be committed keeps it.
    pub fn unmount(&self, runtime: &Session, in_use: InUse) -> Result<Unmounted> {
        let state = self.ready(runtime)?;
        let Some(mount) = state.mount() else {
            let vault = runtime.inner.vaults.by_id(self.vault)?;
            return Err(Error::NotMounted {
                what: format!("vault {}", vault.name),
            });
        };
        let (vault, dir) = (mount.vault.clone(), mount.dir.clone());
        let ended_by = (in_use == InUse::Detach).then_some(runtime);
        let mut state = self.without_commands_in(runtime, state, ended_by)?;
        let before = runtime.inner.vaults.by_id(self.vault)?.version;
        if in_use == InUse::Refuse {
            let by = runtime.principal();
            let committed = self.commit(runtime, &mut state, last_version(by));
            committed.map_err(|error| self.as_uncommitted(runtime, error))?;
        }
        if let Some(mount) = state.mount() {
            mount.unmount(in_use)?;
        }
        let stop = || runtime.is_over() || self.halts.any();
        let last = last_version(runtime.principal());
        let finished = self.finish_mount(runtime, &mut state, last, &stop)?;
        let after = runtime.inner.vaults.by_id(self.vault)?.version;
        Ok(Unmounted {
            vault,
            dir,
            version: (after != before).then_some(after),
            aside: finished.aside,
        })
    }

    /// Commits when it is time to. False when there is nothing to look after any more.
    pub fn tend(&self, runtime: &Runtime) -> bool {
        // What cannot be given up now is found at the next start.
        let Ok(mut state) = self.ready(runtime) else {
            return false;
        };
        let Some(mount) = state.mount() else {
            return false;
        };
        if mount
            .autocommit
            .is_some_and(|every| state.used.elapsed() >= every)
        {
            state.used = Instant::now();
            let version = commit_version(Principal::SYSTEM, json!({ "autocommit": true }));
            // What is refused stays in the layer; whoever looks or unmounts is told.
            let _ = self.commit(runtime, &mut state, version);
        }
        true
    }

    /// The mount is gone, or about to: whatever was written in it becomes the head, or, where a
    /// quota forbids that, a checkpoint.
    pub(super) fn finish_mount(
        &self,
        runtime: &Runtime,
        state: &mut State,
        version: NewVersion,
        stop: Stop<'_>,
    ) -> Result<Committed> {
        self.mounted.store(false, Ordering::Relaxed);
        let live = state.live.take().expect("only called when there is a view");
        let LiveView {
            beside,
            backend,
            mut layer,
            mut cache,
            ..
        } = live;
        drop(beside);
        if let ViewBackend::Mount(mount) = backend {
            mount.end();
        }
        let mut engine = runtime.engine()?;
        let finished = self.commit_by(runtime, &mut engine, |engine| {
            let plan = CommitPlan {
                vault: self.vault,
                layer: &mut layer,
                cache: &mut cache,
                writers: Writers::None,
                staging: StagingUse::Abandoned,
                version: version.clone(),
                since: None,
                on_quota: OnQuota::KeepAside,
                stop,
            };
            commit_layer(runtime, engine, plan)
        });
        match finished {
            Ok((committed, _)) => {
                remove_in_background(layer.retire()?, engine);
                Ok(committed)
            }
            Err(error) => {
                let found = layer.leave(self.vault);
                state
                    .stranded
                    .push(StrandedLayer::new(runtime, found, &error));
                Err(error)
            }
        }
    }
}

pub(super) fn last_version(by: Principal) -> NewVersion {
    commit_version(by, json!({ "unmount": true }))
}
