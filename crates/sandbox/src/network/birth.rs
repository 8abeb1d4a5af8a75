//! Sets a new network namespace up, while the agent still has its capabilities.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink;

use super::netlink::{Netlink, open};
use super::range::{FAKE_V4, FAKE_V6};
use super::routes;
use crate::error::{During, Fault};
use crate::sys;

/// What the daemon gets of a new network namespace. No other process may keep it.
pub(crate) struct Born {
    /// Changes routes. The kernel asks who made the socket as well as who uses it, so only one made now can.
    pub routes: OwnedFd,
    /// Lists sockets; the system call filter refuses it later.
    pub diag: OwnedFd,
    /// Whether there is IPv6.
    pub ipv6: bool,
}

/// Brings the loopback interface up, and makes the ranges of made-up addresses local.
pub(crate) fn set_up() -> Result<Born, Fault> {
    sys::loopback_up().during(|| "switch the loopback interface on")?;
    let socket = open(None).during(|| "make a routing socket")?;
    let mut routes = Netlink::from(socket);
    routes::add_local(&mut routes, FAKE_V4).during(|| format!("route {FAKE_V4}"))?;
    let ipv6 = match routes::add_local(&mut routes, FAKE_V6) {
        Ok(()) => true,
        // The kernel has no IPv6, or the host has disabled it.
        Err(Errno::AFNOSUPPORT | Errno::OPNOTSUPP | Errno::ACCESS | Errno::NODEV) => false,
        Err(errno) => Err(errno).during(|| format!("route {FAKE_V6}"))?,
    };
    let diag = open(Some(netlink::SOCK_DIAG)).during(|| "make a socket that lists sockets")?;
    Ok(Born {
        routes: routes.into(),
        diag,
        ipv6,
    })
}
