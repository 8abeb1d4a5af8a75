//! Vaults as directories of the host, for people and their programs.

mod host;
mod registry;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use avfs_sandbox::onhost::InUse;
use avfs_vault::{CheckpointName, Hold, JournalEvent, NewJournalEntry, Vault, VaultId, VaultName};
use avfs_view::{Access, ReadWrite, ReadWritePlan};
use serde_json::json;

pub use avfs_sandbox::onhost::{Audience, MountAccess, mount_namespace};
pub(crate) use host::{HostMount, Showing, open_on_host, room};
use host::{mount_id, plan};
pub(crate) use registry::heal;
use registry::{Noted, note, take_away};

use crate::gate::Verb;
use crate::live::served::onhost;
use crate::point::{DiffPoint, StateAt};
use crate::runtime::{Runtime, Select, in_background, lock};
use crate::session::Session;
use crate::{Error, Result};

/// What serves a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountDriver {
    /// The kernel's overlayfs: near native speed; needs root.
    Overlay,
    /// The daemon, through FUSE.
    Fuse,
}

impl fmt::Display for MountDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MountDriver::Overlay => "overlay",
            MountDriver::Fuse => "fuse",
        })
    }
}

/// What somebody wants to see as a directory.
#[derive(Debug, Clone)]
pub struct MountRequest {
    pub vault: Select,
    /// Made up when left out.
    pub dir: Option<PathBuf>,
    pub access: MountAccess,
    /// An older state, which can only be read.
    pub at: Option<DiffPoint>,
    /// The best there is when left out.
    pub driver: Option<MountDriver>,
    /// How often what was written becomes a version by itself.
    pub autocommit: Option<Duration>,
    /// Who can use it.
    pub audience: Audience,
    /// The caller's mount namespace: a mount is seen only in the daemon's own.
    pub namespace: String,
}

impl MountRequest {
    fn is_read_only(&self) -> bool {
        self.access == MountAccess::ReadOnly || self.at.is_some()
    }

    /// A mount that is only read is served by FUSE, and nothing in it can be committed.
    fn check(&self) -> Result<()> {
        let refused = match (self.driver, self.autocommit) {
            _ if !self.is_read_only() => return Ok(()),
            (Some(MountDriver::Overlay), _) => {
                "a read-only mount is served by FUSE, not by overlay"
            }
            (_, Some(_)) => "a read-only mount has nothing to commit",
            (Some(MountDriver::Fuse) | None, None) => return Ok(()),
        };
        Err(Error::Invalid {
            what: "combination",
            reason: refused.into(),
        })
    }
}

/// One mount.
#[derive(Debug, Clone)]
pub struct MountInfo {
    pub id: VaultId,
    pub vault: VaultName,
    pub dir: PathBuf,
    pub driver: MountDriver,
    pub access: MountAccess,
    /// The version that is shown, or was last made.
    pub version: u64,
    pub autocommit: Option<Duration>,
}

/// Which mounts are to go.
#[derive(Debug, Clone)]
pub enum UnmountTarget {
    Dir(PathBuf),
    Vault(Select),
    All,
}

/// A mount that is gone, and what it left.
#[derive(Debug, Clone)]
pub struct Unmounted {
    pub vault: VaultName,
    pub dir: PathBuf,
    /// The version that was made of what was written last.
    pub version: Option<u64>,
    /// The checkpoint that holds what a quota kept out.
    pub aside: Option<CheckpointName>,
}

/// A state that can only be read, shown at a directory.
pub(crate) struct Window {
    info: MountInfo,
    id: u64,
    served: ReadWrite,
    noted: Noted,
    _shown: Hold,
}

impl Window {
    fn is_alive(&self) -> bool {
        let there = onhost::mounted_at(&self.info.dir);
        self.served.is_alive() && matches!(there, Ok(Some(mounted)) if mounted.id == self.id)
    }

    fn end(self) {
        drop(self.served);
        self.noted.forget();
    }
}

impl Session {
    /// Shows a vault at a directory of the host.
    pub fn mount(&self, request: MountRequest) -> Result<MountInfo> {
        if mount_namespace()? != request.namespace {
            return Err(Error::OtherNamespace);
        }
        request.check()?;
        let vault = self.vault(&request.vault, Verb::Govern)?;
        let _one_at_a_time = lock(&self.inner.mounting);
        let dir = self.mount_dir(&vault, request.dir.as_deref())?;
        let info = if request.is_read_only() {
            self.mount_window(&vault, dir, request.at.as_ref(), request.audience)?
        } else {
            let showing = Showing {
                dir: &dir,
                driver: driver(request.driver)?,
                autocommit: request.autocommit,
                audience: request.audience,
            };
            self.slot(vault.id).mount(self, &showing)?;
            self.tend_in_background(vault.id);
            self.slot(vault.id)
                .mount_info(self)?
                .ok_or_else(|| Error::NotMounted {
                    what: dir.display().to_string(),
                })?
        };
        self.record_mount(
            JournalEvent::Mount,
            vault.id,
            &info.dir,
            json!(info.driver.to_string()),
        )?;
        Ok(info)
    }

    /// Everything that is mounted.
    pub fn mounts(&self) -> Result<Vec<MountInfo>> {
        let mut found = Vec::new();
        for slot in self.slots() {
            found.extend(slot.mount_info(self)?);
        }
        let mut windows = lock(&self.inner.windows);
        let (alive, gone): (Vec<_>, Vec<_>) = windows.drain(..).partition(Window::is_alive);
        *windows = alive;
        gone.into_iter().for_each(Window::end);
        found.extend(windows.iter().map(|window| window.info.clone()));
        found.sort_by(|a, b| a.dir.cmp(&b.dir));
        Ok(found)
    }

    /// Takes mounts away, after making versions of what was written in them.
    pub fn unmount(&self, target: UnmountTarget, in_use: InUse) -> Result<Vec<Unmounted>> {
        self.govern("unmounting")?;
        let _one_at_a_time = lock(&self.inner.mounting);
        let vault = match &target {
            UnmountTarget::Vault(select) => Some(self.vault(select, Verb::Govern)?),
            _ => None,
        };
        let mut wanted = self.mounts()?;
        wanted.retain(|mount| match &target {
            UnmountTarget::Dir(dir) => mount.dir == *dir,
            UnmountTarget::Vault(_) => vault.as_ref().is_some_and(|it| it.id == mount.id),
            UnmountTarget::All => true,
        });
        let what = match (&target, &vault) {
            (UnmountTarget::Dir(dir), _) if wanted.is_empty() && onhost::is_dead(dir) => {
                take_away(dir);
                return Ok(Vec::new());
            }
            (UnmountTarget::Dir(dir), _) => dir.display().to_string(),
            (_, Some(vault)) => format!("vault {}", vault.name),
            (_, None) => return self.unmount_each(wanted, in_use),
        };
        if wanted.is_empty() {
            return Err(Error::NotMounted { what });
        }
        self.unmount_each(wanted, in_use)
    }

    fn unmount_each(&self, wanted: Vec<MountInfo>, in_use: InUse) -> Result<Vec<Unmounted>> {
        let mut gone = Vec::new();
        for mount in wanted {
            let unmounted = match mount.access {
                MountAccess::ReadWrite => self.slot(mount.id).unmount(self, in_use)?,
                MountAccess::ReadOnly => self.unmount_window(&mount, in_use)?,
            };
            self.record_mount(
                JournalEvent::Unmount,
                mount.id,
                &mount.dir,
                json!(unmounted.version),
            )?;
            gone.push(unmounted);
        }
        Ok(gone)
    }

    fn mount_window(
        &self,
        vault: &Vault,
        dir: PathBuf,
        at: Option<&DiffPoint>,
        audience: Audience,
    ) -> Result<MountInfo> {
        let StateAt { root, version } = self.state_at(vault, at.unwrap_or(&DiffPoint::Head))?;
        let shown = self.inner.vaults.hold(root);
        let engine = self.engine()?;
        let noted = note(&self.inner.config.home, &dir)?;
        let served = onhost::mount_fuse(&dir, MountAccess::ReadOnly, audience)
            .map_err(Error::from)
            .and_then(|device| {
                let plan = ReadWritePlan {
                    access: Access::ReadOnly,
                    ..plan(self, &engine, root)
                };
                Ok((ReadWrite::serve(device, plan)?, mount_id(&dir)?))
            });
        let (served, id) = match served {
            Ok(served) => served,
            Err(error) => {
                take_away(&dir);
                noted.forget();
                return Err(error);
            }
        };
        let info = MountInfo {
            id: vault.id,
            vault: vault.name.clone(),
            dir,
            driver: MountDriver::Fuse,
            access: MountAccess::ReadOnly,
            version: version.unwrap_or(vault.version),
            autocommit: None,
        };
        lock(&self.inner.windows).push(Window {
            info: info.clone(),
            id,
            served,
            noted,
            _shown: shown,
        });
        Ok(info)
    }

    fn unmount_window(&self, mount: &MountInfo, in_use: InUse) -> Result<Unmounted> {
        let mut windows = lock(&self.inner.windows);
        let index = windows
            .iter()
            .position(|window| window.info.dir == mount.dir)
            .ok_or_else(|| Error::NotMounted {
                what: mount.dir.display().to_string(),
            })?;
        host::unmount(&mount.dir, in_use)?;
        windows.remove(index).end();
        Ok(Unmounted {
            vault: mount.vault.clone(),
            dir: mount.dir.clone(),
            version: None,
            aside: None,
        })
    }

    /// A directory on which a vault can be mounted.
    fn mount_dir(&self, vault: &Vault, asked: Option<&Path>) -> Result<PathBuf> {
        let home = &self.inner.config.home;
        let own = home.join("mnt");
        let dir = match asked {
            Some(dir) => dir.to_owned(),
            None => own.join(vault.name.to_string()),
        };
        let refuse = |reason: &str| {
            Err(Error::Invalid {
                what: "mount directory",
                reason: format!("{} {reason}", dir.display()),
            })
        };
        if !dir.is_absolute() {
            return refuse("is not an absolute path");
        }
        if home.starts_with(&dir) || (dir.starts_with(home) && !dir.starts_with(&own)) {
            return refuse("holds the vaults themselves");
        }
        if onhost::is_dead(&dir) {
            // A daemon that was killed left it; nobody can use it any more.
            take_away(&dir);
        }
        if onhost::mounted_at(&dir)?.is_some_and(|mounted| mounted.is_ours()) {
            return Err(Error::DirTaken { dir });
        }
        let failed = || Error::io(dir.display().to_string());
        std::fs::create_dir_all(&dir).map_err(failed())?;
        if std::fs::read_dir(&dir).map_err(failed())?.next().is_some() {
            return refuse("is not empty");
        }
        Ok(dir)
    }

    fn record_mount(
        &self,
        event: JournalEvent,
        vault: VaultId,
        dir: &Path,
        outcome: serde_json::Value,
    ) -> Result<()> {
        self.inner.vaults.record(NewJournalEntry {
            vault: Some(vault),
            exec: None,
            principal: self.principal(),
            operation: event.into(),
            details: json!({ "dir": dir.display().to_string(), "outcome": outcome }),
        })?;
        Ok(())
    }
}

impl Runtime {
    /// Unmounts all there is, whoever uses it, before the daemon ends.
    pub(crate) fn close_windows(&self) {
        for window in lock(&self.inner.windows).drain(..) {
            take_away(&window.info.dir);
            window.end();
        }
    }

    /// Looks after a mount for as long as there is one: it may be due for a commit, or be gone.
    fn tend_in_background(&self, vault: VaultId) {
        let inner = Arc::downgrade(&self.inner);
        // Without a thread it is committed by whoever looks at it, and when it is unmounted.
        let _ = in_background("mount", move || {
            loop {
                std::thread::sleep(TEND_EVERY);
                let Some(inner) = inner.upgrade() else { return };
                if !(Runtime { inner }).tend(vault) {
                    return;
                }
            }
        });
    }

    /// Commits a vault's mount when it is time to. False when there is none any more.
    pub(crate) fn tend(&self, vault: VaultId) -> bool {
        // A vault that was deleted meanwhile has no slot, and must not get another.
        let slot = self.slot_of(vault);
        slot.is_some_and(|slot| slot.tend(self))
    }
}

const TEND_EVERY: Duration = Duration::from_millis(500);

fn driver(asked: Option<MountDriver>) -> Result<MountDriver> {
    let root = rustix::process::geteuid().is_root();
    match asked {
        Some(MountDriver::Overlay) if !root => Err(Error::Invalid {
            what: "driver",
            reason: "only root can put an overlay where all programs see it; use fuse".into(),
        }),
        Some(driver) => Ok(driver),
        // Commands can run beside it.
        None => Ok(MountDriver::Fuse),
    }
}
