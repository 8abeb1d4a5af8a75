//! Checking: every stored byte against its hash, every reference against what is stored.

use avfs_store::{ObjectId, Store};

use super::sightings::{States, all_states, damages, sight};
use crate::tree::check::{Check, Contents, Problems};
use crate::{JournalCheck, Result, VaultName, VaultPath, Vaults};

/// What a check of everything found.
#[derive(Clone, Debug)]
pub struct FsckReport {
    pub objects: u64,
    /// Of their content, before compression.
    pub bytes: u64,
    /// Different roots that were walked.
    pub roots: u64,
    /// Objects that are damaged or missing, each with where that matters.
    pub damaged: Vec<Damage>,
    /// What the database itself complains of.
    pub database: Vec<String>,
    /// None when it cannot be read.
    pub journal: Option<JournalCheck>,
}

/// An object that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub object: ObjectId,
    pub problem: String,
    /// Empty when nothing refers to it.
    pub seen: Vec<Sighting>,
}

/// A path that a damaged object concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub vault: VaultName,
    pub path: VaultPath,
    /// The states of the vault in which it does: `head`, `v3`, `checkpoint NAME`…
    pub states: Vec<String>,
}

impl FsckReport {
    pub fn is_clean(&self) -> bool {
        let intact = matches!(self.journal, Some(JournalCheck::Intact { .. }));
        self.damaged.is_empty() && self.database.is_empty() && intact
    }
}

impl Vaults {
    /// Reads everything there is. Others may write meanwhile; nothing is removed.
    pub fn fsck(&self) -> FsckReport {
        let _nothing_goes = self.shared().collecting();
        let mut report = FsckReport {
            objects: 0,
            bytes: 0,
            roots: 0,
            damaged: Vec::new(),
            database: Vec::new(),
            journal: None,
        };
        // A database that cannot be read is a finding like any other; the rest is still looked at.
        let problems = self.store().check_database();
        report.database = problems.unwrap_or_else(|error| vec![error.to_string()]);
        match self.verify_journal() {
            Ok(journal) => report.journal = Some(journal),
            Err(error) => report.database.push(format!("journal: {error}")),
        }
        let mut problems = Problems::new();
        if let Err(error) = check_objects(self.store(), &mut problems, &mut report) {
            report.database.push(format!("objects: {error}"));
        }
        let states = self.store().read(all_states).unwrap_or_else(|error| {
            report.database.push(format!("vaults: {error}"));
            States::new()
        });
        report.roots = states.len() as u64;
        let mut check = Check::new(self.trees(), Contents::InIndex, problems);
        let sightings = sight(&mut check, &states);
        report.damaged = damages(check.problems, sightings);
        report.database.sort();
        report.database.dedup();
        report
    }
}

/// Verifies every object that the index knows.
fn check_objects(store: &Store, problems: &mut Problems, report: &mut FsckReport) -> Result<()> {
    for page in store.pages() {
        for stored in page? {
            report.objects += 1;
            report.bytes += stored.size;
            match store.verify(stored.id) {
                Ok(()) => {}
                Err(avfs_store::Error::Corrupt { id, reason }) => {
                    problems.insert(id, reason);
                }
                Err(error @ avfs_store::Error::Io { .. }) => {
                    problems.insert(stored.id, error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
