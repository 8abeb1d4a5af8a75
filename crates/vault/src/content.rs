//! File content: one object up to 1 MiB, a list of content-defined chunks above.

use std::io::Read;
use std::sync::Arc;

use avfs_store::ObjectId;
use fastcdc::v2020::StreamCDC;

use crate::codec::{self, ChunkList};
use crate::trees::Cached;
use crate::{Content, Error, Result, Trees};

const CHUNK_ABOVE: usize = 1 << 20;
/// Part of the format: other sizes would cut the same content elsewhere.
const CHUNK_MIN: usize = 64 << 10;
const CHUNK_AVERAGE: usize = 256 << 10;
const CHUNK_MAX: usize = 1 << 20;

/// Where each chunk of a file begins.
pub struct Chunks {
    /// (begin, object, length), in order and without gaps.
    pub(crate) parts: Vec<(u64, ObjectId, u64)>,
}

impl Trees {
    /// `len` bytes from `offset`, fewer at the end. Verified; loads only the chunks it touches.
    pub fn read(&self, content: Content, offset: u64, len: usize) -> Result<Vec<u8>> {
        match content {
            Content::EMPTY => Ok(Vec::new()),
            Content::Object(id) => Ok(slice(&self.store().get(id)?, offset, len).to_vec()),
            Content::Chunks(id) => {
                let chunks = self.chunks(id)?;
                let end = offset.saturating_add(len as u64);
                let mut bytes = Vec::new();
                let first = chunks
                    .parts
                    .partition_point(|(begin, _, size)| begin + size <= offset);
                for (begin, part, size) in &chunks.parts[first..] {
                    if *begin >= end {
                        break;
                    }
                    let object = self.store().get(*part)?;
                    if object.len() as u64 != *size {
                        return Err(Error::Corrupt {
                            what: format!("chunk {part} of {id}"),
                        });
                    }
                    let from = offset.saturating_sub(*begin);
                    let take = (end - begin - from).min(*size) as usize;
                    bytes.extend_from_slice(slice(&object, from, take));
                }
                Ok(bytes)
            }
        }
    }

    /// Stores what `reader` yields, without ever holding a whole large file.
    pub fn write_content(&self, reader: &mut dyn Read) -> Result<(Content, u64)> {
        let mut head = Vec::new();
        let limit = CHUNK_ABOVE as u64 + 1;
        (&mut *reader)
            .take(limit)
            .read_to_end(&mut head)
            .map_err(Error::Read)?;
        if head.len() <= CHUNK_ABOVE {
            return self.write_whole(&head);
        }
        self.write_chunks((&head[..]).chain(reader))
    }

    /// `write_content` for bytes already in memory.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(Content, u64)> {
        if bytes.len() <= CHUNK_ABOVE {
            self.write_whole(bytes)
        } else {
            self.write_chunks(bytes)
        }
    }

    fn write_whole(&self, bytes: &[u8]) -> Result<(Content, u64)> {
        if bytes.is_empty() {
            return Ok((Content::EMPTY, 0));
        }
        Ok((
            Content::Object(self.store().put(bytes)?),
            bytes.len() as u64,
        ))
    }

    fn write_chunks(&self, reader: impl Read) -> Result<(Content, u64)> {
        let mut chunks = ChunkList::new();
        let mut size = 0;
        for chunk in StreamCDC::new(reader, CHUNK_MIN, CHUNK_AVERAGE, CHUNK_MAX) {
            let chunk = chunk.map_err(|error| Error::Read(error.into()))?;
            chunks.push((self.store().put(&chunk.data)?, chunk.length as u64));
            size += chunk.length as u64;
        }
        Ok((
            Content::Chunks(self.store().put(&codec::encode_chunks(&chunks))?),
            size,
        ))
    }

    pub(crate) fn chunks(&self, id: ObjectId) -> Result<Arc<Chunks>> {
        let load = || {
            let bytes = self.store().get(id)?;
            let list = codec::decode_chunks(&bytes).ok_or_else(|| Error::Corrupt {
                what: format!("chunk list {id}"),
            })?;
            let mut begin = 0_u64;
            let place = |(part, length): (ObjectId, u64)| {
                let part = (begin, part, length);
                begin = begin.saturating_add(length);
                part
            };
            let parts: Vec<_> = list.into_iter().map(place).collect();
            let weight = parts.len() * size_of::<(u64, ObjectId, u64)>() + 64;
            Ok((Cached::Chunks(Arc::new(Chunks { parts })), weight))
        };
        match self.cached(id, load)? {
            Cached::Chunks(chunks) => Ok(chunks),
            _ => Err(Error::Corrupt {
                what: format!("chunk list {id}"),
            }),
        }
    }
}

/// The part of `bytes` that is there.
fn slice(bytes: &[u8], offset: u64, len: usize) -> &[u8] {
    let from = usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    &bytes[from..from.saturating_add(len).min(bytes.len())]
}
