//! One request: its header, and a parser for its arguments.

use rustix::io::Errno;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::filesystem::{Caller, Io, Name};
use crate::wire::InHeader;

/// The kernel never sends what does not fit its own structures.
pub const MALFORMED: Errno = Errno::PROTO;

#[derive(Debug)]
pub struct Request<'a> {
    pub header: InHeader,
    rest: &'a [u8],
}

impl<'a> Request<'a> {
    pub fn parse(message: &'a [u8]) -> Io<Request<'a>> {
        let (header, rest) = InHeader::read_from_prefix(message).map_err(|_| MALFORMED)?;
        if header.len as usize != message.len() {
            return Err(MALFORMED);
        }
        // Extensions are at the end, and none was negotiated.
        Ok(Request { header, rest })
    }

    pub fn caller(&self) -> Caller {
        Caller {
            uid: self.header.uid,
            gid: self.header.gid,
        }
    }

    /// The next structure.
    pub fn take<T: FromBytes + KnownLayout + Immutable>(&mut self) -> Io<T> {
        let (taken, rest) = T::read_from_prefix(self.rest).map_err(|_| MALFORMED)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next zero-terminated text.
    pub fn text(&mut self) -> Io<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == 0);
        let end = end.ok_or(MALFORMED)?;
        let (text, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        self.rest = rest;
        Ok(text)
    }

    /// The next text as a name in the directory `parent`.
    pub fn name_in(&mut self, parent: u64) -> Io<Name<'a>> {
        let name = self.text()?;
        if name.is_empty() || name.contains(&b'/') {
            return Err(MALFORMED);
        }
        Ok(Name { parent, name })
    }

    /// The next text as a name in the directory of the request.
    pub fn name(&mut self) -> Io<Name<'a>> {
        self.name_in(self.header.node)
    }

    /// The next `length` bytes.
    pub fn bytes(&mut self, length: u32) -> Io<&'a [u8]> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length as usize)
            .ok_or(MALFORMED)?;
        self.rest = rest;
        Ok(bytes)
    }
}
