//! Vaults by name: each change is one transaction together with its journal entry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use avfs_store::rusqlite::{self, Connection, OptionalExtension, Row, ToSql, Transaction};
use avfs_store::{Durability, Lease, Store, StoreStats, WayOut};
use serde_json::{Value, json};

use crate::holds::Holds;
use crate::schema::{self, count, optional_count, root, text, time};
use crate::{
    Beside, Cause, Error, ExecId, Lineage, NewJournalEntry, NewVersion, Principal, Quota, Result,
    RootId, Time, Trees, Vault, VaultId, VaultName, Version, journal, settings,
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
        schema::migrate(&store)?;
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
            let others = "SELECT count(*) FROM vault WHERE deleted_name IS NULL";
            if transaction.query_row(others, [], |row| row.get::<_, i64>(0))? == 1 {
                make_current(transaction, vault.id, by)?;
            }
            let details = json!({ "name": name.as_str(), "root": head.to_string() });
            journal::append(transaction, event(vault.id, *by, "vault.create", details))?;
            Ok(vault)
        })
    }

    /// Sorted by name.
    pub fn list(&self) -> Result<Vec<Vault>> {
        self.store().read(|connection| {
            let mut select = connection
                .prepare_cached("SELECT * FROM vault WHERE deleted_name IS NULL ORDER BY name")?;
            let rows = select.query_map([], vault_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn get(&self, name: &VaultName) -> Result<Vault> {
        self.store().read(|connection| by_name(connection, name))
    }

    pub fn by_id(&self, id: VaultId) -> Result<Vault> {
        self.store().read(|connection| by_id(connection, id))
    }

    /// The vault that `by` means when it names none: the one it chose or, for an agent that never chose, the owner's.
    pub fn current(&self, by: &Principal) -> Result<Option<Vault>> {
        self.store().read(|connection| {
            if let Some(own) = own_pointer(by) {
                let chose = "SELECT 1 FROM current_of WHERE principal = ?1";
                if connection.prepare_cached(chose)?.exists([&own])? {
                    let sql =
                        "SELECT vault.* FROM vault JOIN current_of ON vault.id = current_of.vault
                        WHERE principal = ?1";
                    return select_vault(connection, sql, [&own]);
                }
            }
            let sql = "SELECT vault.* FROM vault JOIN current ON vault.id = current.vault";
            select_vault(connection, sql, [])
        })
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
            newest_version(transaction, vault.id)?
        } else {
            self.check_stored(expected, new)?;
            self.check_quota(&vault, new)?;
            advance(transaction, &mut vault, new, by, exec, cause)?
        };
        let details = with_facts(details, &published);
        let operation = cause.as_str();
        journal::append(
            transaction,
            NewJournalEntry {
                exec,
                ..event(vault.id, by, operation, details)
            },
        )?;
        Ok(published)
    }

    /// Newest first.
    pub fn versions(&self, vault: VaultId, limit: usize) -> Result<Vec<Version>> {
        self.store().read(|connection| {
            by_id(connection, vault)?;
            let sql = "SELECT * FROM version WHERE vault = ?1 ORDER BY number DESC LIMIT ?2";
            let mut select = connection.prepare_cached(sql)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = select.query_map((vault.as_bytes(), limit), version_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
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
    operation: &str,
    details: Value,
) -> NewJournalEntry {
    let operation = operation.to_owned();
    NewJournalEntry {
        vault: Some(vault),
        exec: None,
        principal,
        operation,
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
    let insert = "INSERT INTO vault
        (id, name, head, version, parent, parent_name, parent_root, secs, nanos,
         max_bytes, max_files, max_file_bytes, made_by)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let parent = vault.parent.as_ref();
    let limit = |limit: Option<u64>| limit.map(|limit| limit as i64);
    transaction.prepare_cached(insert)?.execute((
        vault.id.as_bytes(),
        vault.name.as_str(),
        vault.head.object().as_bytes(),
        vault.version as i64,
        parent.map(|lineage| *lineage.vault.as_bytes()),
        parent.map(|lineage| lineage.name.as_str()),
        parent.map(|lineage| *lineage.root.object().as_bytes()),
        vault.created.secs,
        vault.created.nanos,
        limit(vault.quota.bytes),
        limit(vault.quota.files),
        limit(vault.quota.file_bytes),
        vault.made_by.to_string(),
    ))?;
    let (number, root, time) = (vault.version, vault.head, vault.created);
    insert_version(
        transaction,
        vault.id,
        &Version {
            number,
            root,
            by: vault.made_by,
            exec: None,
            cause,
            time,
        },
    )
}

/// Refuses a name that a vault has.
pub fn check_free(connection: &Connection, name: &VaultName) -> Result<()> {
    let taken = "SELECT 1 FROM vault WHERE name = ?1";
    match connection.prepare_cached(taken)?.exists([name.as_str()])? {
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
    let update = "UPDATE vault SET head = ?2, version = ?3 WHERE id = ?1";
    let values = (vault.id.as_bytes(), root.object(), version.number as i64);
    transaction
        .prepare_cached(update)?
        .execute((values.0, values.1.as_bytes(), values.2))?;
    insert_version(transaction, vault.id, &version)?;
    (vault.head, vault.version) = (root, version.number);
    Ok(version)
}

fn insert_version(transaction: &Transaction<'_>, vault: VaultId, version: &Version) -> Result<()> {
    let insert = "INSERT INTO version (vault, number, root, principal, exec, cause, secs, nanos)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    transaction.prepare_cached(insert)?.execute((
        vault.as_bytes(),
        version.number as i64,
        version.root.object().as_bytes(),
        version.by.to_string(),
        version.exec.map(|id| *id.as_bytes()),
        version.cause.as_str(),
        version.time.secs,
        version.time.nanos,
    ))?;
    Ok(())
}

fn newest_version(connection: &Connection, vault: VaultId) -> Result<Version> {
    let sql = "SELECT * FROM version WHERE vault = ?1 ORDER BY number DESC LIMIT 1";
    Ok(connection
        .prepare_cached(sql)?
        .query_row([vault.as_bytes()], version_row)?)
}

/// Where a principal's choice is kept; the owner's is in a table of its own.
fn own_pointer(by: &Principal) -> Option<String> {
    by.is_agent().then(|| by.to_string())
}

pub fn make_current(transaction: &Transaction<'_>, vault: VaultId, by: &Principal) -> Result<()> {
    if let Some(own) = own_pointer(by) {
        let sql = "INSERT OR REPLACE INTO current_of (principal, vault) VALUES (?1, ?2)";
        let values = (own, vault.as_bytes());
        transaction.prepare_cached(sql)?.execute(values)?;
        return Ok(());
    }
    let sql = "INSERT INTO current (one, vault) VALUES (1, ?1)
        ON CONFLICT (one) DO UPDATE SET vault = excluded.vault";
    transaction
        .prepare_cached(sql)?
        .execute([vault.as_bytes()])?;
    Ok(())
}

pub fn by_name(connection: &Connection, name: &VaultName) -> Result<Vault> {
    let sql = "SELECT * FROM vault WHERE name = ?1";
    select_vault(connection, sql, [&name.as_str() as &dyn ToSql])?
        .ok_or_else(|| Error::VaultNotFound { name: name.clone() })
}

pub fn by_id(connection: &Connection, id: VaultId) -> Result<Vault> {
    let sql = "SELECT * FROM vault WHERE id = ?1 AND deleted_name IS NULL";
    select_vault(connection, sql, [&id.as_bytes() as &dyn ToSql])?
        .ok_or(Error::VaultIdNotFound { id })
}

fn select_vault<const N: usize>(
    connection: &Connection,
    sql: &str,
    values: [&dyn ToSql; N],
) -> Result<Option<Vault>> {
    let mut select = connection.prepare_cached(sql)?;
    Ok(select.query_row(&values[..], vault_row).optional()?)
}

pub fn vault_row(row: &Row<'_>) -> rusqlite::Result<Vault> {
    let parent = match row.get::<_, Option<[u8; 16]>>("parent")? {
        None => None,
        Some(id) => Some(Lineage {
            vault: VaultId::from_bytes(id),
            name: text(row, "parent_name")?,
            root: root(row, "parent_root")?,
        }),
    };
    // A deleted vault is called by the name it had.
    let name = match row.get::<_, Option<String>>("deleted_name")? {
        Some(_) => "deleted_name",
        None => "name",
    };
    let quota = Quota {
        bytes: optional_count(row, "max_bytes")?,
        files: optional_count(row, "max_files")?,
        file_bytes: optional_count(row, "max_file_bytes")?,
    };
    Ok(Vault {
        id: VaultId::from_bytes(row.get("id")?),
        name: text(row, name)?,
        quota,
        head: root(row, "head")?,
        version: count(row, "version")?,
        parent,
        created: time(row)?,
        made_by: text(row, "made_by")?,
    })
}

pub fn version_row(row: &Row<'_>) -> rusqlite::Result<Version> {
    Ok(Version {
        number: count(row, "number")?,
        root: root(row, "root")?,
        by: text(row, "principal")?,
        exec: row
            .get::<_, Option<[u8; 16]>>("exec")?
            .map(ExecId::from_bytes),
        cause: text(row, "cause")?,
        time: time(row)?,
    })
}
