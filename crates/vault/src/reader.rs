//! A file's content as a stream, one piece in memory at a time.

use std::io::{self, Read};

use crate::{Content, Trees};

const PIECE: usize = 1 << 20;

/// Reads a file from its beginning to its end.
pub struct ContentReader {
    trees: Trees,
    content: Content,
    size: u64,
    /// How much of the file has been fetched.
    fetched: u64,
    piece: Vec<u8>,
    /// How much of `piece` has been handed out.
    given: usize,
}

impl Trees {
    pub fn reader(&self, content: Content, size: u64) -> ContentReader {
        ContentReader {
            trees: self.clone(),
            content,
            size,
            fetched: 0,
            piece: Vec::new(),
            given: 0,
        }
    }
}

impl Read for ContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.piece.len() && self.fetched < self.size {
            self.piece = self
                .trees
                .read(self.content, self.fetched, PIECE)
                .map_err(io::Error::other)?;
            self.given = 0;
            self.fetched += self.piece.len() as u64;
            if self.piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = &self.piece[self.given..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}
