//! What packs alone tell: roots that no vault refers to become versions of a vault of their own.
//!
//! Names, checkpoints, settings and the journal were in the database; they are gone with it.

use std::collections::HashSet;
use std::path::Path;

use avfs_store::{Durability, ObjectId, Store};
use serde_json::{Value, json};

use crate::tree::check::{Check, Contents, Problems};
use crate::tree::codec;
use crate::{
    Cause, JournalEvent, NewJournalEntry, NewVersion, Principal, Result, RootId, VaultName, Vaults,
};

/// A root is its top directory's entry: nothing larger is one.
const ROOT_BYTES_MAX: u64 = 1 << 20;

/// What was found without the help of any row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The vault whose versions are the states that are whole, oldest first, the newest as its head.
    pub whole: Option<RecoveredVault>,
    /// The vault with the states of which something is missing: because it was damaged, or because it had been given
    /// up and partly removed.
    pub in_part: Option<RecoveredVault>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredVault {
    pub name: VaultName,
    pub states: u64,
}

/// What a rebuild brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Records that the index did not know.
    pub objects: u64,
    pub recovered: Recovered,
}

impl Vaults {
    /// Makes a new database for a home that has lost its own. The home is to be opened after it.
    pub fn rebuild(home: &Path, by: &Principal) -> Result<Rebuilt> {
        Store::rebuild(home, |store, objects| {
            let vaults = Vaults::open(store.clone())?;
            let recovered = vaults.recover_roots(None, by)?;
            let rebuilt = Rebuilt { objects, recovered };
            vaults.record_rebuild(&rebuilt, "database", by)?;
            Ok(rebuilt)
        })
    }

    /// Takes in packs that this database did not write.
    pub fn take_in_packs(&self, by: &Principal) -> Result<Rebuilt> {
        let _lease = self.lease();
        let nothing_goes = self.shared().collecting();
        let new: HashSet<ObjectId> = self.store().take_in()?.into_iter().collect();
        let recovered = self.recover_roots(Some(&new), by)?;
        self.store().adopt()?;
        drop(nothing_goes);
        let objects = new.len() as u64;
        let rebuilt = Rebuilt { objects, recovered };
        if objects > 0 {
            self.record_rebuild(&rebuilt, "packs", by)?;
        }
        Ok(rebuilt)
    }

    fn record_rebuild(&self, rebuilt: &Rebuilt, what: &str, by: &Principal) -> Result<()> {
        let vault = |it: &Option<RecoveredVault>| match it {
            Some(it) => json!({ "vault": it.name.as_str(), "states": it.states }),
            None => Value::Null,
        };
        let details = json!({
            "what": what,
            "objects": rebuilt.objects,
            "whole": vault(&rebuilt.recovered.whole),
            "in_part": vault(&rebuilt.recovered.in_part),
        });
        self.record(NewJournalEntry {
            vault: None,
            exec: None,
            principal: *by,
            operation: JournalEvent::Rebuild.into(),
            details,
        })?;
        Ok(())
    }

    /// Makes vaults of all roots that nothing refers to, in the order of their times; with `among`, of those.
    fn recover_roots(
        &self,
        among: Option<&HashSet<ObjectId>>,
        by: &Principal,
    ) -> Result<Recovered> {
        let mut check = Check::new(self.trees(), Contents::InIndex, Problems::new());
        let roots = self.unknown_roots(among)?;
        let (in_part, whole): (Vec<RootId>, _) = roots.into_iter().partition(|it| check.root(*it));
        let recovered = Recovered {
            whole: self.vault_of(whole, "recovered", by)?,
            in_part: self.vault_of(in_part, "recovered-in-part", by)?,
        };
        // All of it lasts before anybody relies on it.
        self.store()
            .write(Durability::Full, |_| Ok::<_, crate::Error>(()))?;
        Ok(recovered)
    }

    fn vault_of(
        &self,
        roots: Vec<RootId>,
        name: &str,
        by: &Principal,
    ) -> Result<Option<RecoveredVault>> {
        if roots.is_empty() {
            return Ok(None);
        }
        let states = roots.len() as u64;
        let name = self.unused_name(name)?;
        let vault = self.create(&name, by)?;
        let mut head = vault.head;
        for root in roots {
            let version = NewVersion {
                by: *by,
                exec: None,
                cause: Cause::Recovered,
                details: json!({}),
            };
            self.publish(vault.id, head, root, version)?;
            head = root;
        }
        Ok(Some(RecoveredVault { name, states }))
    }

    /// Oldest first.
    fn unknown_roots(&self, among: Option<&HashSet<ObjectId>>) -> Result<Vec<RootId>> {
        let mut known = self.known_roots()?;
        known.insert(self.trees().empty_root()?.object());
        let mut found = Vec::new();
        for page in self.store().pages() {
            for object in page? {
                let is_meant = among.is_none_or(|among| among.contains(&object.id));
                if !is_meant || object.size > ROOT_BYTES_MAX || known.contains(&object.id) {
                    continue;
                }
                // A damaged object is no root that anybody could use.
                let Ok(bytes) = self.store().get(object.id) else {
                    continue;
                };
                if let Some(record) = codec::decode_root(&bytes) {
                    let time = record.top.meta.mtime.max(record.top.meta.ctime);
                    found.push((time, RootId::new(object.id)));
                }
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, root)| root).collect())
    }

    fn known_roots(&self) -> Result<HashSet<ObjectId>> {
        let roots = self.store().read(|rows| rows.roots())?;
        Ok(roots.into_iter().map(|row| row.root).collect())
    }

    fn unused_name(&self, wanted: &str) -> Result<VaultName> {
        for number in 1_u32.. {
            let name: VaultName = match number {
                1 => wanted.parse()?,
                number => format!("{wanted}-{number}").parse()?,
            };
            match self.get(&name) {
                Err(crate::Error::VaultNotFound { .. }) => return Ok(name),
                found => drop(found?),
            }
        }
        unreachable!("there are fewer vaults than numbers")
    }
}
