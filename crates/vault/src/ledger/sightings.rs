//! Where damage matters: which paths of which states of which vaults.

use std::collections::{BTreeMap, HashMap};

use avfs_store::ObjectId;
use avfs_store::ledger::{RootKind, Rows};

use super::fsck::{Damage, Sighting};
use super::rows::values;
use crate::tree::check::{Check, Problems};
use crate::{Result, RootId, Vault, VaultId, VaultName, VaultPath};

pub type Sightings = BTreeMap<(ObjectId, VaultName, VaultPath), BTreeMap<usize, String>>;

/// Looks at all of `states`, and names the places of what is wrong.
pub fn sight(check: &mut Check<'_>, states: &States) -> Sightings {
    let mut sightings = Sightings::new();
    for (root, states) in states {
        if !check.root(*root) {
            continue;
        }
        for (object, path) in check.paths(*root) {
            for (order, vault, state) in states {
                let key = (object, vault.clone(), path.clone());
                let known = sightings.entry(key).or_default();
                known.insert(*order, state.clone());
            }
        }
    }
    sightings
}

pub fn damages(problems: Problems, sightings: Sightings) -> Vec<Damage> {
    let mut damages: BTreeMap<ObjectId, Damage> = BTreeMap::new();
    for (object, problem) in problems {
        let seen = Vec::new();
        damages.insert(
            object,
            Damage {
                object,
                problem,
                seen,
            },
        );
    }
    for ((object, vault, path), states) in sightings {
        if let Some(damage) = damages.get_mut(&object) {
            damage.seen.push(Sighting {
                vault,
                path,
                states: states.into_values().collect(),
            });
        }
    }
    damages.into_values().collect()
}

/// The order is that of the rows: heads, beginnings, versions, checkpoints.
pub type States = BTreeMap<RootId, Vec<(usize, VaultName, String)>>;

/// Every root that a row names, with all that it is called.
pub fn all_states(rows: &Rows<'_>) -> Result<States> {
    let vaults: Vec<Vault> = values(rows.vaults_and_deleted()?)?;
    let names: HashMap<VaultId, VaultName> = vaults
        .into_iter()
        .map(|vault| (vault.id, vault.name))
        .collect();
    let mut states = States::new();
    for (order, row) in rows.roots()?.into_iter().enumerate() {
        if let Some(name) = names.get(&VaultId::from_bytes(row.vault)) {
            let known = states.entry(RootId::new(row.root)).or_default();
            known.push((order, name.clone(), in_words(&row.kind)));
        }
    }
    Ok(states)
}

/// What a state is called in reports.
fn in_words(kind: &RootKind) -> String {
    match kind {
        RootKind::Head => "head".to_owned(),
        RootKind::Beginning => "beginning".to_owned(),
        RootKind::Version(number) => format!("v{number}"),
        RootKind::Checkpoint(name) => format!("checkpoint {name}"),
        RootKind::Import => "import".to_owned(),
        RootKind::Speculation => "speculation".to_owned(),
    }
}
