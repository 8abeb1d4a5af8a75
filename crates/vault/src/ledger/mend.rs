//! Damaged objects made whole: from other records of them, and from files that may hold the same bytes.

use std::collections::HashSet;
use std::fs::File;

use avfs_store::ObjectId;
use serde_json::json;

use crate::{Error, FsckReport, JournalEvent, NewJournalEntry, Principal, Result, Trees, Vaults};

/// Steps of reading one file. A hostile one has very many small pieces of data in it.
const STEPS_MAX: u32 = 1 << 20;

/// Looks for the bytes of damaged objects.
pub struct Mending {
    /// Stores nothing but what is wanted.
    trees: Trees,
}

impl Vaults {
    /// For what a check has found to be damaged or missing.
    pub fn mending(&self, report: &FsckReport) -> Result<Mending> {
        let mut wanted = HashSet::new();
        for damage in &report.damaged {
            // What is whole but makes no sense cannot be had in another way.
            if !self.store().is_intact(damage.object)? {
                wanted.insert(damage.object);
            }
        }
        Ok(Mending {
            trees: Trees::new(self.store().mending(wanted)),
        })
    }

    /// Writes down that so many objects were repaired, and so many were not.
    pub fn record_repair(&self, repaired: usize, left: usize, by: &Principal) -> Result<()> {
        let details = json!({ "repaired": repaired, "damaged": left });
        self.record(NewJournalEntry {
            vault: None,
            exec: None,
            principal: *by,
            operation: JournalEvent::Repair.into(),
            details,
        })?;
        Ok(())
    }
}

impl Mending {
    /// Looks through all packs and object files. Gives what was repaired.
    pub fn from_records(&self) -> Result<Vec<ObjectId>> {
        self.trees.store().salvage()?;
        Ok(self.trees.store().mended()?)
    }

    /// Looks through a file. One that cannot be read to its end repairs what it holds up to there.
    pub fn from_file(&self, file: &File) -> Result<Vec<ObjectId>> {
        let mut steps = 0;
        let read = self.trees.write_file(file, &mut |_| {
            steps += 1;
            match steps > STEPS_MAX {
                true => Err(Error::Read(std::io::ErrorKind::FileTooLarge.into())),
                false => Ok(()),
            }
        });
        match read {
            Ok(_) | Err(Error::Read(_)) => Ok(self.trees.store().mended()?),
            Err(error) => Err(error),
        }
    }
}
