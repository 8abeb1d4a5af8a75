//! Packs that this database did not write: those of a later state whose database is lost, or of another home.
//!
//! Nothing is appended to them, and nothing removes them, until a rebuild has taken in what they hold.

use std::collections::BTreeSet;

use super::record;
use super::store::{Inner, Store};
use crate::Result;
use crate::ledger::Durability;

impl Inner {
    /// To be called before anything is appended. Where nothing can be written, the packs are only left alone, and it is
    /// to be called once more when something can.
    pub fn find_foreign_packs(&self) -> Result<()> {
        let packs = self.engine.packs()?;
        let newest = packs.last().map_or(0, |(pack, _)| *pack);
        let last = self.database.read(|rows| rows.last_pack())?;
        // A database without this note is older than the note, and all packs are its own.
        let known = last.unwrap_or(newest);
        let foreign = packs
            .iter()
            .filter(|(pack, length)| *pack > known && *length > 0);
        let foreign: Vec<u32> = foreign.map(|(pack, _)| *pack).collect();
        for pack in &foreign {
            self.engine.seal(*pack)?;
        }
        let end = self.engine.end().pack;
        if last.is_some_and(|last| end <= last) || self.database.frozen().is_some() {
            return Ok(());
        }
        self.database.write(Durability::Relaxed, |transaction| {
            for pack in foreign {
                transaction.add_foreign_pack(pack)?;
            }
            transaction.begin_packs(known)?;
            transaction.own_packs(end)
        })
    }

    /// Foreign packs that hold something which is in no other place.
    pub fn foreign_packs(&self) -> Result<BTreeSet<u32>> {
        let mut foreign = BTreeSet::new();
        for pack in self.database.read(|rows| rows.foreign_packs())? {
            for (_, header) in record::scan(&self.engine.pack(pack)?) {
                if self.find(header.id)?.is_none() {
                    foreign.insert(pack);
                    break;
                }
            }
        }
        Ok(foreign)
    }
}

impl Store {
    /// How many packs there are that this database did not write.
    pub fn foreign_packs(&self) -> Result<usize> {
        Ok(self.inner.foreign_packs()?.len())
    }
}
