//! The daemon's handle on the network namespace of a sandbox.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Mutex;

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::net::{AddressFamily, netlink, sockopt};

use super::netlink::Netlink;
use super::range::AddressRange;
use super::routes;
use crate::error::{During, Error, Fault, Result};
use crate::keeper::lock;

/// Which network namespace: device and inode of its file, which nobody inside can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(u64, u64);

/// The network of a sandbox that has its own.
#[derive(Debug)]
pub(crate) struct OwnNetwork {
    routes: Mutex<Netlink>,
    /// Lists its sockets.
    pub(super) diag: Mutex<Netlink>,
    pub(super) stamp: Stamp,
    pub(super) ipv6: bool,
}

impl OwnNetwork {
    /// Checks what an agent passed.
    pub(crate) fn accept(routes: OwnedFd, diag: OwnedFd, ipv6: bool) -> Result<OwnNetwork> {
        let refuse = |reason| Error::Malformed {
            peer: "agent",
            reason,
        };
        for (fd, protocol) in [(&routes, None), (&diag, Some(netlink::SOCK_DIAG))] {
            let is_netlink = sockopt::socket_domain(fd) == Ok(AddressFamily::NETLINK);
            if !is_netlink || sockopt::socket_protocol(fd) != Ok(protocol) {
                return Err(refuse("not the netlink sockets of a new network"));
            }
        }
        let stamp = Stamp::of(routes.as_fd()).during(|| "look at a network namespace")?;
        let other = Stamp::of(diag.as_fd()).during(|| "look at a network namespace")?;
        if stamp != other || stamp == Stamp::own()? {
            return Err(refuse("netlink sockets of another network"));
        }
        Ok(OwnNetwork {
            routes: Mutex::new(routes.into()),
            diag: Mutex::new(diag.into()),
            stamp,
            ipv6,
        })
    }

    pub(super) fn route_locally(&self, range: AddressRange) -> std::result::Result<(), Errno> {
        routes::add_local(&mut lock(&self.routes), range)
    }
}

impl Stamp {
    /// The namespace that a socket belongs to.
    pub(super) fn of(socket: BorrowedFd<'_>) -> std::result::Result<Stamp, Errno> {
        const SIOCGSKNS: libc::Ioctl = 0x894c;
        // SAFETY: takes no argument, and returns a new descriptor or an error.
        let fd = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS) };
        if fd < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
        // SAFETY: the descriptor is new, so nobody else owns it. The kernel sets close-on-exec.
        let namespace = unsafe { OwnedFd::from_raw_fd(fd) };
        let stat = fstat(&namespace)?;
        Ok(Stamp(stat.st_dev, stat.st_ino))
    }

    /// The namespace of this process.
    fn own() -> std::result::Result<Stamp, Fault> {
        let stat = rustix::fs::stat("/proc/self/ns/net").during(|| "look at its own network")?;
        Ok(Stamp(stat.st_dev, stat.st_ino))
    }
}
