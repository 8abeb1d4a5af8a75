//! What the sandbox's side provides: sockets in its network namespace, and which command a connection comes from.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use avfs_policy::AddressRange;

use crate::attempts::Attempt;
use crate::exec_key::ExecKey;

/// Makes sockets in a sandbox's network namespace. Calls may block.
///
/// `local 198.18.0.0/15 dev lo` must be a route in the namespace, so that every address of the range is its own. Where there is IPv6,
/// `local fd61:7666:7300::/64 dev lo` must be one too.
pub trait Sockets: Send + Sync {
    /// A listening TCP socket. One on an IPv6 address is for IPv6 alone (`IPV6_V6ONLY`), and may be bound to
    /// an address that is the namespace's own only by a route (`IPV6_FREEBIND`). A port that is taken is [`io::ErrorKind::AddrInUse`].
    fn tcp_listener(&self, address: SocketAddr) -> io::Result<TcpListener>;
    /// Several of them, in the same order.
    fn tcp_listeners(&self, addresses: &[SocketAddr]) -> Vec<io::Result<TcpListener>> {
        let addresses = addresses.iter();
        addresses.map(|one| self.tcp_listener(*one)).collect()
    }
    /// Whether the namespace has IPv6. Must not block.
    fn has_ipv6(&self) -> bool;
    /// A bound UDP socket.
    fn udp(&self, address: SocketAddr) -> io::Result<UdpSocket>;
    /// A bound UDP socket, and a listening TCP socket on the same address.
    fn udp_and_listener(&self, address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
        Ok((self.udp(address)?, self.tcp_listener(address)?))
    }
    /// Makes every address of the range one of the namespace's own (`local RANGE dev lo`). A range that is a route already
    /// is no error.
    fn route(&self, range: AddressRange) -> io::Result<()>;
}

/// Says which commands a connection may come from. Calls may block.
pub trait Attribution: Send + Sync {
    /// The commands that hold the socket at the client's end. Several where it is not certain, none where it is not known.
    fn candidates(&self, ends: Ends) -> Vec<ExecKey>;
}

/// Is told what happens while commands run.
pub trait Sink: Send + Sync {
    /// Called when a command, one of the candidates, attempts something of a kind that it has not attempted before, and so a bounded
    /// number of times per command. Must not block.
    fn attempted(&self, attempt: &Attempt);
}

/// The two ends of a connection, or of a datagram, in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub transport: Transport,
    /// The command's.
    pub client: SocketAddr,
    /// The listener's.
    pub server: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Where a sandbox's names are resolved.
pub const DNS: SocketAddr = SocketAddr::new(LOOPBACK, 53);
/// The HTTP proxy. The ports are below 1024, where commands cannot bind, so that neither takes the other's.
pub const HTTP_PROXY: SocketAddr = SocketAddr::new(LOOPBACK, 808);
/// The SOCKS proxy (5, 4 and 4a).
pub const SOCKS_PROXY: SocketAddr = SocketAddr::new(LOOPBACK, 108);
