//! The index made anew from the records themselves, when the database is lost or does not know all packs.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::files::Files;
use super::packs::sync_dir;
use super::record::{self, HEADER, Header};
use super::store::{DATABASE, Inner, Store, make_home, row};
use crate::engine::RecordLocation;
use crate::ledger::{Durability, ObjectRow};
use crate::{Error, ObjectId, Result};

/// The new database until it is whole.
const UNFINISHED: &str = "store.db.rebuild";

type Found = Vec<(ObjectId, ObjectRow)>;

impl Store {
    /// Makes a new database for a home that has lost its own, with every whole record in the index, and all that
    /// `fill` puts in, which is told how many those are. It takes the place of the old one, which is put aside, only when
    /// it is whole: until then nothing has changed, whatever happens. The home is opened anew after this.
    pub fn rebuild<T, E: From<Error>>(
        home: &Path,
        fill: impl FnOnce(&Store, u64) -> Result<T, E>,
    ) -> Result<T, E> {
        make_home(home)?;
        let unfinished = home.join(UNFINISHED);
        remove_database(&unfinished)?;
        let store = Store::opened(home, unfinished.clone(), Box::new(Files::open(home)?))?;
        let found = store.reindex()?;
        let value = fill(&store, found)?;
        store.inner.database.settle()?;
        drop(store);
        let sync = || File::open(&unfinished)?.sync_all();
        sync().map_err(Error::io("sync", &unfinished))?;
        put_aside(home)?;
        let database = home.join(DATABASE);
        std::fs::rename(&unfinished, &database).map_err(Error::io("rename", &unfinished))?;
        sync_dir(home)?;
        Ok(value)
    }

    /// Finds every record in the packs and object files again and indexes those that the index does not know, or knows to
    /// be damaged. Returns how many that were.
    pub fn reindex(&self) -> Result<u64> {
        let inner = &*self.inner;
        let mut rows = Found::new();
        for (pack, _) in inner.engine.packs()? {
            rows.extend(inner.records_of(pack)?);
        }
        for (id, length) in inner.engine.kept()? {
            let record = inner
                .engine
                .read(id, RecordLocation::LOOSE, length)?
                .unwrap_or_default();
            let header = Header::decode(&record);
            let whole = header.filter(|h| h.stored == (record.len() - HEADER) as u64);
            rows.extend(whole.map(|h| (id, row(RecordLocation::LOOSE, h))));
        }
        inner.keep_unknown(&mut rows)?;
        self.write(Durability::Full, |transaction| {
            // All that they hold is in the index now.
            transaction.adopt_foreign_packs()?;
            transaction.add_objects(&mut rows)
        })
    }

    /// Indexes what packs hold that this database did not write, as far as it is new. Until `adopt` they stay foreign.
    pub fn take_in(&self) -> Result<Vec<ObjectId>> {
        let inner = &*self.inner;
        let mut rows = Found::new();
        for pack in inner.foreign_packs()? {
            rows.extend(inner.records_of(pack)?);
        }
        inner.keep_unknown(&mut rows)?;
        self.write(Durability::Full, |transaction| {
            transaction.add_objects(&mut rows)
        })?;
        Ok(rows.into_iter().map(|(id, _)| id).collect())
    }

    /// What was taken in is referred to now: those packs are like all others.
    pub fn adopt(&self) -> Result<()> {
        self.write(Durability::Full, |transaction| {
            transaction.adopt_foreign_packs()
        })
    }
}

impl Inner {
    fn records_of(&self, pack: u32) -> Result<Found> {
        let found = record::scan(&self.engine.pack(pack)?).into_iter();
        let placed = |(offset, header): (u64, Header)| {
            (header.id, row(RecordLocation { pack, offset }, header))
        };
        Ok(found.map(placed).collect())
    }

    /// Where the index has a record already, that one counts: leases go by where it is.
    fn keep_unknown(&self, rows: &mut Found) -> Result<()> {
        let mut failed = Ok(());
        rows.retain(|(id, _)| match self.find(*id) {
            Ok(found) => found.is_none() || self.damaged.contains(*id),
            Err(error) => {
                failed = Err(error);
                false
            }
        });
        rows.sort_unstable_by_key(|(id, row)| (*id, row.pack, row.offset));
        rows.dedup_by_key(|(id, _)| *id);
        failed
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

fn remove_database(path: &Path) -> Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let path = with_suffix(path, suffix);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The log goes first: SQLite would write what it holds into any database of that name.
fn put_aside(home: &Path) -> Result<()> {
    let database = home.join(DATABASE);
    let mut lost = home.join("store.db.lost");
    let is_taken = |lost: &Path| ["", "-wal"].iter().any(|it| with_suffix(lost, it).exists());
    for number in 2.. {
        if !is_taken(&lost) {
            break;
        }
        lost = home.join(format!("store.db.lost-{number}"));
    }
    for suffix in ["-wal", "-shm", ""] {
        let path = with_suffix(&database, suffix);
        match std::fs::rename(&path, with_suffix(&lost, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("rename", path)(error));
            }
            _ => {}
        }
    }
    sync_dir(home)
}
