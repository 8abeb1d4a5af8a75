//! Commands beside a mount: their sandbox has the mount itself as `/`.
//!
//! There is one view and one page cache, so each side sees what the other has written as soon as it is written. The daemon,
//! which serves the mount, holds all writers still while it commits.

use std::sync::Arc;

use avfs_sandbox::Sandbox;
use avfs_vault::Vault;

use crate::live::engine::Engine;
use crate::live::mounts::HostMount;
use crate::live::network::LiveNetwork;
use crate::live::shape::{Access, Shape};
use crate::live::view::{LiveView, confinement, sandbox_plan};
use crate::live::view_backend::ViewBackend;
use crate::runtime::Runtime;
use crate::{Error, Result};

/// The sandbox in a mount. Commands that are still in it end when it is dropped.
pub(crate) struct Beside {
    pub sandbox: Arc<Sandbox>,
    /// None if it has the host's.
    pub network: Option<Arc<LiveNetwork>>,
    pub shape: Shape,
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.sandbox.kill();
    }
}

impl LiveView {
    /// Has a sandbox of this shape in the mount, unless it has one.
    pub fn open_beside(&mut self, runtime: &Runtime, vault: &Vault, shape: Shape) -> Result<()> {
        self.close_dead_beside();
        if self.beside.as_ref().is_some_and(|it| it.shape == shape) {
            return Ok(());
        }
        let ViewBackend::Mount(mount) = &self.backend else {
            return Ok(());
        };
        let opened = match self.beside_by(runtime, &self.engine, (vault, mount), shape) {
            Err(error) if self.engine.is_why(&error) => {
                self.engine = runtime.engine()?;
                let ViewBackend::Mount(mount) = &self.backend else {
                    return Err(error);
                };
                self.beside_by(runtime, &self.engine, (vault, mount), shape)?
            }
            opened => opened?,
        };
        self.beside = Some(opened);
        Ok(())
    }

    fn beside_by(
        &self,
        runtime: &Runtime,
        engine: &Engine,
        (vault, mount): (&Vault, &HostMount),
        shape: Shape,
    ) -> Result<Beside> {
        if let Some(path) = runtime.inner.host.lendings.first_of(shape.lent) {
            let mounted = mount.dir.display();
            return Err(Error::NotLent {
                path: path.display().to_string(),
                reason: format!(
                    "the vault is mounted at {mounted}, and a mount has no such directory"
                ),
            });
        }
        let networks = &runtime.inner.networks;
        let shown = networks.trust_beside(&self.layer)?;
        let shared = mount.share(runtime, confinement(shape))?;
        let access = Access::ReadWrite;
        let plan = sandbox_plan(runtime, vault, (shape, access), &self.layer, &shown)?;
        let held = vec![self.layer.hold()?];
        let sandbox = engine.keeper.open_sandbox_on(shared, &plan, held)?;
        let sandbox = Arc::new(sandbox);
        let network = networks.serve(vault.id, &sandbox, shown)?;
        Ok(Beside {
            sandbox,
            network,
            shape,
        })
    }

    /// Gives up the sandbox in a mount, if that has died.
    pub fn close_dead_beside(&mut self) {
        self.beside.take_if(|beside| !beside.sandbox.is_alive());
    }

    /// Of what kind the sandbox of its commands is; none if a mount has none.
    pub fn shape_of_commands(&self) -> Option<Shape> {
        match (&self.beside, &self.backend) {
            (Some(beside), _) => Some(beside.shape),
            (None, ViewBackend::Sandbox(_)) => Some(self.shape),
            (None, ViewBackend::Mount(_)) => None,
        }
    }

    /// The sandbox of its commands.
    pub fn sandbox(&self) -> Result<Arc<Sandbox>> {
        match (&self.beside, &self.backend) {
            (Some(beside), _) => Ok(beside.sandbox.clone()),
            (None, ViewBackend::Sandbox(sandbox)) => Ok(sandbox.clone()),
            (None, ViewBackend::Mount(_)) => Err(Error::Sandbox(avfs_sandbox::Error::SandboxGone)),
        }
    }
}
