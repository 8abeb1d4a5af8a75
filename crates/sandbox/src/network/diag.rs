//! Asks the kernel for the sockets of a network namespace (sock_diag).
//!
//! Reading /proc/net/tcp walks a table of the whole host, which takes milliseconds, and a path in /proc/net/unix may contain
//! line breaks. Here one connection is found by its two addresses, and names come with their length.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;

use super::netlink::{Netlink, Want, word};
use super::owners::Transport;

const BY_FAMILY: u16 = 20;
const LISTENING: u32 = 1 << 10;
const ALL_STATES: u32 = u32::MAX;
const STATE_LISTEN: u8 = 10;

/// The length of `inet_diag_msg`, before its attributes.
const INET_MESSAGE: usize = 72;
const ATTRIBUTE_MARK: u16 = 15;
/// The length of `unix_diag_msg`, before its attributes.
const UNIX_MESSAGE: usize = 16;
const ATTRIBUTE_NAME: u16 = 0;
const SHOW_NAME: u32 = 1;

/// A TCP or UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InetSocket {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub inode: u32,
    /// Its SO_MARK, which commands cannot set.
    pub mark: u32,
    state: u8,
}

/// A listening Unix socket with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnixSocket {
    pub path: Vec<u8>,
    pub inode: u32,
}

/// The inodes of the open sockets that may have sent what came from `client` to `server`; at most `most`.
///
/// A TCP connection has one socket. UDP sockets can share a port, and all that have it are returned.
pub(super) fn senders(
    diag: &mut Netlink,
    transport: Transport,
    (client, server): (SocketAddr, SocketAddr),
    most: usize,
) -> Result<Vec<u32>, Errno> {
    match transport {
        Transport::Tcp => {
            let found = connection(diag, client, server)?;
            Ok(found.map(|socket| socket.inode).into_iter().collect())
        }
        Transport::Udp => {
            let is_of_port = |socket: &InetSocket| socket.local.port() == client.port();
            let mut inodes = Vec::new();
            for family in [libc::AF_INET, libc::AF_INET6] {
                let any = Request::of_port(family, client.port());
                let found = any.all(diag, most.saturating_add(1), is_of_port)?;
                inodes.extend(found.iter().map(|socket| socket.inode));
            }
            if inodes.len() > most {
                return Err(Errno::TOOBIG);
            }
            Ok(inodes)
        }
    }
}

/// The client's socket of a connection, if it is still there and open.
fn connection(
    diag: &mut Netlink,
    client: SocketAddr,
    server: SocketAddr,
) -> Result<Option<InetSocket>, Errno> {
    let mut found = None;
    let request = Request::of_connection(client, server);
    let asked = diag.ask(BY_FAMILY, Want::One, &request.body(), |body| {
        found = parse_inet(body);
        false
    });
    match asked {
        Err(Errno::NOENT) => return Ok(None),
        done => done?,
    }
    // The kernel answers with a listener at the client's address if there is no connection.
    let is_it = |socket: &InetSocket| {
        socket.state != STATE_LISTEN
            && (socket.local, socket.remote) == (client, server)
            && socket.inode != 0
    };
    Ok(found.filter(is_it))
}

/// TCP sockets that listen; at most `most`.
pub(super) fn tcp_listeners(diag: &mut Netlink, most: usize) -> Result<Vec<InetSocket>, Errno> {
    let mut all = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let left = most - all.len();
        let is_open = |socket: &InetSocket| socket.state == STATE_LISTEN;
        all.extend(Request::listening(family).all(diag, left, is_open)?);
    }
    Ok(all)
}

/// Unix sockets that listen at an absolute path; at most `most`.
pub(super) fn unix_listeners(diag: &mut Netlink, most: usize) -> Result<Vec<UnixSocket>, Errno> {
    let mut body = vec![libc::AF_UNIX as u8, 0, 0, 0];
    for number in [LISTENING, 0, SHOW_NAME, u32::MAX, u32::MAX] {
        body.extend(number.to_ne_bytes());
    }
    let mut all = Vec::new();
    diag.ask(BY_FAMILY, Want::All, &body, |body| {
        all.extend(parse_unix(body));
        all.len() < most
    })?;
    Ok(all)
}

/// A request for TCP or UDP sockets (`inet_diag_req_v2`).
struct Request {
    family: i32,
    protocol: i32,
    states: u32,
    local: SocketAddr,
    remote: SocketAddr,
}

const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl Request {
    fn of_connection(client: SocketAddr, server: SocketAddr) -> Request {
        Request {
            family: match client {
                SocketAddr::V4(_) => libc::AF_INET,
                SocketAddr::V6(_) => libc::AF_INET6,
            },
            protocol: libc::IPPROTO_TCP,
            states: ALL_STATES,
            local: client,
            remote: server,
        }
    }

    fn of_port(family: i32, port: u16) -> Request {
        Request {
            family,
            protocol: libc::IPPROTO_UDP,
            states: ALL_STATES,
            local: SocketAddr::new(ANY.ip(), port),
            remote: ANY,
        }
    }

    fn listening(family: i32) -> Request {
        Request {
            family,
            protocol: libc::IPPROTO_TCP,
            states: LISTENING,
            local: ANY,
            remote: ANY,
        }
    }

    fn body(&self) -> Vec<u8> {
        let mut body = vec![self.family as u8, self.protocol as u8, 0, 0];
        body.extend(self.states.to_ne_bytes());
        body.extend(self.local.port().to_be_bytes());
        body.extend(self.remote.port().to_be_bytes());
        for address in [self.local.ip(), self.remote.ip()] {
            let mut octets = [0; 16];
            match address {
                IpAddr::V4(address) => octets[..4].copy_from_slice(&address.octets()),
                IpAddr::V6(address) => octets = address.octets(),
            }
            body.extend(octets);
        }
        // Any interface, any cookie.
        for number in [0, u32::MAX, u32::MAX] {
            body.extend(number.to_ne_bytes());
        }
        body
    }

    fn all(
        &self,
        diag: &mut Netlink,
        most: usize,
        wanted: impl Fn(&InetSocket) -> bool,
    ) -> Result<Vec<InetSocket>, Errno> {
        let mut all = Vec::new();
        diag.ask(BY_FAMILY, Want::All, &self.body(), |body| {
            all.extend(parse_inet(body).filter(&wanted));
            all.len() < most
        })?;
        all.truncate(most);
        Ok(all)
    }
}

/// Reads an `inet_diag_msg`.
fn parse_inet(body: &[u8]) -> Option<InetSocket> {
    let attributes = body.get(INET_MESSAGE..)?;
    let family = i32::from(body[0]);
    let address = |port: usize, at: usize| -> Option<SocketAddr> {
        let port = u16::from_be_bytes([body[port], body[port + 1]]);
        let octets: [u8; 16] = body[at..at + 16].try_into().ok()?;
        let ip = match family {
            libc::AF_INET => IpAddr::from([octets[0], octets[1], octets[2], octets[3]]),
            // A socket for IPv6 that has an IPv4 connection.
            libc::AF_INET6 => Ipv6Addr::from(octets).to_canonical(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    };
    let mark = attribute(attributes, ATTRIBUTE_MARK).and_then(|value| word(value, 0));
    Some(InetSocket {
        state: body[1],
        local: address(4, 8)?,
        remote: address(6, 24)?,
        inode: word(body, 68)?,
        mark: mark.unwrap_or(0),
    })
}

/// Reads a `unix_diag_msg`; `None` for a socket without an absolute path.
fn parse_unix(body: &[u8]) -> Option<UnixSocket> {
    let attributes = body.get(UNIX_MESSAGE..)?;
    if (i32::from(body[1]), body[2]) != (libc::SOCK_STREAM, STATE_LISTEN) {
        return None;
    }
    let name = attribute(attributes, ATTRIBUTE_NAME)?;
    // Some kernels count the terminating NUL.
    let path = name.strip_suffix(b"\0").unwrap_or(name);
    if path.first() != Some(&b'/') || path.contains(&0) {
        return None;
    }
    Some(UnixSocket {
        path: path.to_vec(),
        inode: word(body, 4)?,
    })
}

/// The value of the first attribute of this kind.
fn attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    while attributes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        let this = u16::from_ne_bytes([attributes[2], attributes[3]]);
        let value = attributes.get(4..length)?;
        if this == kind {
            return Some(value);
        }
        attributes = attributes
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::netlink::push_attribute;
    use super::*;

    fn inet_message(family: i32, state: u8) -> Vec<u8> {
        let client = "198.18.0.7:50000".parse().unwrap();
        let server = "198.18.0.9:443".parse().unwrap();
        let request = Request::of_connection(client, server).body();
        // Both begin with four bytes and have the addresses in the same form.
        let mut body = vec![family as u8, state, 0, 0];
        body.extend(&request[8..56]);
        body.extend([0; 16]);
        body.extend(4242_u32.to_ne_bytes());
        push_attribute(&mut body, 8, b"x");
        push_attribute(&mut body, ATTRIBUTE_MARK, &7_u32.to_ne_bytes());
        body
    }

    #[test]
    fn messages_about_connections_are_read() {
        let socket = parse_inet(&inet_message(libc::AF_INET, 1)).unwrap();
        assert_eq!(socket.local, "198.18.0.7:50000".parse().unwrap());
        assert_eq!(socket.remote, "198.18.0.9:443".parse().unwrap());
        assert_eq!((socket.inode, socket.mark, socket.state), (4242, 7, 1));
    }

    #[test]
    fn messages_that_are_cut_are_refused() {
        let whole = inet_message(libc::AF_INET, 1);
        for length in 0..INET_MESSAGE {
            assert_eq!(parse_inet(&whole[..length]), None, "{length}");
        }
        for length in INET_MESSAGE..whole.len() {
            assert_eq!(parse_inet(&whole[..length]).unwrap().mark, 0, "{length}");
        }
        assert_eq!(parse_inet(&inet_message(libc::AF_UNIX, 1)), None);
        assert_eq!(attribute(&[0, 0, 15, 0], 15), None);
        assert_eq!(attribute(&[255, 255, 15, 0], 15), None);
    }

    #[test]
    fn only_absolute_paths_are_listed() {
        let message = |state: u8, name: &[u8]| {
            let mut body = vec![libc::AF_UNIX as u8, libc::SOCK_STREAM as u8, state, 0];
            body.extend(9_u32.to_ne_bytes());
            body.extend([0; 8]);
            push_attribute(&mut body, ATTRIBUTE_NAME, name);
            parse_unix(&body).map(|socket| socket.path)
        };
        let odd = b"/run/a\nb 1";
        assert_eq!(message(STATE_LISTEN, odd), Some(odd.to_vec()));
        assert_eq!(message(STATE_LISTEN, b"/s\0"), Some(b"/s".to_vec()));
        for name in [&b"\0abstract"[..], b"relative", b"", b"/a\0b"] {
            assert_eq!(message(STATE_LISTEN, name), None, "{name:?}");
        }
        assert_eq!(message(1, b"/s"), None);
    }
}
