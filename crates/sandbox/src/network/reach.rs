//! What the daemon can do with a sandbox's network.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{bind, connect, listen, sockopt};

use super::namespace::OwnNetwork;
use super::range::AddressRange;
use super::sockets::{SocketKind, check};
use crate::error::{During, Error, Result};
use crate::protocol::{AgentReply, AgentRequest, DESCRIPTORS_MAX};
use crate::sandbox::Sandbox;
use crate::sys;

/// How long a listener inside may take to have room for a connection.
const CONNECTING: Duration = Duration::from_secs(2);
/// The SO_MARK of the daemon's listeners. Commands cannot set a mark.
pub(super) const MARK: u32 = 0x6176_6673;
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 1024;

impl Sandbox {
    /// Whether it has a network of its own, and not the host's.
    pub fn has_own_network(&self) -> bool {
        self.network.is_some()
    }

    /// Whether its network has IPv6; false if it has the host's network.
    pub fn has_ipv6(&self) -> bool {
        self.network.as_ref().is_some_and(|network| network.ipv6)
    }

    /// Makes all addresses of `range` local inside, so that listeners there get connections to them.
    pub fn route_locally(&self, range: AddressRange) -> Result<()> {
        let done = self.own_network()?.route_locally(range);
        Ok(done.during(|| format!("make {range} local"))?)
    }

    /// New sockets of its network: not bound, not connected, non-blocking, closed on exec. At most 64.
    pub fn sockets(&self, kinds: &[SocketKind]) -> Result<Vec<OwnedFd>> {
        let network = self.own_network()?;
        if kinds.len() > DESCRIPTORS_MAX {
            return Err(Error::Invalid {
                what: "number of sockets",
                reason: format!("{} where {DESCRIPTORS_MAX} are possible", kinds.len()),
            });
        }
        let request = AgentRequest::Sockets(kinds.to_vec());
        let fds = match self.ask_for_descriptors(&request)? {
            (AgentReply::Sockets, fds) => fds,
            (AgentReply::Failed(fault), _) => return Err(Error::Agent(fault)),
            _ => return Err(malformed("not the reply to this request")),
        };
        if fds.len() != kinds.len() {
            return Err(malformed("not as many sockets as were asked for"));
        }
        for (fd, kind) in fds.iter().zip(kinds) {
            check(fd, *kind, network.stamp).map_err(malformed)?;
        }
        Ok(fds)
    }

    /// A non-blocking TCP listener inside. A port that a command uses is EADDRINUSE.
    ///
    /// On an IPv6 address it serves IPv6 only. The address may be any that is local inside.
    pub fn listener(&self, address: SocketAddr) -> Result<TcpListener> {
        listening(self.bound(tcp(address), address)?, address)
    }

    /// Listeners as above, with one question to the agent for 64 of them. Each may fail by itself.
    pub fn listeners(&self, addresses: &[SocketAddr]) -> Result<Vec<Result<TcpListener>>> {
        let mut all = Vec::with_capacity(addresses.len());
        for some in addresses.chunks(DESCRIPTORS_MAX) {
            let kinds: Vec<SocketKind> = some.iter().copied().map(tcp).collect();
            let sockets = self.sockets(&kinds)?;
            let listeners = sockets.into_iter().zip(some).map(|(socket, address)| {
                let bound = bound_to(socket, *address)?;
                listening(bound, *address)
            });
            all.extend(listeners);
        }
        Ok(all)
    }

    /// A UDP socket and a listener as above on the same IPv4 address, with one question to the agent.
    pub fn udp_and_listener(&self, address: SocketAddrV4) -> Result<(UdpSocket, TcpListener)> {
        let mut sockets = self.sockets(&[SocketKind::Udp4, SocketKind::Tcp4])?;
        // `sockets` returns as many as were asked for.
        let (udp, tcp) = (sockets.remove(0), sockets.remove(0));
        let address = SocketAddr::V4(address);
        let udp = bound_to(udp, address)?;
        let tcp = listening(bound_to(tcp, address)?, address)?;
        Ok((udp.into(), tcp))
    }

    /// A non-blocking UDP socket inside.
    pub fn udp(&self, address: SocketAddr) -> Result<UdpSocket> {
        let kind = match address {
            SocketAddr::V4(_) => SocketKind::Udp4,
            SocketAddr::V6(_) => SocketKind::Udp6,
        };
        Ok(self.bound(kind, address)?.into())
    }

    /// A non-blocking connection to a port on the sandbox's own loopback, by IPv4, or by IPv6 if nothing listens there.
    /// A port without a listener is ECONNREFUSED at once.
    pub fn connect(&self, port: u16) -> Result<TcpStream> {
        let kinds = [SocketKind::Tcp4, SocketKind::Tcp6];
        let addresses = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ];
        let known = 1 + usize::from(self.has_ipv6());
        let sockets = self.sockets(&kinds[..known])?;
        let mut refused = Errno::CONNREFUSED;
        for (socket, address) in sockets.into_iter().zip(addresses) {
            match reach(socket.as_fd(), address) {
                Ok(()) => return Ok(socket.into()),
                Err(errno) => refused = errno,
            }
            if refused != Errno::CONNREFUSED {
                break;
            }
        }
        Ok(Err(refused).during(|| format!("connect to port {port} of a sandbox"))?)
    }

    fn bound(&self, kind: SocketKind, address: SocketAddr) -> Result<OwnedFd> {
        let mut sockets = self.sockets(&[kind])?;
        // `sockets` returns as many as were asked for.
        bound_to(sockets.remove(0), address)
    }

    pub(super) fn own_network(&self) -> Result<&OwnNetwork> {
        self.network.as_ref().ok_or(Error::HostNetwork)
    }
}

fn tcp(address: SocketAddr) -> SocketKind {
    match address {
        SocketAddr::V4(_) => SocketKind::Tcp4,
        SocketAddr::V6(_) => SocketKind::Tcp6,
    }
}

fn bound_to(socket: OwnedFd, address: SocketAddr) -> Result<OwnedFd> {
    prepare(&socket, address)
        .and_then(|()| bind(&socket, &address))
        .during(|| format!("bind {address} of a sandbox"))?;
    Ok(socket)
}

fn listening(socket: OwnedFd, address: SocketAddr) -> Result<TcpListener> {
    sys::set_mark(socket.as_fd(), MARK).during(|| "mark a listener")?;
    listen(&socket, BACKLOG).during(|| format!("listen at {address} of a sandbox"))?;
    Ok(socket.into())
}

/// Sets the options of a socket that will be bound.
fn prepare(socket: &OwnedFd, address: SocketAddr) -> std::result::Result<(), Errno> {
    if sockopt::socket_type(socket)? == rustix::net::SocketType::STREAM {
        // Connections of an earlier listener may linger.
        sockopt::set_socket_reuseaddr(socket, true)?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(socket, true)?;
        // IPv6 lets nobody bind an address that is local by a route only, unless this is set.
        sockopt::set_ipv6_freebind(socket, true)?;
    }
    Ok(())
}

/// Connects a non-blocking socket, and waits for the outcome.
fn reach(socket: BorrowedFd<'_>, address: SocketAddr) -> std::result::Result<(), Errno> {
    match connect(socket, &address) {
        Err(Errno::INPROGRESS) => {}
        done => return done,
    }
    let deadline = std::time::Instant::now() + CONNECTING;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let timeout = Timespec::try_from(left).map_err(|_| Errno::TIMEDOUT)?;
        let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::OUT)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) => return sockopt::socket_error(socket)?,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

pub(super) fn malformed(reason: &'static str) -> Error {
    Error::Malformed {
        peer: "agent",
        reason,
    }
}
