//! Sockets that the agent makes and the daemon checks.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, SocketAddrAny, SocketFlags, SocketType, getpeername, getsockname,
    ipproto, socket_with, sockopt,
};
use serde::{Deserialize, Serialize};

use super::namespace::Stamp;

/// The kinds of sockets that a sandbox can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SocketKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4.
    Udp4,
    /// UDP over IPv6.
    Udp6,
}

impl SocketKind {
    fn family(self) -> AddressFamily {
        match self {
            SocketKind::Tcp4 | SocketKind::Udp4 => AddressFamily::INET,
            SocketKind::Tcp6 | SocketKind::Udp6 => AddressFamily::INET6,
        }
    }

    fn protocol(self) -> (SocketType, Protocol) {
        match self {
            SocketKind::Tcp4 | SocketKind::Tcp6 => (SocketType::STREAM, ipproto::TCP),
            SocketKind::Udp4 | SocketKind::Udp6 => (SocketType::DGRAM, ipproto::UDP),
        }
    }
}

/// Makes a socket in the namespace of this process.
pub(crate) fn make(kind: SocketKind) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (way, protocol) = kind.protocol();
    socket_with(kind.family(), way, flags, Some(protocol))
}

/// Why a descriptor that an agent passed is not the fresh socket that was asked for.
pub(super) fn check(fd: &OwnedFd, kind: SocketKind, stamp: Stamp) -> Result<(), &'static str> {
    let (way, protocol) = kind.protocol();
    let is_kind = sockopt::socket_domain(fd) == Ok(kind.family())
        && sockopt::socket_type(fd) == Ok(way)
        && sockopt::socket_protocol(fd) == Ok(Some(protocol));
    if !is_kind {
        return Err("not a socket of the kind that was asked for");
    }
    if Stamp::of(fd.as_fd()) != Ok(stamp) {
        return Err("a socket of another network");
    }
    if getpeername(fd).map(drop) != Err(Errno::NOTCONN) {
        return Err("a socket that is connected already");
    }
    let is_bound = getsockname(fd).map_or(true, |address| port(address) != Some(0));
    if is_bound || sockopt::socket_acceptconn(fd) != Ok(false) {
        return Err("a socket that is bound already");
    }
    let flags = rustix::fs::fcntl_getfl(fd);
    if !flags.is_ok_and(|flags| flags.contains(rustix::fs::OFlags::NONBLOCK)) {
        return Err("a socket that blocks");
    }
    Ok(())
}

fn port(address: SocketAddrAny) -> Option<u16> {
    let address = std::net::SocketAddr::try_from(address).ok()?;
    Some(address.port())
}
