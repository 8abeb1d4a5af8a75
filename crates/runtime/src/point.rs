//! A state of a vault as callers name it.

use std::str::FromStr;

use avfs_vault::{CheckpointName, RootId, Vault, VaultName};

use crate::gate::Verb;
use crate::session::Session;
use crate::{Error, Result};

/// A state to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffPoint {
    Head,
    /// What the vault was forked from, or its creation.
    Base,
    Checkpoint(CheckpointName),
    Version(u64),
    /// The head of another vault.
    Vault(VaultName),
}

impl FromStr for DiffPoint {
    type Err = Error;

    /// `HEAD`, `BASE`, `v3` or `@3`, `vault:NAME`, or the name of a checkpoint.
    fn from_str(text: &str) -> Result<DiffPoint> {
        let number = |digits: &str| digits.parse().ok().map(DiffPoint::Version);
        Ok(match text {
            "HEAD" => DiffPoint::Head,
            "BASE" => DiffPoint::Base,
            _ => {
                if let Some(name) = text.strip_prefix("vault:") {
                    return Ok(DiffPoint::Vault(name.parse()?));
                }
                let digits = text.strip_prefix('@').or_else(|| text.strip_prefix('v'));
                match digits.and_then(number) {
                    Some(version) => version,
                    None => DiffPoint::Checkpoint(text.parse()?),
                }
            }
        })
    }
}

impl std::fmt::Display for DiffPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DiffPoint::Head => f.write_str("HEAD"),
            DiffPoint::Base => f.write_str("BASE"),
            DiffPoint::Checkpoint(name) => name.fmt(f),
            DiffPoint::Version(number) => write!(f, "v{number}"),
            DiffPoint::Vault(name) => write!(f, "vault:{name}"),
        }
    }
}

/// A state that was found.
pub(crate) struct StateAt {
    pub root: RootId,
    pub version: Option<u64>,
}

impl Session {
    /// The root at a point of the vault's history, and its version where it is one.
    pub(crate) fn state_at(&self, vault: &Vault, point: &DiffPoint) -> Result<StateAt> {
        let vaults = &self.inner.vaults;
        let state = |root, version| StateAt { root, version };
        Ok(match point {
            DiffPoint::Head => {
                let vault = self.up_to_date(vault)?;
                state(vault.head, Some(vault.version))
            }
            DiffPoint::Base => match &vault.parent {
                Some(parent) => state(parent.root, None),
                None => state(vaults.trees().empty_root()?, None),
            },
            DiffPoint::Checkpoint(name) => {
                let root = vaults.checkpoint(vault.id, name)?.root;
                state(root, vaults.version_of(vault.id, root)?)
            }
            DiffPoint::Version(number) => {
                state(vaults.version(vault.id, *number)?.root, Some(*number))
            }
            DiffPoint::Vault(name) => {
                let vault = self.up_to_date(&self.named(name, Verb::Read)?)?;
                state(vault.head, Some(vault.version))
            }
        })
    }
}
