//! The network's door: where the daemon listens besides its socket, and on what conditions.

use super::hosts::Hosts;
use super::tls::{Tls, TlsFiles, Wire};
use crate::auth::jwt::Issuer;
use crate::bounds::{REMOTE_CONNECTIONS_MAX, REMOTE_CONNECTIONS_OF_ONE_MAX};
use crate::crowd::Room;
use crate::error::{Error, Result};
use crate::ops::caller::Peer;
use crate::serving::Door;
use rustix::net::sockopt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// After how long without a word the kernel asks whether a client is still there.
const SILENT_TIME: Duration = Duration::from_secs(60);

/// Where to listen, and for whom.
#[derive(Clone, Debug)]
pub struct Listen {
    pub address: SocketAddr,
    /// Other names of this machine than its addresses.
    pub hosts: Hosts,
    /// Whether keys may cross a network that anybody can read.
    pub plaintext: Plaintext,
    pub tls: Option<TlsFiles>,
    /// Whose tokens are accepted besides keys.
    pub issuer: Option<Issuer>,
}

/// Whether a listener without TLS may be reached from other machines.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Plaintext {
    /// Only this machine itself can connect.
    Loopback,
    /// The owner says that something else keeps the network private.
    Anywhere,
}

impl Listen {
    /// Refuses to send keys over a network in the clear.
    pub fn check(&self) -> Result<()> {
        let is_here = self.address.ip().to_canonical().is_loopback();
        match self.plaintext {
            Plaintext::Loopback if !is_here && self.tls.is_none() => Err(Error::Plaintext {
                address: self.address,
            }),
            _ => Ok(()),
        }
    }

    /// Binds the address. The port is known then, also where the kernel chose it.
    pub(crate) async fn bind(&self) -> Result<Network> {
        self.check()?;
        let failed = |source| Error::Listen {
            address: self.address,
            source,
        };
        let listener = TcpListener::bind(self.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let tls = self.tls.as_ref().map(Tls::open).transpose()?;
        Ok(Network {
            listener,
            address,
            tls,
        })
    }
}

/// A listener on the network.
pub(crate) struct Network {
    listener: TcpListener,
    pub address: SocketAddr,
    tls: Option<Tls>,
}

impl Door for Network {
    type Stream = TcpStream;
    type Open = Wire;

    const ROOM: Room = Room {
        total: REMOTE_CONNECTIONS_MAX,
        of_one: REMOTE_CONNECTIONS_OF_ONE_MAX,
        closes_idle: true,
    };

    async fn accept(&mut self) -> (TcpStream, Peer) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Answers are small and awaited.
                    let _ = stream.set_nodelay(true);
                    // A session whose client is cut off from the network would stay for ever.
                    let _ = sockopt::set_socket_keepalive(&stream, true)
                        .and_then(|()| sockopt::set_tcp_keepidle(&stream, SILENT_TIME));
                    let local = stream.local_addr().map(|local| local.ip());
                    let peer = Peer::Remote {
                        address: address.ip(),
                        local: local.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                    };
                    return (stream, peer);
                }
                // Out of descriptors, most likely: some connection will end.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    fn open(&self, stream: TcpStream) -> impl Future<Output = io::Result<Wire>> + Send + 'static {
        let acceptor = self.tls.as_ref().map(Tls::acceptor);
        async move {
            match acceptor {
                Some(acceptor) => Ok(Wire::Tls(Box::new(acceptor.accept(stream).await?))),
                None => Ok(Wire::Plain(stream)),
            }
        }
    }

    fn tell(&self, stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        match self.tls {
            // Plain text would mean nothing to the client.
            Some(_) => Ok(0),
            None => stream.try_write(bytes),
        }
    }
}
