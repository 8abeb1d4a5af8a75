//! Sparse files in an archive of GNU tar. Their maps are removed from the stream, so the tar reader sees a regular file that
//! holds the data alone, and holes are never expanded to zeros.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

use tar::{EntryType, GnuExtSparseHeader, GnuSparseHeader, Header, PaxExtensions};

use crate::bounds::PIECES_MAX;

const BLOCK: usize = 512;
/// An extended header is held in memory.
const EXTENDED_MAX: u64 = 1 << 20;

/// Where the data of a file belongs.
pub struct SparseMap {
    /// Offset and length, in order, without overlap.
    pub data: Vec<(u64, u64)>,
    pub size: u64,
}

/// The map of the entry whose header was read last, if that is a sparse file.
pub type Found = Rc<RefCell<Option<SparseMap>>>;

pub struct Unsparse<R> {
    source: R,
    found: Found,
    state: State,
    /// What was read to be looked at, and how much of it has been handed on.
    ahead: Vec<u8>,
    given: usize,
    /// What an extended header says about the file to come.
    size: Option<u64>,
}

enum State {
    Header,
    /// So many bytes of an entry are still to come.
    Body(u64),
    /// There are no more headers.
    Rest,
}

impl<R: Read> Unsparse<R> {
    pub fn new(source: R, found: Found) -> Unsparse<R> {
        Unsparse {
            source,
            found,
            state: State::Header,
            ahead: Vec::new(),
            given: 0,
            size: None,
        }
    }

    /// Takes in `length` more bytes to be looked at; fewer at the end.
    fn take_ahead(&mut self, length: u64) -> io::Result<()> {
        let source = &mut self.source;
        source.take(length).read_to_end(&mut self.ahead).map(drop)
    }

    fn header(&mut self) -> io::Result<()> {
        (self.ahead, self.given) = (Vec::new(), 0);
        self.take_ahead(BLOCK as u64)?;
        self.state = State::Rest;
        if self.ahead.len() < BLOCK || self.ahead.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        let mut header = Header::from_byte_slice(&self.ahead).clone();
        let kind = header.entry_type();
        let describes_another = kind.is_gnu_longname()
            || kind.is_gnu_longlink()
            || kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions();
        let size = match self.size.take() {
            Some(size) if !describes_another => size,
            kept => {
                self.size = kept;
                header.entry_size()?
            }
        };
        *self.found.borrow_mut() = None;
        let padded = size.checked_next_multiple_of(BLOCK as u64);
        let padded = padded.ok_or_else(|| wrong("an entry is longer than anything can be"))?;
        self.state = State::Body(padded);
        if kind.is_pax_local_extensions() {
            if size > EXTENDED_MAX {
                return Err(wrong("an extended header is too long"));
            }
            self.take_ahead(padded)?;
            self.state = State::Header;
            self.size = told_size(self.ahead.get(BLOCK..BLOCK + size as usize));
        } else if kind.is_gnu_sparse() {
            let map = self.map(&header, size)?;
            *self.found.borrow_mut() = Some(map);
            header.set_entry_type(EntryType::Regular);
            header.set_cksum();
            self.ahead = header.as_bytes().to_vec();
        }
        Ok(())
    }

    /// The map of a sparse file, of which `stored` bytes are in the archive.
    fn map(&mut self, header: &Header, stored: u64) -> io::Result<SparseMap> {
        let gnu = header
            .as_gnu()
            .ok_or_else(|| wrong("a sparse file has no header of GNU tar"))?;
        let mut map = SparseMap {
            data: Vec::new(),
            size: gnu.real_size()?,
        };
        let mut end = 0;
        for piece in &gnu.sparse {
            map.add(piece, &mut end)?;
        }
        let mut is_extended = gnu.is_extended();
        while is_extended {
            let mut more = GnuExtSparseHeader::new();
            self.source.read_exact(more.as_mut_bytes())?;
            for piece in more.sparse() {
                map.add(piece, &mut end)?;
            }
            is_extended = more.is_extended();
        }
        let sum = map.data.iter().map(|(_, length)| length).sum::<u64>();
        if end > map.size || sum != stored {
            return Err(wrong("the map of a sparse file does not fit the file"));
        }
        Ok(map)
    }
}

impl SparseMap {
    /// Adds one piece; `end` is where the one before ends.
    fn add(&mut self, piece: &GnuSparseHeader, end: &mut u64) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let (offset, length) = (piece.offset()?, piece.length()?);
        let overlaps = offset < *end;
        let Some(behind) = offset.checked_add(length).filter(|_| !overlaps) else {
            return Err(wrong("the map of a sparse file makes no sense"));
        };
        *end = behind;
        if length > 0 {
            self.data.push((offset, length));
        }
        match self.data.len() > PIECES_MAX {
            true => Err(wrong("a sparse file has too many pieces")),
            false => Ok(()),
        }
    }
}

fn told_size(records: Option<&[u8]>) -> Option<u64> {
    let records = PaxExtensions::new(records?).flatten();
    let mut sizes = records.filter(|record| record.key_bytes() == b"size");
    sizes.next()?.value().ok()?.parse().ok()
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl<R: Read> Read for Unsparse<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.given < self.ahead.len() {
                let rest = &self.ahead[self.given..];
                let length = rest.len().min(buffer.len());
                buffer[..length].copy_from_slice(&rest[..length]);
                self.given += length;
                return Ok(length);
            }
            match &mut self.state {
                State::Rest => return self.source.read(buffer),
                State::Body(0) => self.state = State::Header,
                State::Body(left) => {
                    let most = (buffer.len() as u64).min(*left) as usize;
                    let read = self.source.read(&mut buffer[..most])?;
                    *left -= read as u64;
                    return Ok(read);
                }
                State::Header => self.header()?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tar::{Archive, Builder};

    type Entries = Vec<(String, Vec<u8>, Option<(Vec<(u64, u64)>, u64)>)>;

    /// Every entry: its name, its data, its map.
    fn read(bytes: &[u8]) -> io::Result<Entries> {
        let found = Found::default();
        let mut archive = Archive::new(Unsparse::new(bytes, found.clone()));
        let mut entries = Entries::new();
        for entry in archive.entries()? {
            let mut entry = entry?;
            let map = found.take().map(|map| (map.data, map.size));
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let mut data = Vec::new();
            entry.read_to_end(&mut data)?;
            entries.push((name, data, map));
        }
        Ok(entries)
    }

    fn sparse(pieces: &[(u64, u64)], size: u64, data: &[u8]) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..2].copy_from_slice(b"sp");
        header.set_entry_type(EntryType::GNUSparse);
        header.set_mode(0o644);
        header.set_size(data.len() as u64);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.set_real_size(size);
        for (place, (offset, length)) in gnu.sparse.iter_mut().zip(pieces) {
            place.set_offset(*offset);
            place.set_length(*length);
        }
        let mut more = Vec::new();
        let rest: Vec<_> = pieces.iter().skip(4).collect();
        gnu.set_is_extended(!rest.is_empty());
        for (at, part) in rest.chunks(21).enumerate() {
            let mut block = GnuExtSparseHeader::new();
            for (place, (offset, length)) in block.sparse_mut().iter_mut().zip(part) {
                place.set_offset(*offset);
                place.set_length(*length);
            }
            block.set_is_extended((at + 1) * 21 < rest.len());
            more.extend_from_slice(block.as_bytes());
        }
        header.set_cksum();
        let mut builder = Builder::new(Vec::new());
        let mut plain = Header::new_ustar();
        plain.set_size(3);
        plain.set_mode(0o644);
        builder.append_data(&mut plain, "a", &b"one"[..]).unwrap();
        builder.append(&header, more.chain(data)).unwrap();
        // A long name and a size in an extended header come before the next.
        let name = "n".repeat(120);
        let records = [("path", name.as_bytes()), ("size", b"5".as_slice())];
        builder.append_pax_extensions(records).unwrap();
        builder.append_data(&mut plain, "z", &b"later"[..]).unwrap();
        let long = "l".repeat(150);
        let mut gnu = Header::new_gnu();
        gnu.set_size(4);
        builder.append_data(&mut gnu, &long, &b"last"[..]).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn maps_come_out_and_everything_else_stays() {
        let pieces: Vec<(u64, u64)> = (0..60).map(|n| (n << 40, 512)).collect();
        let data: Vec<u8> = (0..60 * 512_u32).map(|n| (n / 512) as u8).collect();
        let size = u64::MAX >> 1;
        let mut told = pieces.clone();
        told.push((size, 0));
        for pieces_told in [&pieces, &told] {
            let entries = read(&sparse(pieces_told, size, &data)).unwrap();
            assert_eq!(entries.len(), 4);
            assert_eq!(entries[0], ("a".into(), b"one".to_vec(), None));
            assert_eq!(entries[1].1, data);
            assert_eq!(entries[1].2, Some((pieces.clone(), size)));
            assert_eq!(entries[2], ("n".repeat(120), b"later".to_vec(), None));
            assert_eq!(entries[3], ("l".repeat(150), b"last".to_vec(), None));
        }
    }

    #[test]
    fn maps_that_make_no_sense_are_refused() {
        let data = [1; 1024];
        for (pieces, size) in [
            (&[(0, 512), (100, 512)][..], 5000),
            (&[(4096, 512), (0, 512)], 5000),
            (&[(0, 512), (u64::MAX - 100, 512)], u64::MAX),
            (&[(0, 1024)], 1000),
            (&[(0, 512)], 5000),
            (&[(0, 512), (1024, 4096)], 9000),
        ] {
            let error = read(&sparse(pieces, size, &data)).expect_err("refused");
            assert_eq!(
                error.kind(),
                io::ErrorKind::InvalidData,
                "{pieces:?}: {error}"
            );
        }
        // Cut off wherever it may be, it is no whole archive, and nothing panics.
        let whole = sparse(&[(0, 512), (4096, 512)], 9000, &data);
        for length in 0..whole.len() - 1024 {
            let _ = read(&whole[..length]);
        }
    }

    #[test]
    fn a_map_and_an_extended_header_have_an_end() {
        let pieces: Vec<(u64, u64)> = (0..=PIECES_MAX as u64).map(|n| (n * 2, 1)).collect();
        let data = vec![0; pieces.len()];
        let error = read(&sparse(&pieces, 1 << 40, &data)).expect_err("too many");
        assert!(error.to_string().contains("too many"), "{error}");
        let mut builder = Builder::new(Vec::new());
        let value = vec![b'x'; 2 << 20];
        builder
            .append_pax_extensions([("comment", &value[..])])
            .unwrap();
        let error = read(&builder.into_inner().unwrap()).expect_err("too long");
        assert!(error.to_string().contains("too long"), "{error}");
    }
}
