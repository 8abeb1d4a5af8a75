//! A file's content as a stream, one piece in memory at a time.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use crate::{Content, Error, Result, Trees};

const PIECE: u64 = 1 << 20;

/// What comes next of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// At most 1 MiB.
    Data(Vec<u8>),
    /// That many zeros.
    Hole(u64),
}

impl Piece {
    pub fn length(&self) -> u64 {
        match self {
            Piece::Data(bytes) => bytes.len() as u64,
            Piece::Hole(length) => *length,
        }
    }
}

/// A file from its beginning to its end, holes as holes.
pub struct Pieces {
    trees: Trees,
    content: Content,
    size: u64,
    at: u64,
}

/// A file from its beginning to its end as bytes, zeros for the holes.
pub struct ContentReader {
    pieces: Pieces,
    /// What is being handed out, and how much of it has been.
    piece: Piece,
    given: u64,
}

impl Trees {
    pub fn pieces(&self, content: Content, size: u64) -> Pieces {
        Pieces {
            trees: self.clone(),
            content,
            size,
            at: 0,
        }
    }

    pub fn reader(&self, content: Content, size: u64) -> ContentReader {
        ContentReader {
            pieces: self.pieces(content, size),
            piece: Piece::Hole(0),
            given: 0,
        }
    }

    /// Writes the first `size` bytes of `content` into a file that is empty, and leaves holes as holes.
    /// An error of the file is `Error::Write`.
    pub fn write_to(&self, file: &File, content: Content, size: u64) -> Result<()> {
        let mut at = 0;
        let mut has_end = true;
        for piece in self.pieces(content, size) {
            let piece = piece?;
            if let Piece::Data(bytes) = &piece {
                file.write_all_at(bytes, at).map_err(Error::Write)?;
            }
            has_end = matches!(piece, Piece::Data(_));
            at += piece.length();
        }
        match has_end {
            true => Ok(()),
            false => file.set_len(at).map_err(Error::Write),
        }
    }
}

impl Pieces {
    fn next_piece(&self) -> Result<Piece> {
        let rest = self.size - self.at;
        let wanted = match self.content {
            Content::Object(_) => rest.min(PIECE),
            Content::Chunks(list) => {
                let extent = self.trees.extent(list, self.at)?;
                let extent = extent.ok_or_else(|| self.too_short())?;
                let length = (extent.begin + extent.length - self.at).min(rest);
                if extent.chunk.is_none() {
                    return Ok(Piece::Hole(length));
                }
                length.min(PIECE)
            }
        };
        let bytes = self.trees.read(self.content, self.at, wanted as usize)?;
        match bytes.is_empty() {
            true => Err(self.too_short()),
            false => Ok(Piece::Data(bytes)),
        }
    }

    fn too_short(&self) -> Error {
        Error::Corrupt {
            what: format!("{:?}: it is shorter than its file", self.content),
        }
    }
}

impl Iterator for Pieces {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        if self.at >= self.size {
            return None;
        }
        let piece = self.next_piece();
        match &piece {
            Ok(piece) => self.at += piece.length(),
            // There is nothing behind an error.
            Err(_) => self.at = self.size,
        }
        Some(piece)
    }
}

impl Read for ContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.piece.length() {
            let Some(piece) = self.pieces.next() else {
                return Ok(0);
            };
            self.piece = piece.map_err(io::Error::other)?;
            self.given = 0;
        }
        let rest = self.piece.length() - self.given;
        let length = rest.min(buffer.len() as u64) as usize;
        match &self.piece {
            Piece::Data(bytes) => {
                let from = self.given as usize;
                buffer[..length].copy_from_slice(&bytes[from..from + length]);
            }
            Piece::Hole(_) => buffer[..length].fill(0),
        }
        self.given += length as u64;
        Ok(length)
    }
}
