//! API keys: who holds which. A key is told once, when it is made; only its hash is kept, in `keys.json` of the home.
//!
//! The daemon is the only writer. The file is replaced as a whole, so that a crash leaves the old or the new.

use super::secret::{KeyId, Secret, from_hex, to_hex};
use super::{Identity, Refused, Source, check_scopes, class_of};
use crate::bounds::{KEYS_MAX, REQUESTS_PER_SECOND};
use crate::ops::failure::Failure;
use crate::table::{Class, Scope};
use avfs_runtime::{ErrorKind, PrincipalName, VaultPattern};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use tokio::sync::watch;

/// The file of a home, and the version of what is in it.
const FILE: &str = "keys.json";
const VERSION: u32 = 1;

/// One key, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Key {
    pub id: String,
    pub name: String,
    hash: String,
    pub scopes: Vec<String>,
    pub vaults: Vec<String>,
    /// Seconds since 1970, as all times here.
    pub created: i64,
    pub expires: Option<i64>,
    pub revoked: Option<i64>,
    /// Requests per second, where that is not the default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate: Option<u32>,
    /// Whether the user of its MCP client may approve.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub asks_user: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    keys: Vec<Key>,
}

/// What a new key is to be.
pub(crate) struct NewKey {
    pub name: PrincipalName,
    pub scopes: Vec<Scope>,
    pub vaults: Vec<VaultPattern>,
    pub expires: Option<i64>,
    pub rate: Option<u32>,
    pub asks_user: bool,
}

/// A key with the text that its holder shows. It is told once.
pub(crate) struct Made {
    pub key: Key,
    pub secret: String,
}

/// A key as it is looked up.
struct Entry {
    key: Key,
    id: KeyId,
    hash: blake3::Hash,
    identity: Identity,
}

/// The keys of a home.
pub(crate) struct Keys {
    file: PathBuf,
    entries: RwLock<Vec<Entry>>,
    /// Told of every change, so that whoever is connected with a key that is gone is let go.
    changed: watch::Sender<()>,
}

impl Keys {
    /// Reads the keys of a home. A file that makes no sense is an error: nobody is let in by guessing.
    pub fn open(home: &Path) -> Result<Keys, String> {
        let file = home.join(FILE);
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
        };
        let nonsense = |why: String| format!("{} makes no sense: {why}", file.display());
        let keys = match text.is_empty() {
            true => Vec::new(),
            false => {
                let stored = serde_json::from_slice::<Stored>(&text);
                let stored = stored.map_err(|error| nonsense(error.to_string()))?;
                if stored.version != VERSION {
                    return Err(nonsense(format!("it is of version {}", stored.version)));
                }
                stored.keys
            }
        };
        let entries = keys.into_iter().map(Entry::new);
        let entries = entries.collect::<Option<Vec<_>>>();
        let entries = entries.ok_or_else(|| nonsense("a key in it is not one".into()))?;
        Ok(Keys {
            file,
            entries: RwLock::new(entries),
            changed: watch::Sender::new(()),
        })
    }

    /// Whether any key could be used now.
    pub fn any_usable(&self, now: i64) -> bool {
        self.read(|entries| entries.iter().any(|entry| entry.state(now).is_ok()))
    }

    /// Whoever shows this text.
    pub fn identify(&self, text: &str, now: i64) -> Result<Identity, Refused> {
        let secret = Secret::parse(text).ok_or(Refused::Unknown)?;
        let hash = secret.hash();
        self.read(|entries| {
            let entry = entries.iter().find(|entry| entry.id == secret.id);
            let entry = entry.ok_or(Refused::Unknown)?;
            // The comparison of hashes takes the same time for all.
            if entry.hash != hash {
                return Err(Refused::Unknown);
            }
            entry.state(now)?;
            Ok(entry.identity.clone())
        })
    }

    /// Whether a key that was shown before is still good for the same.
    pub fn is_usable(&self, id: KeyId, now: i64) -> bool {
        self.read(|entries| {
            let entry = entries.iter().find(|entry| entry.id == id);
            entry.is_some_and(|entry| entry.state(now).is_ok())
        })
    }

    /// Told whenever a key is made, revoked or rotated.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub fn list(&self) -> Vec<Key> {
        self.read(|entries| entries.iter().map(|entry| entry.key.clone()).collect())
    }

    /// Makes a key. A name is a principal, whose work is in the journal: it is given once.
    pub fn create(&self, new: NewKey, now: i64) -> Result<Made, Failure> {
        check_scopes(&new.scopes)?;
        check_asking(&new.scopes, new.asks_user)?;
        let key = Key {
            id: String::new(),
            name: new.name.as_str().to_owned(),
            hash: String::new(),
            scopes: new.scopes.iter().map(|it| it.as_str().into()).collect(),
            vaults: new.vaults.iter().map(ToString::to_string).collect(),
            created: now,
            expires: new.expires,
            revoked: None,
            rate: new.rate.map(|rate| rate.max(1)),
            asks_user: new.asks_user,
        };
        let (made, entry) = fresh(key)?;
        self.change(|entries| {
            if entries.iter().any(|entry| entry.key.name == made.key.name) {
                let problem = format!("there is a key {} already", made.key.name);
                let hint = "`avfs key rotate` gives it another secret; a name is not given twice";
                return Err(Failure::new(ErrorKind::AlreadyExists, problem).hint(hint));
            }
            if entries.len() >= KEYS_MAX {
                let problem = format!("there are {KEYS_MAX} keys already");
                return Err(Failure::new(ErrorKind::Quota, problem));
            }
            entries.push(entry);
            Ok(())
        })?;
        Ok(made)
    }

    /// Gives a key another secret, and another end if there is one to say. The old one is worth nothing from now on.
    pub fn rotate(
        &self,
        name: &str,
        expires: Option<Option<i64>>,
        now: i64,
    ) -> Result<Made, Failure> {
        let mut key = self.find(name)?;
        key.expires = expires.unwrap_or(key.expires);
        key.created = now;
        key.revoked = None;
        let (made, entry) = fresh(key)?;
        self.replace(name, entry)?;
        Ok(made)
    }

    /// Takes a key back. Asked again, it stays as it was.
    pub fn revoke(&self, name: &str, now: i64) -> Result<Key, Failure> {
        let mut key = self.find(name)?;
        key.revoked.get_or_insert(now);
        let entry = Entry::new(key.clone());
        self.replace(name, entry.ok_or_else(|| no_key(name))?)?;
        Ok(key)
    }

    fn find(&self, name: &str) -> Result<Key, Failure> {
        let mut keys = self.list().into_iter();
        keys.find(|key| key.name == name)
            .ok_or_else(|| no_key(name))
    }

    fn replace(&self, name: &str, new: Entry) -> Result<(), Failure> {
        self.change(|entries| {
            let mut there = entries.iter_mut();
            let there = there.find(|entry| entry.key.name == name);
            *there.ok_or_else(|| no_key(name))? = new;
            Ok(())
        })
    }

    /// Changes the keys on disk, and then here. What cannot be written down has not happened.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Entry>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let before: Vec<Key> = entries.iter().map(|entry| entry.key.clone()).collect();
        let changed = change(&mut entries).and_then(|()| {
            let keys = entries.iter().map(|entry| entry.key.clone()).collect();
            write(&self.file, keys).map_err(|error| {
                let problem = format!("cannot write {}: {error}", self.file.display());
                Failure::new(ErrorKind::Unavailable, problem)
            })
        });
        if changed.is_err() {
            *entries = before.into_iter().filter_map(Entry::new).collect();
        } else {
            self.changed.send_replace(());
        }
        changed
    }

    fn read<T>(&self, look: impl FnOnce(&[Entry]) -> T) -> T {
        look(&self.entries.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entry {
    /// None when the key is not one that this program wrote.
    fn new(key: Key) -> Option<Entry> {
        let id = from_hex::<6>(&key.id)?;
        let hash = blake3::Hash::from_bytes(from_hex::<32>(&key.hash)?);
        let scopes = key.scopes.iter().map(|word| Scope::parse(word));
        let scopes = scopes.collect::<Option<Vec<_>>>()?;
        let vaults = key.vaults.iter().map(|text| VaultPattern::parse(text));
        let vaults = vaults.collect::<Result<Vec<_>, _>>().ok()?;
        check_scopes(&scopes).ok()?;
        check_asking(&scopes, key.asks_user).ok()?;
        let identity = Identity {
            name: key.name.parse().ok()?,
            scopes,
            vaults,
            source: Source::Key(id),
            rate: key.rate.unwrap_or(REQUESTS_PER_SECOND),
            asks_user: key.asks_user,
        };
        Some(Entry {
            key,
            id,
            hash,
            identity,
        })
    }

    fn state(&self, now: i64) -> Result<(), Refused> {
        match &self.key {
            key if key.revoked.is_some() => Err(Refused::Revoked),
            key if key.expires.is_some_and(|end| now >= end) => Err(Refused::Expired),
            _ => Ok(()),
        }
    }
}

/// Only an agent's client asks its user: others approve by themselves.
fn check_asking(scopes: &[Scope], asks_user: bool) -> Result<(), Failure> {
    match asks_user && class_of(scopes) == Class::Owner {
        true => Err(
            Failure::invalid("only a key of the agent class asks the user of its client")
                .hint("leave approve and admin out"),
        ),
        false => Ok(()),
    }
}

fn no_key(name: &str) -> Failure {
    Failure::new(ErrorKind::NotFound, format!("there is no key {name:?}"))
        .hint("`avfs key list` shows them")
}

/// The key with a new id and a new secret.
fn fresh(mut key: Key) -> Result<(Made, Entry), Failure> {
    let secret = Secret::fresh()?;
    key.id = to_hex(&secret.id);
    key.hash = secret.hash().to_hex().to_string();
    let entry = Entry::new(key.clone());
    let entry = entry.ok_or_else(|| Failure::new(ErrorKind::Bug, "a new key is not one"))?;
    let secret = secret.text();
    Ok((Made { key, secret }, entry))
}

fn write(file: &Path, keys: Vec<Key>) -> io::Result<()> {
    let stored = Stored {
        version: VERSION,
        keys,
    };
    let mut text = serde_json::to_vec_pretty(&stored)?;
    text.push(b'\n');
    let draft = file.with_extension("new");
    // One that a crash left behind may be of another mode.
    let _ = fs::remove_file(&draft);
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    out.write_all(&text)?;
    out.sync_all()?;
    fs::rename(&draft, file)?;
    match file.parent() {
        Some(home) => File::open(home)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
