//! An exec in its sandbox, until it leaves.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use avfs_sandbox::Sandbox;
use avfs_vault::{
    Cause, CheckpointName, ExecId, NewJournalEntry, NewVersion, RootId, VaultId, VaultPath,
};
use avfs_view::Skipped;
use serde_json::json;

use crate::admission::Stop;
use crate::gauge::Gauge;
use crate::live::Slot;
use crate::opened::{LiveView, interrupted_version, open};
use crate::options::Access;
use crate::runtime::Runtime;
use crate::{Error, Result};

/// An exec that has its sandbox; it must `leave`, or dropping it does.
pub(crate) struct Entered {
    pub inside: Inside,
    /// The vault's state when the exec began.
    pub before: RootId,
    /// Set when somebody wants the commands of the vault ended.
    pub ending: Arc<AtomicBool>,
    runtime: Runtime,
    /// There until it leaves.
    place: Option<Place>,
}

/// A sandbox, and where in it the vault is.
pub(crate) struct Inside {
    pub sandbox: Arc<Sandbox>,
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

/// How running commands were held still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeze {
    /// Each of their processes was stopped.
    SigStop,
    /// They could not be: each file is as it was when it was read.
    None,
}

/// What running commands did while a state was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stillness {
    /// Execs that were running.
    pub commands: usize,
    pub method: Freeze,
}

/// What becomes of commands that are in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    /// They are let be, and nothing is done.
    Respect,
    /// They are ended first.
    End,
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
        inside: Inside,
        before: RootId,
        ending: Arc<AtomicBool>,
        place: Place,
    ) -> Entered {
        Entered {
            inside,
            before,
            ending,
            runtime: runtime.clone(),
            place: Some(place),
        }
    }

    /// Has another sandbox in place of one that died before the command could have begun.
    pub fn enter_again(&mut self) -> Result<()> {
        self.inside = match &mut self.place {
            Some(Place::Shared { slot, exec }) => {
                slot.enter_again(&self.runtime, *exec, &self.inside.sandbox)?
            }
            Some(Place::Apart { view, vault }) => {
                let again = open(&self.runtime, *vault, view.shape, Access::ReadOnly, &[])?;
                if again.layer.record().last_commit != self.before {
                    // What the caller was promised to see is not the head any more.
                    again.close()?.in_background();
                    return Err(Error::Sandbox(avfs_sandbox::Error::SandboxGone));
                }
                let inside = again.inside()?;
                std::mem::replace(&mut **view, again)
                    .close()?
                    .in_background();
                inside
            }
            None => return Err(Error::Sandbox(avfs_sandbox::Error::SandboxGone)),
        };
        Ok(())
    }

    /// Watches how much is written in the view, beyond what is there now.
    pub fn gauge(&self, growth: Option<u64>) -> Result<Option<Gauge>> {
        match &self.place {
            Some(Place::Shared { slot, .. }) => slot.gauge(&self.runtime, growth),
            Some(Place::Apart { view, vault }) => view.gauge(&self.runtime, *vault, growth),
            None => Ok(None),
        }
    }

    /// Commits what the layer holds by now, unless it is stopped.
    pub fn leave(mut self, version: NewVersion, stop: Stop<'_>) -> Result<Left> {
        match self.place.take() {
            Some(place) => self.leave_place(place, version, stop),
            None => Ok(Left::nothing(self.before)),
        }
    }

    fn leave_place(&self, place: Place, version: NewVersion, stop: Stop<'_>) -> Result<Left> {
        match place {
            Place::Shared { slot, exec } => slot.leave(&self.runtime, exec, version, stop),
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
            // Others may go on: whether the sandbox is lost, the slot sees for itself.
            let version = NewVersion {
                cause: Cause::Exec,
                ..interrupted_version(json!({ "why": "the exec failed" }))
            };
            let _ = self.leave_place(place, version, &|| false);
        }
    }
}
