//! Changes of a vault by a file verb, also while commands or a mount write in its view.

use std::os::fd::AsFd;

use avfs_vault::{NewVersion, RootId, Vault};

use super::{Slot, State};
use crate::live::layer_commit::Committed;
use crate::live::view_writer::{Applied, Draft};
use crate::runtime::Runtime;
use crate::{Error, Result};

/// How often a change is tried anew that a command was faster than.
const CHANGE_TRIES: usize = 10;
/// A change of a vault's head by a file verb.
pub(crate) struct HeadChange<'a, T> {
    pub version: NewVersion,
    /// What the head is to become; asked again when a command was faster.
    pub draft: &'a mut dyn FnMut(&Vault) -> Result<Draft<T>>,
    /// Makes a root the head and gives the number of its version, where no view is in use.
    pub publish: &'a dyn Fn(&Vault, RootId, NewVersion) -> Result<u64>,
}

/// A change in whose middle the process that made it died.
struct Lost<T> {
    /// The head before.
    before: RootId,
    /// The head if all of it was done, and what is answered then.
    done: (RootId, T),
}

impl Slot {
    /// Makes somebody's change: on the head itself, or, where commands are at work, through their view.
    pub fn change<T>(&self, runtime: &Runtime, change: HeadChange<'_, T>) -> Result<(T, u64)> {
        let mut state = self.ready(runtime)?;
        if !state.is_in_use() {
            // Without letting go of the slot: a command that came in between would be in the way.
            return self.settle_in(runtime, state, None, State::rest, |vault| {
                let draft = (change.draft)(&vault)?;
                let number = (change.publish)(&vault, draft.root, change.version)?;
                Ok((draft.value, number))
            });
        }
        self.check_shared(runtime, &state)?;
        let mut lost = None;
        for _ in 0..CHANGE_TRIES {
            let committed = self.commit_partly(runtime, &mut state);
            committed.map_err(|error| self.as_uncommitted(runtime, error))?;
            let vaults = &runtime.inner.vaults;
            let _lease = vaults.lease();
            let vault = vaults.by_id(self.vault)?;
            if let Some(Lost { before, done }) = lost.take()
                && vault.head != before
            {
                return match done {
                    (root, value) if root == vault.head => Ok((value, vault.version)),
                    _ => Err(Error::View(avfs_view::Error::ViewOpLost)),
                };
            }
            let draft = (change.draft)(&vault)?;
            vaults.check_quota(&vault, draft.root)?;
            let live = state.live.as_ref().expect("what is in use is a view");
            let top = live.backend.top()?;
            let writer = live.writer(vaults.trees(), top.as_fd());
            let changes = vaults.trees().diff(vault.head, draft.root)?;
            match writer.apply(changes, draft.root, draft.hint.as_ref()) {
                Ok(Applied::All) => {
                    let committed = self.commit(runtime, &mut state, change.version);
                    let committed =
                        committed.map_err(|error| self.as_uncommitted(runtime, error))?;
                    return Ok((draft.value, committed.version.unwrap_or(vault.version)));
                }
                Ok(Applied::Overtaken) => {}
                // What it had done by then shows in the next commit.
                Err(Error::View(avfs_view::Error::ViewOpLost)) => {
                    let done = (draft.root, draft.value);
                    let before = vault.head;
                    lost = Some(Lost { before, done });
                }
                Err(error) => return Err(error),
            }
        }
        let vault = runtime.inner.vaults.by_id(self.vault)?.name.to_string();
        Err(Error::Overtaken { vault })
    }

    /// Takes in what the view holds by now, and says what the head was before. In the journal it
    /// stands whether or not there was anything to take in.
    pub fn commit_now(
        &self,
        runtime: &Runtime,
        version: NewVersion,
    ) -> Result<(RootId, Committed)> {
        let mut state = self.ready(runtime)?;
        self.retry(runtime, &mut state);
        let before = runtime.inner.vaults.by_id(self.vault)?.head;
        let committed = if state.live.is_some() {
            self.commit(runtime, &mut state, version)
                .map_err(|error| self.as_uncommitted(runtime, error))?
        } else {
            let vaults = &runtime.inner.vaults;
            vaults.publish(self.vault, before, before, version)?;
            Committed::unchanged(before)
        };
        Ok((before, committed))
    }
}
