//! The state of a vault for whoever looks at it, whatever is at work in it.

use std::sync::TryLockError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use avfs_vault::Vault;

use super::Slot;
use super::aside::is_refusal;
use crate::Result;
use crate::runtime::Runtime;

/// How long a reader waits for a commit; then it is shown the head as it is.
const READ_PATIENCE: Duration = Duration::from_secs(3);
const READ_POLL: Duration = Duration::from_millis(1);

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

/// What a reader sees.
enum Reading {
    Now,
    /// The head as it is, because a commit takes long.
    Head,
}

impl Slot {
    /// Runs `look` on a head that holds all that was written until now, also by running commands.
    pub fn current<T>(
        &self,
        runtime: &Runtime,
        look: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.ready(runtime)?;
        if state.is_in_use() {
            let committed = self.commit_partly(runtime, &mut state);
            committed.map_err(|error| self.as_uncommitted(runtime, error))?;
        } else {
            self.save(runtime, &mut state)?;
        }
        look(runtime.inner.vaults.by_id(self.vault)?)
    }

    /// Runs `look` for a caller that only reads. Where the commit is refused or takes long, it sees the head as it is.
    pub fn readable<T>(
        &self,
        runtime: &Runtime,
        look: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<T> {
        let vault = match self.wait_to_read(READ_PATIENCE) {
            // To try it once more would only take time.
            Reading::Now if self.is_stuck(runtime) => runtime.inner.vaults.by_id(self.vault)?,
            Reading::Now => match self.current(runtime, Ok) {
                Err(error) if is_refusal(&error) => runtime.inner.vaults.by_id(self.vault)?,
                current => current?,
            },
            Reading::Head => runtime.inner.vaults.by_id(self.vault)?,
        };
        look(vault)
    }

    /// Whether what was written did not fit on the disk, and there is hardly more room by now.
    pub fn is_stuck(&self, runtime: &Runtime) -> bool {
        let state = self.lock();
        let room = state.refusal().and_then(|refusal| refusal.room);
        room.is_some_and(|then| runtime.is_as_full_as(then))
    }

    /// Waits for the slot, but not for long if a commit has it.
    fn wait_to_read(&self, patience: Duration) -> Reading {
        let deadline = Instant::now() + patience;
        loop {
            match self.state.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(READ_POLL);
                }
                Err(TryLockError::WouldBlock) if self.committing.load(Ordering::Acquire) => {
                    return Reading::Head;
                }
                _ => return Reading::Now,
            }
        }
    }

    /// Runs `look` on a head that was committed while running commands were held still.
    pub fn still<T>(
        &self,
        runtime: &Runtime,
        look: impl FnOnce(Vault) -> Result<T>,
    ) -> Result<(T, Option<Stillness>)> {
        let mut state = self.lock();
        let sandbox = match &state.live {
            Some(live) if !state.running.is_empty() => live.sandbox()?,
            _ => {
                drop(state);
                return Ok((self.current(runtime, look)?, None));
            }
        };
        let frozen = sandbox.freeze();
        let stillness = Stillness {
            commands: state.running.len(),
            method: match &frozen {
                Ok(_) => Freeze::SigStop,
                Err(_) => Freeze::None,
            },
        };
        let committed = self.commit_partly(runtime, &mut state);
        drop(frozen);
        committed.map_err(|error| self.as_uncommitted(runtime, error))?;
        let looked = look(runtime.inner.vaults.by_id(self.vault)?)?;
        Ok((looked, Some(stillness)))
    }
}
