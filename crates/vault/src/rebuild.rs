//! What packs alone tell: roots that no vault refers to become versions of a vault of their own.
//!
//! Names, checkpoints, settings and the journal were in the database; they are gone with it.

use std::collections::HashSet;

use avfs_store::{Durability, ObjectId};
use serde_json::json;

use crate::codec;
use crate::schema::ROOTS;
use crate::{Cause, NewVersion, Principal, Result, RootId, Time, VaultName, Vaults};

/// Objects that are looked at in one go.
const PAGE: usize = 10_000;
/// A root is its top directory's entry: nothing larger is one.
const ROOT_BYTES_MAX: u64 = 1 << 20;

/// What was found without the help of any row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Roots that no vault referred to, each now a version.
    pub roots: u64,
    /// The vault that has them, oldest first, the newest as its head.
    pub vault: Option<VaultName>,
}

impl Vaults {
    /// Makes a vault of all roots that nothing refers to, in the order of their times.
    pub fn recover_roots(&self, by: &Principal) -> Result<Recovered> {
        let _lease = self.lease();
        let _nothing_goes = self.shared().collecting();
        let roots = self.unknown_roots()?;
        if roots.is_empty() {
            return Ok(Recovered::default());
        }
        let count = roots.len() as u64;
        let name = self.unused_name()?;
        let vault = self.create(&name, by)?;
        let mut head = vault.head;
        for (_, root) in roots {
            let version = NewVersion {
                by: *by,
                exec: None,
                cause: Cause::Recovered,
                details: json!({}),
            };
            self.publish(vault.id, head, root, version)?;
            head = root;
        }
        // All of it lasts before anybody relies on it.
        self.store()
            .write(Durability::Full, |_| Ok::<_, crate::Error>(()))?;
        Ok(Recovered {
            roots: count,
            vault: Some(name),
        })
    }

    fn unknown_roots(&self) -> Result<Vec<(Time, RootId)>> {
        let known = self.known_roots()?;
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.store().list(after, PAGE)?;
            let Some(last) = page.last() else {
                break;
            };
            after = Some(last.id);
            for object in page {
                if object.size > ROOT_BYTES_MAX || known.contains(&object.id) {
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
        Ok(found)
    }

    fn known_roots(&self) -> Result<HashSet<ObjectId>> {
        self.store().read(|connection| {
            let mut select = connection.prepare(ROOTS)?;
            let rows = select.query_map([], |row| row.get(2))?;
            let ids = rows.map(|id| id.map(ObjectId::from_bytes));
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }

    fn unused_name(&self) -> Result<VaultName> {
        for number in 1_u32.. {
            let name: VaultName = match number {
                1 => "recovered".parse()?,
                number => format!("recovered-{number}").parse()?,
            };
            match self.get(&name) {
                Err(crate::Error::VaultNotFound { .. }) => return Ok(name),
                found => drop(found?),
            }
        }
        unreachable!("there are fewer vaults than numbers")
    }
}
