//! Messages to and from the kernel on a netlink socket.
//!
//! The kernel has answered when `send` returns, and a dump goes on with each receive. So nothing here waits. Commands cannot
//! send to these sockets: the kernel lets nobody without CAP_NET_ADMIN address another netlink socket of these protocols.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};

/// The length of a message's header: length, type, flags, sequence number, port.
const HEADER: usize = 16;
/// More than the kernel puts into one packet of a dump.
const PACKET_MAX: usize = 64 * 1024;
/// How long the rest of an abandoned dump may be read.
const DRAIN: Duration = Duration::from_millis(100);

const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const CREATE_EXCLUSIVELY: u16 = 0x400 | 0x200;
const DUMP: u16 = 0x300;

const KIND_ERROR: u16 = 2;
const KIND_DONE: u16 = 3;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Something new; the answer is an acknowledgement.
    Create,
    /// One object.
    One,
    /// All objects that match.
    All,
}

/// A socket and the number of its last request.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

/// A socket of a netlink protocol in the namespace of this process.
pub(super) fn open(protocol: Option<Protocol>) -> Result<OwnedFd, Errno> {
    socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )
}

impl From<OwnedFd> for Netlink {
    fn from(socket: OwnedFd) -> Netlink {
        Netlink {
            socket,
            sequence: 0,
        }
    }
}

impl From<Netlink> for OwnedFd {
    fn from(netlink: Netlink) -> OwnedFd {
        netlink.socket
    }
}

impl Netlink {
    /// Sends one request. `each` gets the body of every object in the answer, until it returns false.
    pub(super) fn ask(
        &mut self,
        kind: u16,
        want: Want,
        body: &[u8],
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), Errno> {
        self.drain()?;
        self.sequence = self.sequence.wrapping_add(1);
        let flags = match want {
            Want::Create => REQUEST | ACKNOWLEDGE | CREATE_EXCLUSIVELY,
            Want::One => REQUEST,
            Want::All => REQUEST | DUMP,
        };
        let message = [&header(kind, flags, self.sequence, body.len())?[..], body].concat();
        let kernel = SocketAddrNetlink::new(0, 0);
        retry_on_intr(|| sendto(&self.socket, &message, SendFlags::empty(), &kernel))?;
        let mut packet = vec![0; PACKET_MAX];
        loop {
            let length = self.receive(&mut packet)?;
            for message in Messages(&packet[..length]) {
                let message = message?;
                match message.kind {
                    _ if message.sequence != self.sequence => {}
                    KIND_ERROR => return outcome(message.body),
                    KIND_DONE => return Ok(()),
                    _ if !each(message.body) => return Ok(()),
                    _ if want == Want::One => return Ok(()),
                    _ => {}
                }
            }
        }
    }

    /// Reads the rest of earlier answers; until then the kernel refuses another dump.
    fn drain(&self) -> Result<(), Errno> {
        let deadline = Instant::now() + DRAIN;
        let mut packet = vec![0; PACKET_MAX];
        loop {
            match self.receive(&mut packet) {
                Err(Errno::AGAIN) => return Ok(()),
                Ok(_) if Instant::now() > deadline => return Err(Errno::BUSY),
                Ok(_) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn receive(&self, packet: &mut [u8]) -> Result<usize, Errno> {
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        let (_, length) = retry_on_intr(|| recv(self.socket.as_fd(), &mut *packet, flags))?;
        if length > packet.len() {
            return Err(Errno::MSGSIZE);
        }
        Ok(length)
    }
}

fn header(kind: u16, flags: u16, sequence: u32, body: usize) -> Result<[u8; HEADER], Errno> {
    let length = u32::try_from(HEADER + body).map_err(|_| Errno::TOOBIG)?;
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&length.to_ne_bytes());
    header[4..6].copy_from_slice(&kind.to_ne_bytes());
    header[6..8].copy_from_slice(&flags.to_ne_bytes());
    header[8..12].copy_from_slice(&sequence.to_ne_bytes());
    Ok(header)
}

/// An error message has a negative errno; an acknowledgement is one with 0.
fn outcome(body: &[u8]) -> Result<(), Errno> {
    let code = word(body, 0).ok_or(Errno::PROTO)?.cast_signed();
    match code {
        0 => Ok(()),
        code => Err(Errno::from_raw_os_error(-code)),
    }
}

/// Four bytes at `at`.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

/// The messages in a packet.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Errno>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.0);
        let read = || {
            let length = usize::try_from(word(bytes, 0)?).ok()?;
            let body = bytes.get(HEADER..length)?;
            let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
            let rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
            let sequence = word(bytes, 8)?;
            let message = Message {
                kind,
                sequence,
                body,
            };
            Some((message, rest))
        };
        match read() {
            Some((message, rest)) => {
                self.0 = rest;
                Some(Ok(message))
            }
            None => Some(Err(Errno::PROTO)),
        }
    }
}

/// Adds an attribute to the body of a request.
pub(super) fn push_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    // The values here are an address or a number.
    let length = 4 + value.len() as u16;
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_cut_into_messages() {
        let one = [&header(7, 0, 3, 5).unwrap()[..], b"hello\0\0\0"].concat();
        let two = [&header(8, 0, 3, 0).unwrap()[..]].concat();
        let packet = [&one[..], &two[..]].concat();
        let read: Vec<_> = Messages(&packet).map(|it| it.unwrap()).collect();
        assert_eq!((read[0].kind, read[0].body), (7, &b"hello"[..]));
        assert_eq!(
            (read[1].kind, read[1].body, read[1].sequence),
            (8, &b""[..], 3)
        );
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn broken_packets_are_refused() {
        let good = header(7, 0, 3, 4).unwrap();
        for length in 1..good.len() {
            assert!(
                Messages(&good[..length]).next().unwrap().is_err(),
                "{length}"
            );
        }
        // A length beyond the packet, and one shorter than a header.
        for length in [HEADER + 4, HEADER - 1, 0] {
            let mut bad = good;
            bad[..4].copy_from_slice(&(length as u32).to_ne_bytes());
            assert!(Messages(&bad).next().unwrap().is_err(), "{length}");
        }
    }

    #[test]
    fn attributes_are_padded() {
        let mut body = Vec::new();
        push_attribute(&mut body, 1, b"abcde");
        push_attribute(&mut body, 2, b"");
        assert_eq!(body.len(), 12 + 4);
        assert_eq!(body[..2], 9_u16.to_ne_bytes());
    }
}
