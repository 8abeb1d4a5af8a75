//! One object as it lies in a pack or a loose file: a header that can be found again without the
//! index, then the bytes, compressed where that pays.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use crate::{Error, ObjectId, Result};

/// magic 4, flags 1, zero 3, stored length 8, size 8, id 32, check 8.
pub const HEADER: usize = 64;
const MAGIC: &[u8; 4] = b"AVO1";
const FLAG_ZSTD: u8 = 1;
const CHECKED: usize = HEADER - 8;

/// Below this, a compressed object hardly saves a disk block.
const COMPRESS_ABOVE: usize = 512;
const LEVEL: i32 = 1;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub id: ObjectId,
    /// Bytes after the header.
    pub stored: u64,
    /// Bytes of the object itself.
    pub size: u64,
    compressed: bool,
}

impl Header {
    fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4] = if self.compressed { FLAG_ZSTD } else { 0 };
        bytes[8..16].copy_from_slice(&self.stored.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.size.to_le_bytes());
        bytes[24..CHECKED].copy_from_slice(self.id.as_bytes());
        let check = check_of(&bytes);
        bytes[CHECKED..].copy_from_slice(&check);
        bytes
    }

    /// None unless these are the bytes of a whole, undamaged header.
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER] = bytes.first_chunk()?;
        if &bytes[..4] != MAGIC || bytes[CHECKED..] != check_of(bytes) || bytes[4] > FLAG_ZSTD {
            return None;
        }
        Some(Header {
            compressed: bytes[4] == FLAG_ZSTD,
            stored: u64::from_le_bytes(*bytes[8..].first_chunk()?),
            size: u64::from_le_bytes(*bytes[16..].first_chunk()?),
            id: ObjectId::from_bytes(*bytes[24..].first_chunk()?),
        })
    }
}

fn check_of(header: &[u8; HEADER]) -> [u8; 8] {
    let hash = blake3::hash(&header[..CHECKED]);
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

thread_local! {
    // Making a context costs more than compressing a small file with it.
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch { context: None, record: Vec::new() }) };
    static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

struct Scratch {
    context: Option<zstd::bulk::Compressor<'static>>,
    record: Vec<u8>,
}

impl Scratch {
    /// The compressed bytes' length, written after the room for a header; none if it saves too little.
    fn compress(&mut self, bytes: &[u8]) -> Option<usize> {
        if bytes.len() <= COMPRESS_ABOVE {
            return None;
        }
        if self.context.is_none() {
            self.context = Some(zstd::bulk::Compressor::new(LEVEL).ok()?);
        }
        let worth = bytes.len() - bytes.len() / 8;
        self.record.resize(HEADER + worth, 0);
        // Running out of room means that it does not pay; so does any other refusal.
        self.context
            .as_mut()?
            .compress_to_buffer(bytes, &mut self.record[HEADER..])
            .ok()
    }
}

/// Hands the record of `bytes` to `f`. The buffer is the thread's own and is used again.
pub fn with_record<T>(id: ObjectId, bytes: &[u8], f: impl FnOnce(Header, &[u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| {
        let packed = scratch.compress(bytes);
        let stored = packed.unwrap_or(bytes.len());
        if packed.is_some() {
            scratch.record.truncate(HEADER + stored);
        } else {
            scratch.record.resize(HEADER, 0);
            scratch.record.extend_from_slice(bytes);
        }
        let size = bytes.len() as u64;
        let header = Header {
            id,
            stored: stored as u64,
            size,
            compressed: packed.is_some(),
        };
        scratch.record[..HEADER].copy_from_slice(&header.encode());
        let result = f(header, &scratch.record);
        if scratch.record.capacity() > 2 << 20 {
            scratch.record = Vec::new();
        }
        result
    })
}

/// The object in a whole record, proven to be the one called `id`.
pub fn open_record(id: ObjectId, record: &[u8]) -> Result<Arc<[u8]>> {
    let corrupt = |reason: &str| Error::Corrupt {
        id,
        reason: reason.to_owned(),
    };
    let header = Header::decode(record).ok_or_else(|| corrupt("its header is damaged"))?;
    if header.id != id {
        return Err(corrupt("another object lies in its place"));
    }
    let payload = &record[HEADER..];
    if payload.len() as u64 != header.stored {
        return Err(corrupt("it is cut short"));
    }
    let object: Arc<[u8]> = if header.compressed {
        let size = usize::try_from(header.size).map_err(|_| corrupt("its size is absurd"))?;
        match decompress(payload, size) {
            Ok(bytes) => bytes.into(),
            Err(error) => return Err(corrupt(&format!("it does not decompress: {error}"))),
        }
    } else {
        payload.into()
    };
    if ObjectId::of(&object) != id {
        return Err(corrupt("its bytes do not have its hash"));
    }
    Ok(object)
}

fn decompress(payload: &[u8], size: usize) -> std::io::Result<Vec<u8>> {
    UNPACKER.with_borrow_mut(|unpacker| {
        if unpacker.is_none() {
            *unpacker = Some(zstd::bulk::Decompressor::new()?);
        }
        let unpacker = unpacker.as_mut().expect("made just now");
        unpacker.decompress(payload, size)
    })
}

/// Every whole, undamaged record in `bytes` with its offset. What lies torn between them is stepped
/// over, also when a torn record's header survived and claims bytes that others were written to.
pub fn scan(bytes: &[u8]) -> Vec<(u64, Header)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = find_magic(&bytes[at..]) {
        at += step;
        match whole_record(&bytes[at..]) {
            Some((header, length)) => {
                found.push((at as u64, header));
                at += length;
            }
            None => at += 1,
        }
    }
    found
}

/// The offset and the object of every whole record in `bytes` of something that is wanted.
pub fn find(bytes: &[u8], wanted: &HashSet<ObjectId>) -> Vec<(u64, Arc<[u8]>)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(step) = find_magic(&bytes[at..]) {
        at += step;
        let header = Header::decode(&bytes[at..]);
        if let Some(header) = header.filter(|header| wanted.contains(&header.id))
            && let Some(end) = usize::try_from(header.stored).ok()
            && let Some(record) = bytes[at..].get(..HEADER.saturating_add(end))
            && let Ok(object) = open_record(header.id, record)
        {
            found.push((at as u64, object));
        }
        at += 1;
    }
    found
}

fn whole_record(bytes: &[u8]) -> Option<(Header, usize)> {
    let header = Header::decode(bytes)?;
    let length = HEADER.checked_add(usize::try_from(header.stored).ok()?)?;
    open_record(header.id, bytes.get(..length)?).ok()?;
    Some((header, length))
}

fn find_magic(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(MAGIC.len())
        .position(|window| window == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(bytes: &[u8]) -> Vec<u8> {
        with_record(ObjectId::of(bytes), bytes, |_, record| record.to_vec())
    }

    #[test]
    fn opens_what_was_recorded() {
        let text = b"all work and no play ".repeat(100);
        let noise: Vec<u8> = (0..100u32)
            .flat_map(|n| *ObjectId::of(&n.to_le_bytes()).as_bytes())
            .collect();
        for bytes in [&b""[..], b"x", &text, &noise] {
            let record = record(bytes);
            assert_eq!(&*open_record(ObjectId::of(bytes), &record).unwrap(), bytes);
        }
        assert!(record(&text).len() < text.len() / 2, "text is compressed");
        assert_eq!(record(&noise).len(), noise.len() + HEADER, "noise is not");
    }

    #[test]
    fn any_flipped_byte_is_corrupt() {
        let bytes = b"some bytes worth keeping ".repeat(40);
        let good = record(&bytes);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            let opened = open_record(ObjectId::of(&bytes), &bad);
            assert!(matches!(opened, Err(Error::Corrupt { .. })), "byte {at}");
        }
        assert!(open_record(ObjectId::of(b"other"), &good).is_err());
        assert!(open_record(ObjectId::of(&bytes), &good[..good.len() - 1]).is_err());
    }

    #[test]
    fn a_scan_steps_over_torn_bytes() {
        let (one, two, torn) = (record(b"one"), record(b"two"), record(b"torn away"));
        let pack = [
            &one[..],
            &torn[..HEADER + 3],
            &two,
            &torn[..20],
            &one,
            b"AVO1",
        ]
        .concat();
        let found: Vec<_> = scan(&pack)
            .into_iter()
            .map(|(_, header)| header.id)
            .collect();
        assert_eq!(
            found,
            [
                ObjectId::of(b"one"),
                ObjectId::of(b"two"),
                ObjectId::of(b"one")
            ]
        );
    }
}
