//! Sparse files in an archive of GNU tar. Their maps are taken out of the stream, so that holes are passed over and not
//! made of zeros: to whoever reads behind this, such a file is a plain one that holds the data alone.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

use tar::{EntryType, GnuExtSparseHeader, GnuSparseHeader, Header, PaxExtensions};

const BLOCK: usize = 512;
/// A map is held in memory, so it has an end.
pub(crate) const PIECES_MAX: usize = 1 << 20;
/// Extended headers are, too.
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
