//! Vaults by name: each change is one transaction together with its journal entry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use avfs_store::ledger::{Rows, Transaction, VaultRow};
use avfs_store::{Durability, Lease, Store, StoreStats, WayOut};
use serde_json::{Value, json};

use super::holds::Holds;
use super::rows::values;
use super::{journal, settings};
use crate::{
    Beside, Cause, Error, ExecId, JournalEvent, Lineage, NewJournalEntry, NewVersion, Operation,
    Principal, Quota, Result, RootId, Time, Trees, Vault, VaultId, VaultName, Version,
};

/// A cheap handle on all vaults of a store.
#[derive(Clone)]
pub struct Vaults {
    trees: Trees,
    shared: Arc<Shared>,
}

/// What all handles have in common beside the trees.
#[derive(Default)]
pub struct Shared {
    pub holds: Arc<Holds>,
    /// Held by whoever removes objects, or must see none removed.
    collecting: Mutex<()>,
    beside: Mutex<HashMap<VaultId, Beside>>,
}

impl Shared {
    pub fn collecting(&self) -> MutexGuard<'_, ()> {
        self.collecting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub fn beside(&self) -> MutexGuard<'_, HashMap<VaultId, Beside>> {
        self.beside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vaults {
    /// Makes or migrates the tables.
    pub fn open(store: Store) -> Result<Vaults> {
        store.prepare_ledger()?;
        Ok(Vaults {
            trees: Trees::new(store),
            shared: Arc::default(),
        })
    }

    pub fn trees(&self) -> &Trees {
        &self.trees
    }

    pub fn stats(&self) -> Result<StoreStats> {
        Ok(self.store().stats()?)
    }

    /// An empty vault, with the settings and quota that new vaults begin with. The first one becomes current for
    /// whoever made it.
    pub fn create(&self, name: &VaultName, by: &Principal) -> Result<Vault> {
        self.store().write(Durability::Relaxed, |transaction| {
            // Inside, so that no sweep can come in between.
            let head = self.trees.empty_root()?;
            let mut vault = new_vault(name, head, None, by);
            vault.quota = settings::default_quota(transaction)?;
            insert_vault(transaction, &vault, Cause::Create)?;
            settings::inherit_defaults(transaction, vault.id)?;
            if transaction.count_vaults()? == 1 {
                make_current(transaction, vault.id, by)?;
            }
            let details = json!({ "name": name.as_str(), "root": head.to_string() });
            journal::append(
                transaction,
                event(vault.id, *by, JournalEvent::VaultCreate, details),
            )?;
            Ok(vault)
        })
    }

    /// Sorted by name.
    pub fn list(&self) -> Result<Vec<Vault>> {
        values(self.store().read(|rows| rows.vaults())?)
    }

    pub fn get(&self, name: &VaultName) -> Result<Vault> {
        self.store().read(|rows| by_name(rows, name))
    }

    pub fn by_id(&self, id: VaultId) -> Result<Vault> {
        self.store().read(|rows| by_id(rows, id))
    }

    /// The vault that `by` means when it names none: the one it chose or, for an agent that never chose, the owner's.
    pub fn current(&self, by: &Principal) -> Result<Option<Vault>> {
        let current = self.store().read(|rows| match own_pointer(by) {
            Some(own) if rows.has_chosen(&own)? => rows.current_of(&own),
            _ => rows.current(),
        })?;
        current.map(Vault::try_from).transpose()
    }

    pub fn set_current(&self, name: &VaultName, by: &Principal) -> Result<()> {
        self.store().write(Durability::Relaxed, |transaction| {
            make_current(transaction, by_name(transaction, name)?.id, by)
        })
    }

    /// Moves the head from `expected` to `new`, or fails with `Conflict` when it is elsewhere.
    /// When they are the same, only the journal entry is written and the newest version returned.
    pub fn publish(
        &self,
        vault: VaultId,
        expected: RootId,
        new: RootId,
        version: NewVersion,
    ) -> Result<Version> {
        self.store().write(Durability::Relaxed, |transaction| {
            self.publish_in(transaction, vault, expected, new, version)
        })
    }

    /// `publish` as part of a larger transaction.
    pub(crate) fn publish_in(
        &self,
        transaction: &Transaction<'_>,
        vault: VaultId,
        expected: RootId,
        new: RootId,
        version: NewVersion,
    ) -> Result<Version> {
        let mut vault = by_id(transaction, vault)?;
        let NewVersion {
            by,
            exec,
            cause,
            details,
        } = version;
        vault.expect_head(expected)?;
        let published = if new == expected {
            newest_version(transaction, &vault)?
        } else {
            self.check_stored(expected, new)?;
            self.check_quota(&vault, new)?;
            advance(transaction, &mut vault, new, by, exec, cause)?
        };
        let details = with_facts(details, &published);
        journal::append(
            transaction,
            NewJournalEntry {
                exec,
                ..event(vault.id, by, cause, details)
            },
        )?;
        Ok(published)
    }

    /// Newest first.
    pub fn versions(&self, vault: VaultId, limit: usize) -> Result<Vec<Version>> {
        self.store().read(|rows| {
            by_id(rows, vault)?;
            values(rows.versions_before(vault.as_bytes(), u64::MAX, limit)?)
        })
    }

    /// Work that gets out of a full disk, which may use the reserve. It is tried again with more room.
    pub(crate) fn way_out<T>(&self, way: WayOut, work: impl FnMut() -> Result<T>) -> Result<T> {
        self.store().way_out(way, Error::is_full, work)
    }

    /// A transaction on such a way.
    pub(crate) fn freeing<T>(
        &self,
        way: WayOut,
        durability: Durability,
        mut f: impl FnMut(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.way_out(way, || self.store().write(durability, &mut f))
    }

    /// Keeps what is stored from now on, and not yet published, from being swept.
    pub fn lease(&self) -> Lease {
        self.store().lease()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn store(&self) -> &Store {
        self.trees.store()
    }

    /// Nothing may come to refer to a root that is not there, with all that it refers to.
    pub(crate) fn check_stored(&self, head: RootId, root: RootId) -> Result<()> {
        if self.store().any_sweep() {
            return self.trees.check_unswept(head, root);
        }
        match self.store().contains(root.object())? {
            true => Ok(()),
            false => Err(avfs_store::Error::Missing { id: root.object() }.into()),
        }
    }
}

impl Vault {
    pub(crate) fn expect_head(&self, expected: RootId) -> Result<()> {
        match self.head == expected {
            true => Ok(()),
            false => Err(Error::Conflict {
                expected,
                actual: self.head,
            }),
        }
    }
}

pub fn new_vault(name: &VaultName, head: RootId, parent: Option<Lineage>, by: &Principal) -> Vault {
    let (id, created) = (VaultId::new(), Time::now());
    Vault {
        id,
        name: name.clone(),
        head,
        version: 1,
        parent,
        created,
        quota: Quota::default(),
        made_by: *by,
    }
}

pub fn event(
    vault: VaultId,
    principal: Principal,
    operation: impl Into<Operation>,
    details: Value,
) -> NewJournalEntry {
    NewJournalEntry {
        vault: Some(vault),
        exec: None,
        principal,
        operation: operation.into(),
        details,
    }
}

/// The caller's details, with the version and root they led to.
fn with_facts(details: Value, version: &Version) -> Value {
    let mut facts = match details {
        Value::Object(map) => map,
        Value::Null => serde_json::Map::new(),
        other => serde_json::Map::from_iter([("details".to_owned(), other)]),
    };
    facts.insert("version".to_owned(), version.number.into());
    facts.insert("root".to_owned(), version.root.to_string().into());
    Value::Object(facts)
}

pub fn insert_vault(transaction: &Transaction<'_>, vault: &Vault, cause: Cause) -> Result<()> {
    check_free(transaction, &vault.name)?;
    transaction.add_vault(&VaultRow::from(vault))?;
    let (number, root, time) = (vault.version, vault.head, vault.created);
    let first = Version {
        number,
        root,
        by: vault.made_by,
        exec: None,
        cause,
        time,
    };
    Ok(transaction.add_version(vault.id.as_bytes(), &(&first).into())?)
}

/// Refuses a name that a vault has.
pub fn check_free(rows: &Rows<'_>, name: &VaultName) -> Result<()> {
    match rows.is_name_taken(name.as_str())? {
        true => Err(Error::VaultExists { name: name.clone() }),
        false => Ok(()),
    }
}

/// Gives `vault` a new head and the version that tells of it.
pub fn advance(
    transaction: &Transaction<'_>,
    vault: &mut Vault,
    root: RootId,
    by: Principal,
    exec: Option<ExecId>,
    cause: Cause,
) -> Result<Version> {
    let version = Version {
        number: vault.version + 1,
        root,
        by,
        exec,
        cause,
        time: Time::now(),
    };
    let (id, from) = (vault.id.as_bytes(), vault.head);
    if !transaction.move_head(id, from.object(), root.object(), version.number)? {
        let actual = by_id(transaction, vault.id)?.head;
        let expected = from;
        return Err(Error::Conflict { expected, actual });
    }
    transaction.add_version(id, &(&version).into())?;
    (vault.head, vault.version) = (root, version.number);
    Ok(version)
}

fn newest_version(rows: &Rows<'_>, vault: &Vault) -> Result<Version> {
    let newest = rows.newest_version(vault.id.as_bytes())?;
    let newest = newest.ok_or_else(|| Error::Corrupt {
        what: format!("vault '{}' has no version", vault.name),
    })?;
    newest.try_into()
}

/// Where a principal's choice is kept; the owner's is in a table of its own.
fn own_pointer(by: &Principal) -> Option<String> {
    by.is_agent().then(|| by.to_string())
}

pub fn make_current(transaction: &Transaction<'_>, vault: VaultId, by: &Principal) -> Result<()> {
    match own_pointer(by) {
        Some(own) => transaction.set_current_of(&own, vault.as_bytes())?,
        None => transaction.set_current(vault.as_bytes())?,
    }
    Ok(())
}

pub fn by_name(rows: &Rows<'_>, name: &VaultName) -> Result<Vault> {
    match rows.vault_named(name.as_str())? {
        Some(found) => found.try_into(),
        None => Err(Error::VaultNotFound { name: name.clone() }),
    }
}

pub fn by_id(rows: &Rows<'_>, id: VaultId) -> Result<Vault> {
    match rows.vault(id.as_bytes())? {
        Some(found) => found.try_into(),
        None => Err(Error::VaultIdNotFound { id }),
    }
}
