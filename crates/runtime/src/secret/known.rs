//! The secrets of a home: as they are stored, as requests get them, and as they are masked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use avfs_net::Needles;
use avfs_policy::{HostList, HostRule};
use avfs_vault::{JournalEvent, Principal, VaultName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model::{Secret, SecretName, meet};
use super::seal::KeyFile;
use crate::error::SecretError;
use crate::runtime::{Runtime, lock};
use crate::{Error, Result};

/// The home's setting that has them.
const SETTING: &str = "secrets";
const VERSION: u32 = 1;

/// What a daemon knows of them.
pub(crate) struct Secrets {
    pub(super) key: KeyFile,
    /// Held while they change.
    pub(super) changing: Mutex<()>,
    /// None until somebody asks.
    stored: Mutex<Option<Arc<Vec<Stored>>>>,
    /// With the number of the look at registries that they are of.
    needles: Mutex<Option<(u64, Arc<Needles>)>>,
}

/// One as it is stored.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    pub secret: Secret,
    /// Its value.
    pub sealed: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct All {
    version: u32,
    secrets: Vec<Stored>,
}

/// A secret that a command's requests get.
pub(crate) struct Outgoing {
    pub name: SecretName,
    pub secret: avfs_net::Secret,
    /// The hosts whose TLS is opened for it.
    pub opened: Vec<HostRule>,
}

impl Secrets {
    pub fn new(key: Option<PathBuf>, home: &Path) -> Secrets {
        Secrets {
            key: KeyFile::new(key, home),
            changing: Mutex::default(),
            stored: Mutex::default(),
            needles: Mutex::default(),
        }
    }
}

impl Runtime {
    pub(super) fn stored_secrets(&self) -> Result<Arc<Vec<Stored>>> {
        let mut stored = lock(&self.inner.secrets.stored);
        if let Some(stored) = &*stored {
            return Ok(Arc::clone(stored));
        }
        let read = self.inner.vaults.note(SETTING)?;
        let read = read.map(|text| parse(&text)).transpose()?;
        let read = Arc::new(read.unwrap_or_default());
        Ok(Arc::clone(stored.insert(read)))
    }

    /// Stores all of them, together with the journal's entry of what changed.
    pub(super) fn store_secrets(
        &self,
        secrets: Vec<Stored>,
        event: (Principal, JournalEvent, Value),
    ) -> Result<()> {
        let all = All {
            version: VERSION,
            secrets,
        };
        let text = serde_json::to_string(&all).map_err(|_| SecretError::Stored)?;
        let text = (!all.secrets.is_empty()).then_some(text);
        self.inner
            .vaults
            .set_note(SETTING, text.as_deref(), event)?;
        *lock(&self.inner.secrets.stored) = Some(Arc::new(all.secrets));
        *lock(&self.inner.secrets.needles) = None;
        Ok(())
    }

    /// The secrets for requests of a vault's commands that may reach these hosts; none for any host.
    pub(crate) fn outgoing_secrets(
        &self,
        vault: &VaultName,
        hosts: Option<&HostList>,
    ) -> Result<Vec<Outgoing>> {
        let stored = self.stored_secrets()?;
        let is_for = |secret: &Secret| {
            let vaults = &secret.vaults;
            let by_vault = vaults.is_empty() || vaults.iter().any(|it| it.fits(vault));
            let mut rules = secret.hosts.rules().iter();
            by_vault && hosts.is_none_or(|hosts| rules.any(|rule| meet(rule, hosts.rules())))
        };
        let wanted: Vec<&Stored> = stored.iter().filter(|it| is_for(&it.secret)).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let key = self.inner.secrets.key.read()?;
        let outgoing = wanted.into_iter().map(|Stored { secret, sealed }| {
            let value = key.open(secret, sealed)?;
            Ok(Outgoing {
                name: secret.name.clone(),
                secret: secret.outgoing(&value)?,
                opened: secret.opened().into_iter().cloned().collect(),
            })
        });
        outgoing.collect()
    }

    /// What is masked in what commands write: the values of all secrets of the home, and credentials of registries. Those that
    /// cannot be opened, or have not been looked at, have been given to no command by this daemon.
    pub(crate) fn needles(&self) -> Arc<Needles> {
        let (looked, registries) = self.inner.registries.last();
        let mut needles = lock(&self.inner.secrets.needles);
        if let Some((_, needles)) = needles.as_ref().filter(|(of, _)| *of == looked) {
            return Arc::clone(needles);
        }
        let stored = self.stored_secrets().unwrap_or_default();
        let key = match stored.is_empty() {
            true => None,
            false => self.inner.secrets.key.read().ok(),
        };
        let opened = key.iter().flat_map(|key| {
            let open = |it: &Stored| key.open(&it.secret, &it.sealed).ok();
            stored.iter().filter_map(open)
        });
        let values: Vec<_> = opened.collect();
        // Only too many bytes make this fail, and setting a secret has a bound on them.
        let values = values.iter().map(|value| value.as_str());
        let all = values.chain(registries.iter().flat_map(|look| look.masked()));
        let made = Arc::new(Needles::new(all).unwrap_or_default());
        *needles = Some((looked, Arc::clone(&made)));
        made
    }
}

fn parse(text: &str) -> Result<Vec<Stored>> {
    let all: All = serde_json::from_str(text).map_err(|_| SecretError::Stored)?;
    match all.version {
        VERSION => Ok(all.secrets),
        _ => Err(Error::from(SecretError::Stored)),
    }
}
