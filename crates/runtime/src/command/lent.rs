//! What the host lends to the commands of a vault.

use std::path::{Path, PathBuf};

use avfs_sandbox::toolchain::Installed;
use avfs_vault::Vault;

use crate::live::lending::LendList;
use crate::session::Session;
use crate::{Error, Result};

/// What the commands of a vault get from the host, besides its system directories.
#[derive(Debug, Clone)]
pub struct VaultLent {
    /// Versions of tools.
    pub tools: Vec<Installed>,
    /// What the vault's settings say.
    pub directories: Vec<PathBuf>,
}

impl Session {
    /// What the host lends to the vault's commands.
    pub fn vault_lent(&self, vault: &Vault) -> Result<VaultLent> {
        let list = self.settings_of(vault)?.lend.unwrap_or_default();
        Ok(VaultLent {
            tools: self.inner.host.shims.versions(),
            directories: list.paths().map(PathBuf::from).collect(),
        })
    }

    /// The directories as they are now, if they may be lent. A mounted vault is written by its commands.
    pub(crate) fn lendable(&self, list: Option<LendList>) -> Result<Option<LendList>> {
        let Some(list) = list else {
            return Ok(None);
        };
        let list = list.resolved(self.inner.host.lendings.forbidden())?;
        for mount in self.mounts()? {
            let mut paths = list.paths();
            let touches = |path: &Path| path.starts_with(&mount.dir) || mount.dir.starts_with(path);
            if paths.any(touches) {
                return Err(Error::Invalid {
                    what: "setting",
                    reason: format!("lend: a vault is mounted at {}", mount.dir.display()),
                });
            }
        }
        Ok(Some(list))
    }
}
