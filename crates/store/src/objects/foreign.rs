//! Packs that this database did not write: those of a later state whose database is lost, or of another home.
//!
//! Nothing is appended to them, and nothing removes them, until a rebuild has taken in what they hold.

use std::collections::BTreeSet;

use crate::damage::has_table;
use rusqlite::{OptionalExtension, Transaction};

use crate::index::own_packs;
use crate::store::Inner;
use crate::{Durability, Error, Result, Store, record};

impl Inner {
    /// To be called before anything is appended. Where nothing can be written, the packs are only left alone, and it is
    /// to be called once more when something can.
    pub fn find_foreign_packs(&self) -> Result<()> {
        let packs = self.engine.packs()?;
        let newest = packs.last().map_or(0, |(pack, _)| *pack);
        let last: Option<u32> = self.database.read(|connection| {
            if !has_table(connection, "last_pack")? {
                return Ok(None);
            }
            let mut select = connection.prepare("SELECT pack FROM last_pack")?;
            Ok::<_, Error>(select.query_row([], |row| row.get(0)).optional()?)
        })?;
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
                let sql = "INSERT OR IGNORE INTO foreign_pack (pack) VALUES (?1)";
                transaction.execute(sql, [pack])?;
            }
            let sql = "INSERT OR IGNORE INTO last_pack (one, pack) VALUES (1, ?1)";
            transaction.execute(sql, [known])?;
            own_packs(transaction, end)
        })
    }

    /// Foreign packs that hold something which is in no other place.
    pub fn foreign_packs(&self) -> Result<BTreeSet<u32>> {
        let listed: Vec<u32> = self.database.read(|connection| {
            if !has_table(connection, "foreign_pack")? {
                return Ok(Vec::new());
            }
            let mut select = connection.prepare("SELECT pack FROM foreign_pack")?;
            let rows = select.query_map([], |row| row.get(0))?;
            Ok::<_, Error>(rows.collect::<Result<_, _>>()?)
        })?;
        let mut foreign = BTreeSet::new();
        for pack in listed {
            for (_, header) in record::scan(&self.engine.pack(pack)?) {
                if self.find(header.id)?.is_none() {
                    foreign.insert(pack);
                    break;
                }
            }
        }
        Ok(foreign)
    }

    /// All that they hold is in the index now.
    pub fn adopt_foreign_packs(&self, transaction: &Transaction<'_>) -> Result<()> {
        transaction.execute("DELETE FROM foreign_pack", [])?;
        Ok(())
    }
}

impl Store {
    /// How many packs there are that this database did not write.
    pub fn foreign_packs(&self) -> Result<usize> {
        Ok(self.inner.foreign_packs()?.len())
    }
}
