//! The keeper and what is served through it: two lenses and the scanner.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use avfs_sandbox::{Keeper, Privilege};
use avfs_vault::{RootId, Trees};
use avfs_view::{LensRoot, MarkNames, Retired, Scanner};

use crate::live::served::{Lenses, start_keeper, start_scanner};
use crate::owners::layer_owner;
use crate::retried::{Retried, note};
use crate::runtime::{Config, Runtime, lock};
use crate::{Error, Result};

/// One keeper's life. When it dies, all that it held is gone, and another one is started.
pub(crate) struct Engine {
    pub keeper: Keeper,
    /// Reads layers.
    pub scanner: Scanner,
    /// Removes layers: a large one takes long, and nobody should wait behind it.
    pub sweeper: Scanner,
    /// Changes what views show.
    pub writer: Scanner,
    /// How layers are marked.
    pub marks: MarkNames,
    unremoved: Unremoved,
    lenses: Lenses,
}

/// Layers that are no longer needed and whose removal was cut off by the death of a keeper, for the next one.
pub(crate) type Unremoved = Arc<Mutex<Vec<Retired>>>;

impl Engine {
    pub fn start(config: &Config, trees: &Trees, unremoved: Unremoved) -> Result<Engine> {
        let keeper = start_keeper(config)?;
        check_privilege(&keeper)?;
        let lenses = Lenses::serve(&keeper, trees)?;
        let marks = match keeper.privilege() {
            Privilege::Root => MarkNames::Trusted,
            Privilege::User => MarkNames::User,
        };
        let scanner = start_scanner(&keeper, marks, Retried::Scanner)?;
        let sweeper = start_scanner(&keeper, marks, Retried::Sweeper)?;
        let writer = start_scanner(&keeper, marks, Retried::Writer)?;
        Ok(Engine {
            keeper,
            scanner,
            sweeper,
            writer,
            marks,
            unremoved,
            lenses,
        })
    }

    /// Removes what is left of a layer. What cannot be removed now is by the next keeper, or at the next start.
    pub fn remove(&self, retired: Retired) {
        if let Err(avfs_view::Error::ScannerLost) = retired.remove(&self.sweeper) {
            lock(&self.unremoved).push(retired);
        }
    }

    /// Whether something failed because this keeper, or a process that it started, died: it may do with the next one.
    pub fn is_why(&self, error: &Error) -> bool {
        if let Error::Sandbox(avfs_sandbox::Error::KeeperGone) = error {
            // It may still be dying.
            self.keeper.kill();
        }
        is_of_lost_helper(error) || !self.keeper.is_alive()
    }

    /// Gives back the memory that only speed needs.
    pub fn release_caches(&self) {
        self.lenses.release_caches();
    }

    /// Shows `root` for as long as the guard lives, and where.
    pub fn show(&self, trees: &Trees, root: RootId) -> Result<(Option<LensRoot>, PathBuf)> {
        self.lenses.show(trees, root)
    }

    /// Whether commands can be shown what `root` shows.
    pub fn shows(&self, root: &LensRoot) -> bool {
        self.lenses.shows(root)
    }

    /// Shows `root` for a mount on the host, where everything belongs to this user.
    pub fn show_on_host(&self, trees: &Trees, root: RootId) -> Result<(Option<LensRoot>, PathBuf)> {
        self.lenses.show_on_host(&self.keeper, trees, root)
    }
}

impl Runtime {
    /// The keeper and what it serves; started when first needed, and anew when it died.
    pub(crate) fn engine(&self) -> Result<Arc<Engine>> {
        let mut held = lock(&self.inner.engine);
        if let Some(engine) = held.as_ref().filter(|engine| engine.keeper.is_alive()) {
            return Ok(engine.clone());
        }
        if held.is_some() {
            note(Retried::Keeper);
        }
        let start = || {
            let inner = &self.inner;
            Engine::start(&inner.config, inner.vaults.trees(), inner.unremoved.clone())
        };
        let engine = match start() {
            Err(error) if is_of_lost_helper(&error) => {
                note(Retried::Keeper);
                start()?
            }
            started => started?,
        };
        let engine = Arc::new(engine);
        *held = Some(engine.clone());
        Ok(engine)
    }

    /// Does something that can be done anew with the help of a keeper; where that died meanwhile, with the help of the next
    /// one.
    pub(crate) fn with_engine<T>(&self, mut work: impl FnMut(&Engine) -> Result<T>) -> Result<T> {
        let engine = self.engine()?;
        match work(&engine) {
            Err(error) if engine.is_why(&error) => work(&*self.engine()?),
            done => done,
        }
    }

    /// Removes what a keeper died over.
    pub(crate) fn remove_unremoved(&self) {
        let Some(engine) = self.running_engine() else {
            return;
        };
        let unremoved = std::mem::take(&mut *lock(&self.inner.unremoved));
        for retired in unremoved {
            engine.remove(retired);
        }
    }

    pub(crate) fn running_engine(&self) -> Option<Arc<Engine>> {
        let held = lock(&self.inner.engine);
        held.as_ref()
            .filter(|engine| engine.keeper.is_alive())
            .cloned()
    }
}

/// Whether a process of ours died, of which there can be another one.
fn is_of_lost_helper(error: &Error) -> bool {
    use avfs_sandbox::Error as S;
    matches!(
        error,
        Error::Sandbox(S::KeeperGone | S::SandboxGone) | Error::View(avfs_view::Error::ScannerLost)
    )
}

/// The keeper's privilege is decided by trying, a layer's owner by asking: both must agree.
fn check_privilege(keeper: &Keeper) -> Result<()> {
    let root = layer_owner().is_some();
    match (keeper.privilege(), root) {
        (Privilege::Root, true) | (Privilege::User, false) => Ok(()),
        (Privilege::User, true) => Err(Error::Invalid {
            what: "privilege",
            reason: "running as uid 0 without CAP_SYS_ADMIN on the host is not supported; \
                     run as an ordinary user instead"
                .into(),
        }),
        (Privilege::Root, false) => Err(Error::Invalid {
            what: "privilege",
            reason: "CAP_SYS_ADMIN without uid 0 is not supported".into(),
        }),
    }
}
