//! How an exec gets its sandbox: it joins the vault's view, or has a read-only view of its own.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use avfs_sandbox::Sandbox;
use avfs_vault::{ExecId, RootId, Vault, VaultId, VaultPath};

use super::{RunningExec, Sharing, Slot, State};
use crate::live::disk_watch::DiskWatch;
use crate::live::network::LiveNetwork;
use crate::live::shape::{Access, Shape};
use crate::live::view::{LiveView, open};
use crate::runtime::Runtime;
use crate::{Error, ErrorKind, Result};

/// An exec that has its sandbox; it must `leave`, or dropping it does.
pub(crate) struct ExecSession {
    pub inside: Inside,
    /// The vault's state when the exec began.
    pub before: RootId,
    /// Set when somebody wants the commands of the vault ended.
    pub ending: Arc<AtomicBool>,
    pub(super) runtime: Runtime,
    /// There until it leaves.
    pub(super) seat: Option<Seat>,
}

/// A sandbox, and where in it the vault is.
pub(crate) struct Inside {
    pub sandbox: Arc<Sandbox>,
    /// None if it has the host's.
    pub network: Option<Arc<LiveNetwork>>,
    pub root: PathBuf,
}

impl Inside {
    /// A path of the vault as a command there has to call it.
    pub fn path(&self, path: &VaultPath) -> Vec<u8> {
        let relative = path.as_bytes().strip_prefix(b"/").unwrap_or_default();
        let inside = self.root.join(OsStr::from_bytes(relative));
        inside.into_os_string().into_vec()
    }
}

/// Which view an exec runs in.
pub(super) enum Seat {
    /// The vault's own, with others.
    Shared { slot: Arc<Slot>, exec: ExecId },
    /// A view that nothing can change.
    Apart { view: Box<LiveView>, vault: VaultId },
}

impl Slot {
    /// Joins the vault's sandbox, opening it if there is none.
    pub fn enter(
        self: &Arc<Self>,
        runtime: &Runtime,
        exec: ExecId,
        shape: Shape,
    ) -> Result<ExecSession> {
        let mut state = self.ready(runtime)?;
        self.make_way(runtime, &mut state, shape)?;
        self.join(runtime, state, exec, shape, Sharing::Shared)
    }

    /// Opens a fresh sandbox on exactly the root that `admit` names, which must be the vault's head. `admit` is asked while
    /// the head cannot move. Nothing else runs in the vault or changes it until the exec leaves.
    pub fn enter_alone(
        self: &Arc<Self>,
        runtime: &Runtime,
        exec: ExecId,
        shape: Shape,
        admit: impl FnOnce() -> Result<RootId>,
    ) -> Result<ExecSession> {
        let mut state = self.without_commands(runtime, None)?;
        state.check_free_for_one()?;
        self.bury(runtime, &mut state)?;
        self.save(runtime, &mut state)?;
        let root = admit()?;
        let vault = runtime.inner.vaults.by_id(self.vault)?;
        check_at(&vault, vault.head, root)?;
        // A sandbox that commands have used keeps what they left in memory: /var/tmp, /run, /dev/shm, shared memory,
        // message queues.
        state.close()?;
        self.join(runtime, state, exec, shape.alone(), Sharing::Alone)
    }

    /// Opens a view of its own on the vault as it is now, which nothing can change.
    pub fn look(self: &Arc<Self>, runtime: &Runtime, shape: Shape) -> Result<ExecSession> {
        let vault = self.readable(runtime, Ok)?;
        let near = self.lock().bases(runtime, &vault);
        let view = open(runtime, self.vault, shape, Access::ReadOnly, &near)?;
        Ok(ExecSession {
            inside: view.inside()?,
            before: view.layer.record().last_commit,
            ending: Arc::default(),
            runtime: runtime.clone(),
            seat: Some(Seat::Apart {
                view: Box::new(view),
                vault: self.vault,
            }),
        })
    }

    /// Opens a read-only view of its own on exactly the root that `admit` names, which must be the vault's head. What
    /// becomes of the vault meanwhile is not seen in it.
    pub fn look_alone(
        self: &Arc<Self>,
        runtime: &Runtime,
        shape: Shape,
        admit: impl FnOnce() -> Result<RootId>,
    ) -> Result<ExecSession> {
        let root = admit()?;
        let session = self.look(runtime, shape.alone())?;
        let vault = runtime.inner.vaults.by_id(self.vault)?;
        check_at(&vault, session.before, root)?;
        Ok(session)
    }

    fn join(
        self: &Arc<Self>,
        runtime: &Runtime,
        mut state: MutexGuard<'_, State>,
        exec: ExecId,
        shape: Shape,
        sharing: Sharing,
    ) -> Result<ExecSession> {
        let vault = runtime.inner.vaults.by_id(self.vault)?;
        let before = vault.head;
        if state.live.is_none() {
            let near = state.bases(runtime, &vault);
            state.live = match state.wake(runtime, &vault, shape)? {
                Some(view) => Some(view),
                None => Some(open(runtime, self.vault, shape, Access::ReadWrite, &near)?),
            };
        }
        let live = state.live.as_mut().expect("opened just now");
        live.unsaved = true;
        let inside = live.inside()?;
        let ending = Arc::new(AtomicBool::new(false));
        let beside: BTreeSet<ExecId> = state.running.keys().copied().collect();
        for other in state.running.values_mut() {
            other.beside.insert(exec);
        }
        let running = RunningExec {
            with_mount: state.mount().is_some(),
            before,
            beside,
            sharing,
            shape,
            ending: ending.clone(),
        };
        state.running.insert(exec, running);
        self.running.store(state.running.len(), Ordering::Relaxed);
        state.used = Instant::now();
        drop(state);
        Ok(ExecSession {
            inside,
            before,
            ending,
            runtime: runtime.clone(),
            seat: Some(Seat::Shared {
                slot: self.clone(),
                exec,
            }),
        })
    }

    /// Leaves nothing in the slot that a new exec cannot join.
    fn make_way(&self, runtime: &Runtime, state: &mut State, shape: Shape) -> Result<()> {
        self.check_shared(runtime, state)?;
        self.bury(runtime, state)?;
        let other = state.live.as_ref().and_then(LiveView::shape_of_commands);
        let other = other.is_some_and(|other| other != shape);
        if other && !state.running.is_empty() {
            let vault = runtime.inner.vaults.by_id(self.vault)?;
            return Err(Error::OtherShape {
                vault: vault.name.to_string(),
                running: state.running.len(),
            });
        }
        if state.mount().is_some() {
            let vault = runtime.inner.vaults.by_id(self.vault)?;
            let live = state.live.as_mut().expect("it is mounted");
            live.open_beside(runtime, &vault, shape)?;
        } else if other {
            self.save(runtime, state)?;
            state.rest()?;
        }
        if state.is_in_use() {
            match self.commit_partly(runtime, state) {
                // The command may be the one that makes room.
                Err(error) if error.kind() == ErrorKind::Quota => {}
                committed => drop(committed?),
            }
        }
        Ok(())
    }

    /// Joins another sandbox for an exec whose first one died before the command could have begun.
    fn enter_again(&self, runtime: &Runtime, exec: ExecId, lost: &Arc<Sandbox>) -> Result<Inside> {
        let mut state = self.lock();
        let shape = state.running.get(&exec).ok_or_else(gone)?.shape;
        // It may still be dying.
        let is_lost = |live: &LiveView| !live.is_alive() || live.backend.is(lost);
        if state.mount().is_some() {
            let vault = runtime.inner.vaults.by_id(self.vault)?;
            let live = state.live.as_mut().expect("it is mounted");
            live.beside.take_if(|it| Arc::ptr_eq(&it.sandbox, lost));
            live.open_beside(runtime, &vault, shape)?;
        } else if state.live.as_ref().is_some_and(is_lost) {
            self.salvage(runtime, &mut state, None)?;
        }
        if state.live.is_none() {
            state.live = Some(open(runtime, self.vault, shape, Access::ReadWrite, &[])?);
        }
        let live = state.live.as_mut().ok_or_else(gone)?;
        live.unsaved = true;
        if live.shape_of_commands() != Some(shape) {
            return Err(gone());
        }
        live.inside()
    }

    /// Watches how many bytes are written in the live view.
    fn disk_watch(&self, runtime: &Runtime, growth: Option<u64>) -> Result<Option<DiskWatch>> {
        let state = self.lock();
        let live = state.live.as_ref().ok_or_else(gone)?;
        live.disk_watch(runtime, self.vault, growth)
    }
}

impl ExecSession {
    /// Has another sandbox in place of one that died before the command could have begun.
    pub fn enter_again(&mut self) -> Result<()> {
        self.inside = match &mut self.seat {
            Some(Seat::Shared { slot, exec }) => {
                slot.enter_again(&self.runtime, *exec, &self.inside.sandbox)?
            }
            Some(Seat::Apart { view, vault }) => {
                let again = open(&self.runtime, *vault, view.shape, Access::ReadOnly, &[])?;
                if again.layer.record().last_commit != self.before {
                    // What the caller was promised to see is not the head any more.
                    again.close()?.in_background();
                    return Err(gone());
                }
                let inside = again.inside()?;
                std::mem::replace(&mut **view, again)
                    .close()?
                    .in_background();
                inside
            }
            None => return Err(gone()),
        };
        Ok(())
    }

    /// Watches how much is written in the view, beyond what is there now.
    pub fn disk_watch(&self, growth: Option<u64>) -> Result<Option<DiskWatch>> {
        match &self.seat {
            Some(Seat::Shared { slot, .. }) => slot.disk_watch(&self.runtime, growth),
            Some(Seat::Apart { view, vault }) => view.disk_watch(&self.runtime, *vault, growth),
            None => Ok(None),
        }
    }
}

fn gone() -> Error {
    Error::Sandbox(avfs_sandbox::Error::SandboxGone)
}

fn check_at(vault: &Vault, found: RootId, expected: RootId) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::HeadMoved {
            vault: vault.name.to_string(),
            expected,
        }),
    }
}
