//! A second engine, for the tests alone: it shows that a store needs no more than the trait says.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use avfs_store::{Engine, ObjectId, RecordLocation, Result};

/// What outlives a process.
#[derive(Default)]
pub struct Disk {
    packs: Mutex<BTreeMap<u32, Vec<u8>>>,
    kept: Mutex<BTreeMap<ObjectId, Vec<u8>>>,
}

pub struct Memory {
    disk: Arc<Disk>,
    tail: Mutex<Tail>,
}

struct Tail {
    pack: u32,
    /// Appended and not yet on the disk.
    buffer: Vec<u8>,
}

impl Memory {
    pub fn open(disk: Arc<Disk>) -> Memory {
        let newest = disk.packs.lock().unwrap().keys().max().copied();
        let tail = Tail {
            pack: newest.unwrap_or(1),
            buffer: Vec::new(),
        };
        Memory {
            disk,
            tail: Mutex::new(tail),
        }
    }

    fn written(&self, pack: u32) -> u64 {
        let packs = self.disk.packs.lock().unwrap();
        packs.get(&pack).map_or(0, |bytes| bytes.len() as u64)
    }

    fn write_out(&self, tail: &mut Tail) {
        let mut packs = self.disk.packs.lock().unwrap();
        packs.entry(tail.pack).or_default().append(&mut tail.buffer);
    }
}

impl Engine for Memory {
    fn append(&self, record: &[u8]) -> Result<RecordLocation> {
        let mut tail = self.tail.lock().unwrap();
        let offset = self.written(tail.pack) + tail.buffer.len() as u64;
        tail.buffer.extend_from_slice(record);
        Ok(RecordLocation {
            pack: tail.pack,
            offset,
        })
    }

    fn keep(&self, id: ObjectId, record: &[u8]) -> Result<()> {
        self.disk.kept.lock().unwrap().insert(id, record.to_vec());
        Ok(())
    }

    fn read(&self, id: ObjectId, place: RecordLocation, length: u64) -> Result<Option<Vec<u8>>> {
        if place.is_loose() {
            return Ok(self.disk.kept.lock().unwrap().get(&id).cloned());
        }
        let tail = self.tail.lock().unwrap();
        let packs = self.disk.packs.lock().unwrap();
        let mut bytes = packs.get(&place.pack).cloned().unwrap_or_default();
        if place.pack == tail.pack {
            bytes.extend_from_slice(&tail.buffer);
        }
        let (from, to) = (place.offset as usize, (place.offset + length) as usize);
        Ok(bytes.get(from..to).map(<[u8]>::to_vec))
    }

    fn sync(&self) -> Result<()> {
        self.write_out(&mut self.tail.lock().unwrap());
        Ok(())
    }

    fn end(&self) -> RecordLocation {
        let tail = self.tail.lock().unwrap();
        RecordLocation {
            pack: tail.pack,
            offset: self.written(tail.pack) + tail.buffer.len() as u64,
        }
    }

    fn discard(&self) -> RecordLocation {
        let mut tail = self.tail.lock().unwrap();
        tail.buffer.clear();
        RecordLocation {
            pack: tail.pack,
            offset: self.written(tail.pack),
        }
    }

    fn abandon(&self) -> Result<()> {
        self.discard();
        self.tail.lock().unwrap().pack += 1;
        Ok(())
    }

    fn packs(&self) -> Result<Vec<(u32, u64)>> {
        let packs = self.disk.packs.lock().unwrap();
        let lengths = packs
            .iter()
            .map(|(pack, bytes)| (*pack, bytes.len() as u64));
        Ok(lengths.collect())
    }

    fn pack(&self, pack: u32) -> Result<Vec<u8>> {
        self.write_out(&mut self.tail.lock().unwrap());
        let packs = self.disk.packs.lock().unwrap();
        Ok(packs.get(&pack).cloned().unwrap_or_default())
    }

    fn seal(&self, pack: u32) -> Result<()> {
        let mut tail = self.tail.lock().unwrap();
        if tail.pack == pack {
            self.write_out(&mut tail);
            tail.pack += 1;
        }
        Ok(())
    }

    fn cut(&self, pack: u32, length: u64) -> Result<()> {
        let mut packs = self.disk.packs.lock().unwrap();
        if let Some(bytes) = packs.get_mut(&pack) {
            bytes.truncate(length as usize);
        }
        Ok(())
    }

    fn free(&self, _pack: u32, _bytes: Range<u64>) -> Result<()> {
        Ok(())
    }

    fn remove(&self, pack: u32) -> Result<()> {
        self.disk.packs.lock().unwrap().remove(&pack);
        Ok(())
    }

    fn kept(&self) -> Result<Vec<(ObjectId, u64)>> {
        let kept = self.disk.kept.lock().unwrap();
        let lengths = kept.iter().map(|(id, bytes)| (*id, bytes.len() as u64));
        Ok(lengths.collect())
    }

    fn remove_kept(&self, id: ObjectId) -> Result<()> {
        self.disk.kept.lock().unwrap().remove(&id);
        Ok(())
    }
}
