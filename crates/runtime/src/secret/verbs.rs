//! Verbs on secrets. All of them are the owner's, and none gives a value.

use avfs_vault::{JournalEvent, Time};
use serde_json::{Value, json};

use super::known::Stored;
use super::model::{NewSecret, Secret, SecretName, invalid};
use crate::Result;
use crate::error::SecretError;
use crate::runtime::lock;
use crate::session::Session;

/// Secrets of one home.
const SECRETS_MAX: usize = 64;
/// Bytes of all sealed values together, which bounds the memory that masking needs.
const SEALED_MAX: usize = 96 << 10;

/// A secret without its value.
#[derive(Debug, Clone)]
pub struct SecretInfo {
    pub secret: Secret,
    /// Whether the key opens its value; not so in a copied home.
    pub opens: bool,
}

impl Session {
    /// Sets a secret, or replaces it. Commands that run have it at once.
    pub fn secret_set(&self, new: &NewSecret) -> Result<SecretInfo> {
        self.govern("a secret")?;
        let secret = Secret::of(new, Time::now().secs)?;
        let _alone = lock(&self.inner.secrets.changing);
        let mut stored = self.stored_secrets()?.to_vec();
        let sealed = self.inner.secrets.key.read_or_make()?;
        let sealed = sealed.seal(&secret, &new.value)?;
        stored.retain(|other| other.secret.name != secret.name);
        stored.push(Stored {
            secret: secret.clone(),
            sealed,
        });
        stored.sort_by(|one, other| one.secret.name.cmp(&other.secret.name));
        let bytes: usize = stored.iter().map(|it| it.sealed.len()).sum();
        if stored.len() > SECRETS_MAX || bytes > SEALED_MAX {
            return Err(invalid(format!(
                "there is room for {SECRETS_MAX} of them, and for {SEALED_MAX} bytes of all sealed values"
            )));
        }
        let event = (self.principal(), JournalEvent::SecretSet, told(&secret));
        self.store_secrets(stored, event)?;
        self.inner.networks.refresh_all()?;
        Ok(SecretInfo {
            secret,
            opens: true,
        })
    }

    /// All secrets, in the order of their names.
    pub fn secret_list(&self) -> Result<Vec<SecretInfo>> {
        self.govern("secrets")?;
        let stored = self.stored_secrets()?;
        let key = match stored.is_empty() {
            true => None,
            false => self.inner.secrets.key.read().ok(),
        };
        let info = |Stored { secret, sealed }: &Stored| SecretInfo {
            secret: secret.clone(),
            opens: key.iter().any(|key| key.open(secret, sealed).is_ok()),
        };
        Ok(stored.iter().map(info).collect())
    }

    /// Removes a secret. Requests of commands that run do not get it any more.
    pub fn secret_remove(&self, name: &SecretName) -> Result<Secret> {
        self.govern("a secret")?;
        let _alone = lock(&self.inner.secrets.changing);
        let mut stored = self.stored_secrets()?.to_vec();
        let place = stored.iter().position(|it| it.secret.name == *name);
        let missing = || SecretError::NotFound {
            name: name.to_string(),
        };
        let Stored { secret, .. } = stored.remove(place.ok_or_else(missing)?);
        let event = (self.principal(), JournalEvent::SecretRemove, told(&secret));
        self.store_secrets(stored, event)?;
        self.inner.networks.refresh_all()?;
        Ok(secret)
    }
}

/// What the journal says of it.
fn told(secret: &Secret) -> Value {
    json!({
        "secret": secret.name,
        "hosts": secret.hosts,
        "header": secret.form.name(),
        "plain_http": secret.plain_http,
        "vaults": secret.vaults,
    })
}
