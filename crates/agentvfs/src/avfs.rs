//! A home with its vaults.

use crate::builder::Builder;
use crate::error::Result;
use crate::face::Face;
use crate::vault::Vault;
use avfs_api::wire::{
    CURRENT, DeletedVaultItem, Operation, ProgressEvent, VaultCreate, VaultInfo, VaultItem,
    VaultList, VaultListDeleted, VaultUndelete,
};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A home with its vaults. Cheap to clone; every method may be called from any thread.
#[derive(Clone)]
pub struct Avfs {
    pub(crate) face: Arc<Face>,
}

impl fmt::Debug for Avfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let face = match &*self.face {
            Face::Daemon(_) => "connected",
            Face::Embedded(_) => "embedded",
        };
        f.debug_tuple("Avfs").field(&face).finish()
    }
}

impl Avfs {
    pub(crate) fn new(face: Face) -> Avfs {
        Avfs {
            face: Arc::new(face),
        }
    }

    /// Connects to the daemon of this user, which is started if need be. The environment says which home and in whose
    /// name, as for the command line: `AVFS_HOME`, `AVFS_CLASS`, `AVFS_AGENT`.
    pub fn connect() -> Result<Avfs> {
        Builder::default().connect()
    }

    /// Opens a home in this process, without a daemon. The directory is made if it is missing. When the last handle of it
    /// is dropped, running commands are ended and what they wrote is committed.
    pub fn embedded(home: impl Into<PathBuf>) -> Result<Avfs> {
        Builder::default().home(home).embedded()
    }

    /// Says more than the two above: which home, which program, which agent.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A vault by its name; an error of kind `NotFound` if there is none.
    pub fn vault(&self, name: impl AsRef<str>) -> Result<Vault> {
        let details = self.face.call(name.as_ref(), &VaultInfo {})?;
        Ok(self.named(details.item.name))
    }

    /// The vault that is current for the command line.
    pub fn current_vault(&self) -> Result<Vault> {
        self.vault(CURRENT)
    }

    /// Makes an empty vault.
    pub fn create_vault(&self, name: impl Into<String>) -> Result<Vault> {
        let created = self.ask(&VaultCreate::named(name))?;
        Ok(self.named(created.created))
    }

    /// All vaults.
    pub fn vaults(&self) -> Result<Vec<VaultItem>> {
        Ok(self.ask(&VaultList::default())?.vaults)
    }

    /// Vaults that were deleted and can be had back.
    pub fn deleted_vaults(&self) -> Result<Vec<DeletedVaultItem>> {
        Ok(self.ask(&VaultListDeleted::default())?.vaults)
    }

    /// Brings a deleted vault back under the name it had.
    pub fn undelete_vault(&self, name: impl Into<String>) -> Result<Vault> {
        let back = self.ask(&VaultUndelete {
            name: name.into(),
            to: None,
        })?;
        Ok(self.named(back.undeleted))
    }

    /// Brings a deleted vault back under another name.
    pub fn undelete_vault_as(
        &self,
        name: impl Into<String>,
        new_name: impl Into<String>,
    ) -> Result<Vault> {
        let back = self.ask(&VaultUndelete {
            name: name.into(),
            to: Some(new_name.into()),
        })?;
        Ok(self.named(back.undeleted))
    }

    /// Asks for an operation that is about no single vault, with every option it has.
    ///
    /// Every operation of agentvfs is a request type in [`crate::types`]. Those that carry a stream of bytes are refused:
    /// there are methods for them.
    pub fn ask<O: Operation + Clone>(&self, request: &O) -> Result<O::Response> {
        self.face.call(CURRENT, request)
    }

    /// As [`Avfs::ask`], for one that may take long: `on_progress` hears how far it is.
    pub fn ask_watched<O: Operation + Clone + Sync>(
        &self,
        request: &O,
        mut on_progress: impl FnMut(ProgressEvent),
    ) -> Result<O::Response> {
        self.face.call_watched(CURRENT, request, &mut on_progress)
    }

    pub(crate) fn named(&self, name: String) -> Vault {
        Vault::new(Arc::clone(&self.face), name)
    }
}
