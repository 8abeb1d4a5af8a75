//! Whose socket it is.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{getpeername, getsockname};
use serde::{Deserialize, Serialize};

use super::diag;
use super::holders::SOCKETS_MAX;
use crate::keeper::lock;
use crate::plan::ExecKey;
use crate::protocol::{AgentReply, AgentRequest};
use crate::sandbox::Sandbox;
use crate::sys;

/// When it looks again for a certain answer.
const AGAIN: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(8)];

/// The commands that have a socket.
///
/// Whoever decides by it must allow only what all candidates may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owners {
    /// This one and no other.
    One(ExecKey),
    /// One or more of these; at least two are named.
    AnyOf(Vec<ExecKey>),
    /// It could be any command that runs, or one that has ended.
    Unknown,
}

/// How something was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A connection.
    Tcp,
    /// A datagram.
    Udp,
}

impl Sandbox {
    /// Who is at the other end of a connection that was accepted from one of its listeners.
    ///
    /// A connection that the other side has reset is nobody's: its addresses may belong to another one by now.
    pub fn owners_of(&self, accepted: impl AsFd) -> Owners {
        let accepted = accepted.as_fd();
        let Some((client, server)) = ends(accepted) else {
            return Owners::Unknown;
        };
        let owners = self.owners(Transport::Tcp, client, server);
        // As long as this end exists, the kernel gives the pair of addresses to no other connection.
        match sys::is_connected(accepted) {
            true => owners,
            false => Owners::Unknown,
        }
    }

    /// Who has the socket that sent something from `client` to `server`, which are addresses inside.
    ///
    /// If it is not certain, it looks again a few milliseconds later: a command that is about to start cannot be looked into.
    pub fn owners(&self, transport: Transport, client: SocketAddr, server: SocketAddr) -> Owners {
        let ends = (plain(client), plain(server));
        let mut owners = self.owners_now(transport, ends);
        for pause in AGAIN {
            if !matches!(owners, Owners::AnyOf(_)) {
                break;
            }
            std::thread::sleep(pause);
            owners = self.owners_now(transport, ends);
        }
        owners
    }

    fn owners_now(&self, transport: Transport, ends: (SocketAddr, SocketAddr)) -> Owners {
        let Ok(Some(inodes)) = self.senders(transport, ends) else {
            return Owners::Unknown;
        };
        let owners = self.holders(&inodes).and_then(unite);
        // Closed meanwhile, it may have belonged to a command that ended before the agent looked.
        match self.senders(transport, ends) {
            Ok(Some(again)) if again == inodes => owners.unwrap_or(Owners::Unknown),
            _ => Owners::Unknown,
        }
    }

    fn senders(
        &self,
        transport: Transport,
        ends: (SocketAddr, SocketAddr),
    ) -> Result<Option<Vec<u32>>, Errno> {
        let Ok(network) = self.own_network() else {
            return Ok(None);
        };
        let mut diag = lock(&network.diag);
        let inodes = diag::senders(&mut diag, transport, ends, SOCKETS_MAX)?;
        Ok(Some(inodes).filter(|inodes| !inodes.is_empty()))
    }

    /// Who has each of these sockets, as the agent found it; `None` without an answer.
    pub(super) fn holders(&self, inodes: &[u32]) -> Option<Vec<Owners>> {
        match self.ask(&AgentRequest::Holders(inodes.to_vec())) {
            Ok(AgentReply::Holders(owners)) if owners.len() == inodes.len() => Some(owners),
            _ => None,
        }
    }
}

/// Both ends of an accepted connection: the client's first.
fn ends(accepted: BorrowedFd<'_>) -> Option<(SocketAddr, SocketAddr)> {
    let client = SocketAddr::try_from(getpeername(accepted).ok()??).ok()?;
    let server = SocketAddr::try_from(getsockname(accepted).ok()?).ok()?;
    Some((client, server))
}

/// An IPv4 address is compared as such, in whatever form the socket has it.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The candidates for any of several sockets.
fn unite(all: Vec<Owners>) -> Option<Owners> {
    let mut keys = Vec::new();
    for owners in all {
        match owners {
            Owners::One(key) => keys.push(key),
            Owners::AnyOf(some) => keys.extend(some),
            Owners::Unknown => return None,
        }
    }
    keys.sort_unstable();
    keys.dedup();
    match keys[..] {
        [] => None,
        [only] => Some(Owners::One(only)),
        _ => Some(Owners::AnyOf(keys)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_united() {
        let [one, two] = [ExecKey(1), ExecKey(2)];
        let both = Owners::AnyOf(vec![one, two]);
        assert_eq!(unite(vec![Owners::One(one)]), Some(Owners::One(one)));
        assert_eq!(
            unite(vec![Owners::One(two), Owners::One(one), Owners::One(two)]),
            Some(both.clone())
        );
        assert_eq!(unite(vec![both.clone(), Owners::One(one)]), Some(both));
        assert_eq!(unite(vec![Owners::One(one), Owners::Unknown]), None);
        assert_eq!(unite(vec![]), None);
    }
}
