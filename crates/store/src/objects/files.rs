//! The engine of a home: packs and large records as files.

use std::fs::DirBuilder;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::loose::Loose;
use super::packs::{Packs, sync_dir};
use crate::engine::{Engine, RecordLocation};
use crate::{Error, ObjectId, Result};

pub struct Files {
    packs: Packs,
    loose: Loose,
    /// Whether a large record was renamed into place since the directory was synced.
    renamed: AtomicBool,
}

impl Files {
    /// Opens `packs/` and `objects/` in `home`, making them where missing.
    pub fn open(home: &Path) -> Result<Files> {
        let (packs, objects) = (home.join("packs"), home.join("objects"));
        for dir in [&packs, &objects] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
            made.map_err(Error::io("make", dir))?;
        }
        Ok(Files {
            packs: Packs::open(packs)?,
            loose: Loose::open(objects)?,
            renamed: AtomicBool::new(false),
        })
    }
}

impl Engine for Files {
    fn append(&self, record: &[u8]) -> Result<RecordLocation> {
        self.packs.append(record)
    }

    fn keep(&self, id: ObjectId, record: &[u8]) -> Result<()> {
        self.loose.write(id, record)?;
        self.renamed.store(true, Ordering::Release);
        Ok(())
    }

    fn read(&self, id: ObjectId, place: RecordLocation, length: u64) -> Result<Option<Vec<u8>>> {
        match place.is_loose() {
            true => self.loose.read(id),
            false => self.packs.read(place, length),
        }
    }

    fn sync(&self) -> Result<()> {
        self.packs.sync()?;
        if self.renamed.swap(false, Ordering::AcqRel) {
            let synced = sync_dir(self.loose.dir());
            if synced.is_err() {
                self.renamed.store(true, Ordering::Release);
            }
            synced?;
        }
        Ok(())
    }

    fn end(&self) -> RecordLocation {
        self.packs.end()
    }

    fn discard(&self) -> RecordLocation {
        self.packs.discard()
    }

    fn abandon(&self) -> Result<()> {
        self.packs.abandon();
        Ok(())
    }

    fn packs(&self) -> Result<Vec<(u32, u64)>> {
        self.packs.lengths()
    }

    fn pack(&self, pack: u32) -> Result<Vec<u8>> {
        self.packs.bytes(pack)
    }

    fn seal(&self, pack: u32) -> Result<()> {
        self.packs.seal(pack)
    }

    fn cut(&self, pack: u32, length: u64) -> Result<()> {
        self.packs.cut(pack, length)
    }

    fn free(&self, pack: u32, bytes: Range<u64>) -> Result<()> {
        self.packs.free(pack, bytes)
    }

    fn remove(&self, pack: u32) -> Result<()> {
        self.packs.remove(pack)
    }

    fn kept(&self) -> Result<Vec<(ObjectId, u64)>> {
        let ids = self.loose.ids()?.into_iter();
        ids.map(|id| Ok((id, self.loose.length(id)?))).collect()
    }

    fn remove_kept(&self, id: ObjectId) -> Result<()> {
        self.loose.remove(id)
    }
}
