//! File content: one object up to 1 MiB, above that chunks and holes (`parts.rs`, `writer.rs`).

use std::sync::Arc;

use avfs_store::ObjectId;

use crate::{Content, Error, Result, Trees};

/// A hole of any length must not become memory.
const AT_ONCE_MAX: u64 = 1 << 30;

impl Trees {
    /// `len` bytes from `offset`, fewer at the end. Verified; loads only the chunks it touches, and
    /// nothing for a hole. More than 1 GiB is refused.
    pub fn read(&self, content: Content, offset: u64, len: usize) -> Result<Vec<u8>> {
        let list = match content {
            Content::EMPTY => return Ok(Vec::new()),
            Content::Object(id) => return Ok(slice(&self.store().get(id)?, offset, len).to_vec()),
            Content::Chunks(list) => list,
        };
        let end = offset.saturating_add(len as u64);
        let (mut bytes, mut at) = (Vec::new(), offset);
        while at < end {
            let Some(extent) = self.extent(list, at)? else {
                break;
            };
            let from = at - extent.begin;
            let take = (extent.length - from).min(end - at);
            if at - offset + take > AT_ONCE_MAX {
                return Err(Error::TooMuchAtOnce { most: AT_ONCE_MAX });
            }
            match extent.chunk {
                Some(id) => {
                    let chunk = self.chunk(list, id, extent.length)?;
                    bytes.extend_from_slice(slice(&chunk, from, take as usize));
                }
                None => bytes.resize(bytes.len() + take as usize, 0),
            }
            at += take;
        }
        Ok(bytes)
    }

    fn chunk(&self, list: ObjectId, id: ObjectId, length: u64) -> Result<Arc<[u8]>> {
        let object = self.store().get(id)?;
        match object.len() as u64 == length {
            true => Ok(object),
            false => Err(Error::Corrupt {
                what: format!("chunk {id} of {list}"),
            }),
        }
    }

    /// Where data begins at or behind `from`, as `SEEK_DATA` has it; none if there is only a hole.
    pub fn next_data(&self, content: Content, size: u64, from: u64) -> Result<Option<u64>> {
        let Content::Chunks(list) = content else {
            return Ok((from < size).then_some(from));
        };
        let mut at = from;
        while at < size {
            match self.extent(list, at)? {
                Some(extent) if extent.chunk.is_none() => at = extent.begin + extent.length,
                Some(_) => return Ok(Some(at)),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Where a hole begins at or behind `from`, as `SEEK_HOLE` has it: at the latest at the end.
    pub fn next_hole(&self, content: Content, size: u64, from: u64) -> Result<u64> {
        let found = match content {
            Content::Object(_) => None,
            Content::Chunks(list) => self.hole_in(list, from)?,
        };
        Ok(found.unwrap_or(size).min(size))
    }

    /// Every object that `content` is made of. Those of a chunk list are named without being read.
    pub fn content_objects(&self, content: Content) -> Result<Vec<ObjectId>> {
        Ok(match content {
            Content::EMPTY => Vec::new(),
            Content::Object(id) => vec![id],
            Content::Chunks(id) => {
                let mut objects = vec![id];
                self.objects_beneath(id, &mut |id| {
                    objects.push(id);
                    Ok(())
                })?;
                objects
            }
        })
    }

    /// How many bytes of a file are data and not holes.
    pub fn data_size(&self, content: Content, size: u64) -> Result<u64> {
        let list = match content {
            Content::Object(_) => return Ok(size),
            Content::Chunks(list) => self.part_list(list)?,
        };
        let data = list.parts().map(|part| part.data());
        Ok(data.fold(0, u64::saturating_add))
    }
}

/// The part of `bytes` that is there.
fn slice(bytes: &[u8], offset: u64, len: usize) -> &[u8] {
    let from = usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    &bytes[from..from.saturating_add(len).min(bytes.len())]
}
