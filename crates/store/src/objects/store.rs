//! The store: objects go in and come out by hash, and transactions make them last.

use std::collections::{HashMap, HashSet};
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Access, access};

use super::cache::Cache;
use super::damage::Damaged;
use super::files::Files;
use super::health::Health;
use super::leases::{Lease, Leases};
use super::out::{LOG_BYTES, Writable};
use super::packs::sync_dir;
use super::record::{self, HEADER, Header};
use super::reserve::{Reserve, WayOut};
use super::salvage::Wanted;
use crate::engine::{Engine, RecordLocation};
use crate::ledger::{Database, Durability, Frozen, ObjectRow, Rows, Transaction};
use crate::{Error, Failure, ObjectId, Result};

pub(crate) const DATABASE: &str = "store.db";
/// Objects above this get a file of their own.
const LOOSE_ABOVE: usize = 4 << 20;
/// Lets sequential reads of one large object decompress it once.
const CACHE_BYTES: usize = 8 << 20;

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct StoreStats {
    pub objects: u64,
    /// After compression.
    pub bytes_stored: u64,
}

/// A cheap handle. The caller holds the home's lock: one process, one open store per home.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    /// For a handle that stores nothing but what is looked for.
    pub(crate) mending: Option<Arc<Wanted>>,
}

pub(crate) struct Inner {
    pub database: Database,
    pub engine: Box<dyn Engine>,
    staged: Mutex<Staged>,
    pub leases: Arc<Leases>,
    /// Held while a loose file is made or removed.
    pub loose_files: Mutex<()>,
    pub cache: Cache<ObjectId, Arc<[u8]>>,
    pub health: Health,
    pub damaged: Damaged,
    pub home: PathBuf,
    pub reserve: Reserve,
    /// Whether the database is open for writing.
    pub writable: Writable,
}

/// Objects that are written but not yet in the index.
#[derive(Default)]
pub(crate) struct Staged {
    pub rows: HashMap<ObjectId, ObjectRow>,
}

impl Store {
    /// Makes `home` (0700) and what belongs in it where missing. Records are kept in files.
    ///
    /// A home on a full disk is opened with the help of its reserve or, where that is not enough, for reading alone
    /// until there is room. One that this process may not write is opened for reading alone.
    pub fn open(home: &Path) -> Result<Store> {
        if home.join(DATABASE).exists() && !may_write(home) {
            // SQLite itself would open it, and only fail at the first write.
            return Store::open_read_only(home);
        }
        let open = || {
            make_home(home)?;
            Store::with_engine(home, Box::new(Files::open(home)?))
        };
        let mut opened = open();
        while opened.as_ref().is_err_and(Error::is_full) && Reserve::of(home).give(WayOut::Large) {
            opened = open();
        }
        match opened {
            Err(full) if full.is_full() => Store::frozen_at(home, Frozen::Full).or(Err(full)),
            opened => opened,
        }
    }

    /// Opens a home that is there, and changes nothing in it. Whoever writes is refused.
    pub fn open_read_only(home: &Path) -> Result<Store> {
        Store::frozen_at(home, Frozen::ReadOnly)
    }

    fn frozen_at(home: &Path, why: Frozen) -> Result<Store> {
        let engine = Box::new(Files::open(home)?);
        let database = Database::open_frozen(home.join(DATABASE), why)?;
        Store::over(home, engine, database)
    }

    /// Opens a home whose records are kept elsewhere than in files.
    pub fn with_engine(home: &Path, engine: Box<dyn Engine>) -> Result<Store> {
        make_home(home)?;
        let path = home.join(DATABASE);
        // SQLite takes an empty file for a new database.
        let is_new = std::fs::metadata(&path).map_or(true, |meta| meta.len() == 0);
        if is_new && holds_records(&*engine)? {
            let home = home.to_owned();
            return Err(Error::DatabaseLost { home });
        }
        let store = Store::opened(home, path, engine)?;
        if is_new {
            // SQLite syncs what is in its files, not that they are there.
            sync_dir(home)?;
        }
        store.inner.reserve.fill();
        Ok(store)
    }

    /// Opens a database of any name in a home.
    pub(crate) fn opened(home: &Path, path: PathBuf, engine: Box<dyn Engine>) -> Result<Store> {
        Store::over(home, engine, Database::open(path)?)
    }

    fn over(home: &Path, engine: Box<dyn Engine>, database: Database) -> Result<Store> {
        let damaged = database.read(Damaged::load)?;
        let writable = Writable::new(database.frozen().is_none());
        let inner = Inner {
            database,
            engine,
            staged: Mutex::default(),
            leases: Arc::default(),
            loose_files: Mutex::default(),
            cache: Cache::new(CACHE_BYTES),
            health: Health::default(),
            damaged,
            home: home.to_owned(),
            reserve: Reserve::of(home),
            writable,
        };
        inner.find_foreign_packs()?;
        Ok(Store {
            inner: Arc::new(inner),
            mending: None,
        })
    }

    /// Takes bytes in, once. They can be read at once in this process, and last from the next
    /// transaction on. May be called from many threads: only a copy happens under a lock.
    pub fn put(&self, bytes: &[u8]) -> Result<ObjectId> {
        let id = ObjectId::of(bytes);
        if self.mending.as_ref().is_some_and(|wanted| !wanted.take(id)) {
            return Ok(id);
        }
        if self.is_worth_reusing(id)? && self.reuse(id)? {
            return Ok(id);
        }
        self.inner.admit()?;
        self.inner.check_health()?;
        let stored = record::with_record(id, bytes, |header, record| {
            if bytes.len() > LOOSE_ABOVE {
                let _files = self.inner.loose_files();
                self.inner.engine.keep(id, record)?;
                let mut staged = self.inner.staged();
                staged.rows.insert(id, row(RecordLocation::LOOSE, header));
                return Ok(id);
            }
            self.inner.stage(id, header, record)?;
            Ok(id)
        });
        if stored.is_err() {
            self.inner.reclaim();
        }
        stored.map_err(self.inner.measured(bytes.len() as u64))
    }

    /// Where something is damaged, more may be: then what is there is read before it is relied on. Nobody who has the
    /// bytes shall be told that they are stored when they are not.
    fn is_worth_reusing(&self, id: ObjectId) -> Result<bool> {
        if self.inner.damaged.is_empty() {
            return Ok(true);
        }
        if self.inner.damaged.contains(id) || !self.contains(id)? {
            return Ok(false);
        }
        match self.verify(id) {
            Err(error) if error.is_damage() => Ok(false),
            verified => verified.map(|()| true),
        }
    }

    /// Whether the object is there, and will be for as long as the leases that are held.
    fn reuse(&self, id: ObjectId) -> Result<bool> {
        loop {
            let Some(seen) = self.inner.leases.look(id) else {
                return Ok(false);
            };
            if !self.contains(id)? {
                return Ok(false);
            }
            if self.inner.leases.reuse(id, seen) {
                return Ok(true);
            }
        }
    }

    /// Keeps what is stored from now on, and not yet referred to, from being swept.
    pub fn lease(&self) -> Lease {
        self.inner.leases.begin(self.inner.engine.end())
    }

    /// The object's bytes, proven to have its hash.
    pub fn get(&self, id: ObjectId) -> Result<Arc<[u8]>> {
        if let Some(bytes) = self.inner.cache.get(id) {
            return Ok(bytes);
        }
        let bytes = self.inner.load(id)?;
        self.inner.cache.insert(id, bytes.clone(), bytes.len());
        Ok(bytes)
    }

    /// Gives back the memory that only speed needs: for when nothing is asked for a while.
    pub fn release_caches(&self) -> Result<()> {
        self.inner.cache.clear();
        self.inner.database.release_caches()
    }

    /// Reads the object from the disk, whether it is in a cache or not.
    pub fn verify(&self, id: ObjectId) -> Result<()> {
        let bytes = self.inner.load(id)?;
        let size = self.inner.find(id)?.map(|row| row.size);
        if size.is_some_and(|size| size != bytes.len() as u64) {
            self.inner.damaged.note(id);
            let reason = "the index has another size".to_owned();
            return Err(Error::Corrupt { id, reason });
        }
        Ok(())
    }

    pub fn contains(&self, id: ObjectId) -> Result<bool> {
        Ok(self.inner.find(id)?.is_some())
    }

    /// Whether any object is known to be damaged.
    pub fn any_damage(&self) -> bool {
        !self.inner.damaged.is_empty()
    }

    /// Whether this one is.
    pub fn is_damaged(&self, id: ObjectId) -> bool {
        self.inner.damaged.contains(id)
    }

    /// Whether the object is there and not known to be damaged: whoever has its bytes may keep them.
    pub fn is_intact(&self, id: ObjectId) -> Result<bool> {
        Ok(!self.inner.damaged.contains(id) && self.contains(id)?)
    }

    /// What the database says is wrong with itself, and whether the totals are those of the index.
    pub fn check_database(&self) -> Result<Vec<String>> {
        self.inner.database.check()
    }

    /// Of what transactions have indexed so far.
    pub fn stats(&self) -> Result<StoreStats> {
        let totals = self.read(|rows| rows.totals())?;
        Ok(StoreStats {
            objects: totals.objects,
            bytes_stored: totals.bytes,
        })
    }

    /// Runs `f` in a transaction that also makes every object `put` so far (also by `f`) last.
    /// An error rolls everything back; the objects wait for the next transaction.
    /// `f` must not call `write` or `flush`: there is one writer, and it is taken.
    pub fn write<T, E: Failure>(
        &self,
        durability: Durability,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let inner = &*self.inner;
        inner.admit()?;
        let mut indexed = HashSet::new();
        let losses = inner.health.losses();
        let written = inner
            .database
            .write(durability, |transaction| -> Result<_, E> {
                inner.index_staged(transaction, &mut indexed)?;
                let value = f(transaction)?;
                inner.index_staged(transaction, &mut indexed)?;
                let noted = inner.damaged.save(transaction, &indexed)?;
                // Something that this refers to may never have come to the disk.
                inner.health.nothing_lost_since(losses)?;
                Ok((value, noted))
            });
        if written.is_err() {
            inner.reclaim();
        }
        let (result, noted) = written.map_err(inner.measured(LOG_BYTES))?;
        inner.damaged.saved(&noted, &indexed);
        let mut staged = inner.staged();
        for id in &indexed {
            staged.rows.remove(id);
        }
        if staged.rows.is_empty() {
            // Thousands of rows may have been here.
            staged.rows.shrink_to_fit();
        }
        Ok(result)
    }

    /// Runs `f` on one of a few read connections.
    pub fn read<T, E: From<Error>>(
        &self,
        f: impl FnOnce(&Rows<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.inner.database.read(f)
    }

    /// Makes the tables of vaults, or brings those of an earlier program up.
    pub fn prepare_ledger(&self) -> Result<()> {
        match self.read(|rows| rows.is_prepared())? {
            true => Ok(()),
            false => self.write(Durability::Full, |transaction| transaction.prepare()),
        }
    }

    /// Indexes what is staged, so that long work neither fills memory nor starts again.
    pub fn flush(&self) -> Result<()> {
        self.write(Durability::Relaxed, |_| Ok(()))
    }
}

fn holds_records(engine: &dyn Engine) -> Result<bool> {
    let in_packs = engine.packs()?.iter().any(|(_, length)| *length > 0);
    Ok(in_packs || !engine.kept()?.is_empty())
}

pub(crate) fn make_home(home: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(home);
    made.map_err(Error::io("make", home))?;
    let meta = std::fs::metadata(home).map_err(Error::io("look at", home))?;
    let mode = meta.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    // What its owner took away from everybody stays so.
    let private = std::fs::Permissions::from_mode(mode & 0o700);
    std::fs::set_permissions(home, private).map_err(Error::io("protect", home))
}

/// Whether the file system and the modes let this process write what it must.
fn may_write(home: &Path) -> bool {
    let there = ["", "packs", "objects", "store.db"].map(|name| home.join(name));
    let mut there = there.iter().filter(|path| path.exists());
    there.all(|path| access(path, Access::WRITE_OK).is_ok())
}

pub(crate) fn row(place: RecordLocation, header: Header) -> ObjectRow {
    ObjectRow {
        pack: place.pack,
        offset: place.offset,
        stored: header.stored,
        size: header.size,
    }
}

impl Inner {
    /// Finds, reads and checks an object, and remembers one that is damaged.
    fn load(&self, id: ObjectId) -> Result<Arc<[u8]>> {
        let loaded = self.read_object(id);
        match &loaded {
            Ok(_) => self.damaged.is_whole(id),
            // Without a row there is nothing that could be taken for it.
            Err(Error::Missing { .. }) => {}
            Err(error) if error.is_damage() => self.damaged.note(id),
            Err(_) => {}
        }
        loaded
    }

    /// Its record may be moved between finding and reading.
    fn read_object(&self, id: ObjectId) -> Result<Arc<[u8]>> {
        let mut missed = None;
        loop {
            let row = self.find(id)?.ok_or(Error::Missing { id })?;
            if missed == Some(row) {
                let reason = "its record is gone or cut short".to_owned();
                return Err(Error::Corrupt { id, reason });
            }
            let length = row.stored + HEADER as u64;
            match self.engine.read(id, row.place(), length)? {
                Some(record) => return record::open_record(id, &record),
                None => missed = Some(row),
            }
        }
    }

    /// The staged rows are asked first: a row leaves them only after it is in the index.
    pub fn find(&self, id: ObjectId) -> Result<Option<ObjectRow>> {
        let staged = self.staged().rows.get(&id).copied();
        match staged {
            Some(row) => Ok(Some(row)),
            None => self.database.read(|rows| rows.object(id)),
        }
    }

    /// Puts the staged objects that are not in `indexed` on the disk, then into the index, and
    /// lists them. Without any it touches no disk.
    fn index_staged(
        &self,
        transaction: &Transaction<'_>,
        indexed: &mut HashSet<ObjectId>,
    ) -> Result<()> {
        self.check_health()?;
        let mut rows: Vec<_> = {
            let staged = self.staged();
            let new = staged.rows.iter().filter(|(id, _)| !indexed.contains(id));
            new.map(|(id, row)| (*id, *row)).collect()
        };
        if rows.is_empty() {
            return Ok(());
        }
        // What is listed above was written before, so this covers it.
        self.sync()?;
        transaction.add_objects(&mut rows)?;
        indexed.extend(rows.iter().map(|(id, _)| *id));
        Ok(())
    }

    /// Places and lists a record in one step: a sealed pack gets no more rows.
    fn stage(&self, id: ObjectId, header: Header, record: &[u8]) -> Result<()> {
        let mut staged = self.staged();
        // Another thread may have been faster.
        if staged.rows.contains_key(&id) {
            return Ok(());
        }
        match self.engine.append(record) {
            Ok(place) => {
                staged.rows.insert(id, row(place, header));
                Ok(())
            }
            Err(error) => {
                drop(staged);
                self.give_up_after(&error);
                Err(error)
            }
        }
    }

    pub fn loose_files(&self) -> MutexGuard<'_, ()> {
        self.loose_files
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub fn staged(&self) -> MutexGuard<'_, Staged> {
        // Every change to the map is a single step.
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
