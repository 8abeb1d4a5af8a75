//! Storing content: where a file is cut depends on its bytes alone, not on how they came in.
//!
//! Above 1 MiB a file is looked at in blocks of 64 KiB, counted from its beginning; the last may be shorter. A run of
//! blocks that are all zeros is a hole, whether or not the filesystem had one there. What is between two holes is
//! cut into chunks by itself.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use fastcdc::v2020::FastCDC;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::parts::{ListBuilder, Part};
use crate::{Content, Error, Piece, Result, Trees};

/// All of these are part of the format: other sizes would cut the same content elsewhere.
const WHOLE_MAX: usize = 1 << 20;
const BLOCK: usize = 64 << 10;
const CHUNK_MIN: usize = 64 << 10;
const CHUNK_AVERAGE: usize = 256 << 10;
const CHUNK_MAX: usize = 1 << 20;

/// No kernel has a longer file, so none could show it.
const SIZE_MAX: u64 = i64::MAX as u64;
/// How much of a file is read at once.
const PIECE: usize = 1 << 20;

static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Takes a file's content from its beginning to its end, and holds at most a few MiB of it.
pub struct ContentWriter<'a> {
    trees: &'a Trees,
    size: u64,
    body: Body<'a>,
}

enum Body<'a> {
    /// Not yet more than one object holds.
    Whole(Vec<u8>),
    Parts(Box<Parts<'a>>),
}

impl<'a> ContentWriter<'a> {
    pub fn new(trees: &'a Trees) -> ContentWriter<'a> {
        ContentWriter {
            trees,
            size: 0,
            body: Body::Whole(Vec::new()),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.grow(bytes.len() as u64)?;
        match &mut self.body {
            Body::Whole(whole) => whole.extend_from_slice(bytes),
            Body::Parts(parts) => parts.write(bytes)?,
        }
        Ok(())
    }

    /// As if that many zeros were written, for next to nothing.
    pub fn zeros(&mut self, length: u64) -> Result<()> {
        self.grow(length)?;
        match &mut self.body {
            // Not more than fits in one object.
            Body::Whole(whole) => whole.resize(whole.len() + length as usize, 0),
            Body::Parts(parts) => parts.zeros(length)?,
        }
        Ok(())
    }

    /// Makes ready for `more` bytes.
    fn grow(&mut self, more: u64) -> Result<()> {
        let size = self.size.checked_add(more).filter(|size| *size <= SIZE_MAX);
        self.size = size.ok_or_else(|| Error::Read(io::ErrorKind::FileTooLarge.into()))?;
        if let Body::Whole(whole) = &mut self.body
            && self.size > WHOLE_MAX as u64
        {
            let mut parts = Parts::new(self.trees);
            parts.write(&std::mem::take(whole))?;
            self.body = Body::Parts(Box::new(parts));
        }
        Ok(())
    }

    /// The content, and its size.
    pub fn finish(self) -> Result<(Content, u64)> {
        let content = match self.body {
            Body::Whole(whole) if whole.is_empty() => Content::EMPTY,
            Body::Whole(whole) => Content::Object(self.trees.store().put(&whole)?),
            Body::Parts(parts) => parts.finish()?,
        };
        Ok((content, self.size))
    }
}

/// Of a file that is more than one object holds.
struct Parts<'a> {
    list: ListBuilder<'a>,
    /// The block that is being filled.
    block: Vec<u8>,
    /// Of the hole that goes up to the block.
    hole: u64,
    /// What is not yet cut of the data that goes up to the block; then there is no hole.
    data: Vec<u8>,
}

impl Parts<'_> {
    fn new(trees: &Trees) -> Parts<'_> {
        Parts {
            list: ListBuilder::new(trees),
            block: Vec::with_capacity(BLOCK),
            hole: 0,
            data: Vec::new(),
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.block.is_empty() && bytes.len() >= BLOCK {
                let (whole, rest) = bytes.split_at(BLOCK);
                self.take_block(whole)?;
                bytes = rest;
                continue;
            }
            let (some, rest) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(some);
            self.close_full_block()?;
            bytes = rest;
        }
        Ok(())
    }

    fn zeros(&mut self, mut length: u64) -> Result<()> {
        if !self.block.is_empty() {
            let some = length.min((BLOCK - self.block.len()) as u64);
            self.block.extend_from_slice(&ZEROS[..some as usize]);
            self.close_full_block()?;
            length -= some;
        }
        let rest = length % BLOCK as u64;
        if length > rest {
            self.end_data()?;
            self.hole += length - rest;
        }
        self.block.extend_from_slice(&ZEROS[..rest as usize]);
        Ok(())
    }

    fn close_full_block(&mut self) -> Result<()> {
        if self.block.len() < BLOCK {
            return Ok(());
        }
        let mut block = std::mem::take(&mut self.block);
        self.take_block(&block)?;
        block.clear();
        self.block = block;
        Ok(())
    }

    fn take_block(&mut self, block: &[u8]) -> Result<()> {
        if *block == ZEROS[..block.len()] {
            self.end_data()?;
            self.hole += block.len() as u64;
            return Ok(());
        }
        self.end_hole()?;
        self.data.extend_from_slice(block);
        // A cut may lie anywhere in what a chunk can hold, so that much must be there to find it.
        while self.data.len() >= CHUNK_MAX {
            self.cut()?;
        }
        Ok(())
    }

    fn end_hole(&mut self) -> Result<()> {
        match std::mem::take(&mut self.hole) {
            0 => Ok(()),
            length => self.list.push(Part::Hole { length }),
        }
    }

    fn end_data(&mut self) -> Result<()> {
        while !self.data.is_empty() {
            self.cut()?;
        }
        Ok(())
    }

    /// Stores the first chunk of what is there.
    fn cut(&mut self) -> Result<()> {
        let there = self.data.len().min(CHUNK_MAX);
        let chunker = FastCDC::new(&self.data[..there], CHUNK_MIN, CHUNK_AVERAGE, CHUNK_MAX);
        let (_, length) = chunker.cut(0, there);
        let id = self.list.store().put(&self.data[..length])?;
        self.data.drain(..length);
        let length = length as u64;
        self.list.push(Part::Chunk { id, length })
    }

    fn finish(mut self) -> Result<Content> {
        let block = std::mem::take(&mut self.block);
        if !block.is_empty() {
            self.take_block(&block)?;
        }
        self.end_hole()?;
        self.end_data()?;
        Ok(Content::Chunks(self.list.finish()?))
    }
}

impl Trees {
    /// Stores what `reader` yields, without ever holding a whole large file.
    pub fn write_content(&self, reader: &mut dyn Read) -> Result<(Content, u64)> {
        let mut head = Vec::new();
        let limit = WHOLE_MAX as u64 + 1;
        (&mut *reader)
            .take(limit)
            .read_to_end(&mut head)
            .map_err(Error::Read)?;
        if head.len() <= WHOLE_MAX {
            return self.write_bytes(&head);
        }
        let mut writer = ContentWriter::new(self);
        writer.write(&head)?;
        head.resize(PIECE, 0);
        loop {
            match reader.read(&mut head) {
                Ok(0) => return writer.finish(),
                Ok(length) => writer.write(&head[..length])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Read(error)),
            }
        }
    }

    /// `write_content` for bytes already in memory.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(Content, u64)> {
        if !bytes.is_empty() && bytes.len() <= WHOLE_MAX {
            let id = self.store().put(bytes)?;
            return Ok((Content::Object(id), bytes.len() as u64));
        }
        let mut writer = ContentWriter::new(self);
        writer.write(bytes)?;
        writer.finish()
    }

    /// Stores what is there piece by piece; holes cost nothing.
    pub fn write_pieces(
        &self,
        pieces: impl IntoIterator<Item = Result<Piece>>,
    ) -> Result<(Content, u64)> {
        let mut writer = ContentWriter::new(self);
        for piece in pieces {
            match piece? {
                Piece::Data(bytes) => writer.write(&bytes)?,
                Piece::Hole(length) => writer.zeros(length)?,
            }
        }
        writer.finish()
    }

    /// Stores what is in an open file, up to the size that it has now. Its holes are not read.
    ///
    /// `check` is asked before each step with how many bytes that reads: at most 1 MiB, and none for passing over to
    /// the next stretch of data, of which a hostile file has very many. Its error ends the work.
    pub fn write_file<E: From<Error>>(
        &self,
        file: &File,
        check: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<(Content, u64), E> {
        let size = length_of(file)?;
        let mut buffer = vec![0; size.min(PIECE as u64) as usize];
        if size <= WHOLE_MAX as u64 {
            check(size)?;
            let read = read_at(file, &mut buffer, 0)?;
            return Ok(self.write_bytes(&buffer[..read])?);
        }
        let mut writer = ContentWriter::new(self);
        while writer.size < size {
            check(0)?;
            let data = data_after(file, writer.size, size)?;
            writer.zeros(data.start - writer.size)?;
            while writer.size < data.end {
                let wanted = (data.end - writer.size).min(PIECE as u64);
                check(wanted)?;
                let read = read_at(file, &mut buffer[..wanted as usize], writer.size)?;
                writer.write(&buffer[..read])?;
                if (read as u64) < wanted {
                    // Somebody has cut it off meanwhile.
                    return Ok(writer.finish()?);
                }
            }
            if data.is_empty() {
                break;
            }
        }
        Ok(writer.finish()?)
    }
}

impl Trees {
    /// Whether an open file begins with the `size` bytes of `content`. Where both have a hole, nothing is read.
    pub fn is_in_file(&self, file: &File, content: Content, size: u64) -> Result<bool> {
        let (mut at, mut buffer) = (0, vec![0; size.min(PIECE as u64) as usize]);
        for piece in self.pieces(content, size) {
            let piece = piece?;
            let end = at + piece.length();
            if let Piece::Data(expected) = &piece {
                let read = read_at(file, &mut buffer[..expected.len()], at)?;
                if buffer[..read] != expected[..] {
                    return Ok(false);
                }
                at = end;
            }
            while at < end {
                let data = data_after(file, at, end)?;
                let length = (data.end - data.start).min(PIECE as u64) as usize;
                let read = read_at(file, &mut buffer[..length], data.start)?;
                let is_zero = buffer[..read]
                    .chunks(BLOCK)
                    .all(|part| *part == ZEROS[..part.len()]);
                if !is_zero || read < length {
                    return Ok(false);
                }
                at = match length {
                    0 => end,
                    length => data.start + length as u64,
                };
            }
        }
        Ok(length_of(file)? >= size)
    }
}

fn length_of(file: &File) -> Result<u64> {
    Ok(file.metadata().map_err(Error::Read)?.len())
}

/// The next stretch of data at or behind `from`; empty, and at the end, where there is none.
fn data_after(file: &File, from: u64, size: u64) -> Result<std::ops::Range<u64>> {
    let begin = match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(begin) => begin.clamp(from, size),
        Err(Errno::NXIO) => {
            let end = length_of(file)?.clamp(from, size);
            return Ok(end..end);
        }
        // Not every filesystem can tell.
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::SPIPE) => return Ok(from..size),
        Err(errno) => return Err(Error::Read(errno.into())),
    };
    match rustix::fs::seek(file, SeekFrom::Hole(begin)) {
        Ok(end) if end > begin => Ok(begin..end.min(size)),
        // Cut off between the two, or told nonsense; reading will find its end.
        Ok(_) | Err(Errno::NXIO) => Ok(begin..size),
        Err(errno) => Err(Error::Read(errno.into())),
    }
}

/// Fills `buffer` from `offset` on; less at the end.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Read(error)),
        }
    }
    Ok(length)
}
