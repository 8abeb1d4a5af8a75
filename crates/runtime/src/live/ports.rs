//! Ports of the host that lead into a vault's sandboxes, and where commands listen.
//!
//! A forward belongs to the vault and not to a sandbox: each connection goes to whatever sandbox is live then. It ends with
//! the vault, with the daemon, or when it is removed. It keeps no view open: without a command that runs nobody listens.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, Weak};

use avfs_net::{Forward, Inside, Way};
use avfs_sandbox::{ListenAddress, Owners, Sandbox, SocketKind};
use avfs_vault::{ExecId, JournalEvent, NewJournalEntry, Vault, VaultId, VaultName, VaultPath};
use serde_json::json;

use crate::gate::Verb;
use crate::live::network::LiveNetwork;
use crate::runtime::{Inner, Runtime, Select, lock};
use crate::session::Session;
use crate::{Error, Result};

/// The most forwards of all vaults.
const FORWARDS_MAX: usize = 256;
/// The most listeners of one listing.
const LISTED_MAX: usize = 1_000;
/// How many sandboxes of a vault are tried for one connection: those of read-only commands are apart.
const SANDBOXES_MAX: usize = 8;

/// What a forward leads to, as commands inside call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guest {
    /// A TCP port of the sandbox's loopback interface.
    Port(NonZeroU16),
    /// A Unix socket.
    Socket(VaultPath),
}

impl FromStr for Guest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Guest> {
        let invalid = |reason: String| Error::Invalid {
            what: "guest",
            reason,
        };
        if text.starts_with('/') {
            let path: VaultPath = text.parse()?;
            return match path.is_root() {
                true => Err(invalid("/ is no socket".into())),
                false => Ok(Guest::Socket(path)),
            };
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let port = text.parse().ok().filter(|_| digits).map(Guest::Port);
        port.ok_or_else(|| {
            invalid(format!(
                "{text:?} is neither a port from 1 to 65535 nor the absolute path of a Unix socket"
            ))
        })
    }
}

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Guest::Port(port) => port.fmt(f),
            Guest::Socket(path) => path.fmt(f),
        }
    }
}

/// One forward.
#[derive(Debug, Clone)]
pub struct PortInfo {
    pub vault: VaultName,
    pub guest: Guest,
    /// Where it listens on the host.
    pub host: SocketAddr,
    /// How many it has now.
    pub connections: usize,
}

/// Where commands of the vaults listen.
#[derive(Debug, Clone)]
pub struct ListeningPorts {
    pub ports: Vec<ListeningPort>,
    /// Whether these are all.
    pub is_complete: bool,
}

/// A socket on which a command listens.
#[derive(Debug, Clone)]
pub struct ListeningPort {
    pub vault: VaultName,
    pub at: ListeningAt,
    /// The command; several if it is one of them, none if that is not known.
    pub execs: Vec<ExecId>,
}

/// Where a command listens.
#[derive(Debug, Clone)]
pub enum ListeningAt {
    Tcp(SocketAddr),
    /// The path that the command gave: any bytes.
    Unix(Vec<u8>),
}

/// The forwards of all vaults.
#[derive(Default)]
pub(crate) struct Forwards {
    open: Mutex<Vec<Open>>,
}

struct Open {
    vault: VaultId,
    guest: Guest,
    forward: Forward,
}

impl Forwards {
    pub fn count(&self) -> usize {
        lock(&self.open).len()
    }

    /// Closes the ports of a vault, or those of them that lead to `guest`.
    fn close(&self, vault: VaultId, guest: Option<&Guest>) -> Vec<Open> {
        let is_meant =
            |open: &mut Open| open.vault == vault && guest.is_none_or(|guest| open.guest == *guest);
        lock(&self.open).extract_if(.., is_meant).collect()
    }

    /// Closes all ports.
    pub fn close_all(&self) {
        // Closing waits for connections to be cut, and nobody who asks for the list should.
        drop(std::mem::take(&mut *lock(&self.open)));
    }
}

impl Session {
    /// Has a port of the host lead to `guest`. With port 0 a free one is picked.
    pub fn port_forward(&self, vault: &Select, guest: Guest, host: SocketAddr) -> Result<PortInfo> {
        let vault = self.vault(vault, Verb::Govern)?;
        let forwards = &self.inner.forwards;
        let mut open = lock(&forwards.open);
        // A vault that is deleted meanwhile has its forwards closed after it is gone, so one of both notices the other.
        let vault = self.inner.vaults.by_id(vault.id)?;
        if open.len() >= FORWARDS_MAX {
            return Err(Error::TooManyForwards { most: FORWARDS_MAX });
        }
        let inside = IntoVault {
            runtime: Arc::downgrade(&self.inner),
            vault: vault.id,
            guest: guest.clone(),
        };
        let forward = self.inner.networks.forward(host, Arc::new(inside))?;
        self.record_port(JournalEvent::PortForward, &vault, &guest, forward.address())?;
        let info = info(&vault.name, &guest, &forward);
        open.push(Open {
            vault: vault.id,
            guest,
            forward,
        });
        Ok(info)
    }

    /// The forwards of a vault, or of all.
    pub fn ports(&self, vault: Option<&VaultName>) -> Result<Vec<PortInfo>> {
        let only = vault.map(|name| self.named(name, Verb::Read)).transpose()?;
        let mut ports = Vec::new();
        for open in lock(&self.inner.forwards.open).iter() {
            if only.as_ref().is_some_and(|vault| vault.id != open.vault) {
                continue;
            }
            // One that is being deleted has none.
            if let Ok(vault) = self.inner.vaults.by_id(open.vault) {
                ports.push(info(&vault.name, &open.guest, &open.forward));
            }
        }
        ports.sort_by(|a, b| (&a.vault, a.host).cmp(&(&b.vault, b.host)));
        Ok(ports)
    }

    /// Where commands of a vault, or of all, listen.
    pub fn listening(&self, vault: Option<&VaultName>) -> Result<ListeningPorts> {
        let networks = match vault {
            Some(name) => {
                let vault = self.named(name, Verb::Read)?;
                self.inner.networks.of(vault.id)
            }
            None => self.inner.networks.all(),
        };
        let mut found = ListeningPorts {
            ports: Vec::new(),
            is_complete: true,
        };
        for network in networks {
            let Ok(vault) = self.inner.vaults.by_id(network.vault()) else {
                continue;
            };
            // A sandbox that has ended meanwhile has no listeners.
            let listing = network.sandbox().and_then(|it| it.listening().ok());
            let Some(listing) = listing else {
                continue;
            };
            found.is_complete &= listing.is_complete;
            found
                .ports
                .extend(listing.listening.into_iter().map(|it| ListeningPort {
                    vault: vault.name.clone(),
                    at: at(it.at),
                    execs: execs(&network, it.owners),
                }));
        }
        found.is_complete &= found.ports.len() <= LISTED_MAX;
        found.ports.truncate(LISTED_MAX);
        found.ports.sort_by(|a, b| a.vault.cmp(&b.vault));
        Ok(found)
    }

    /// Closes the ports that lead to `guest`, or all of the vault's, and cuts their connections.
    pub fn port_remove(&self, vault: &Select, guest: Option<&Guest>) -> Result<Vec<PortInfo>> {
        let vault = self.vault(vault, Verb::Govern)?;
        let closed = self.inner.forwards.close(vault.id, guest);
        if let (Some(guest), true) = (guest, closed.is_empty()) {
            return Err(Error::NoForward {
                vault: vault.name.to_string(),
                guest: guest.to_string(),
            });
        }
        let mut gone = Vec::new();
        for Open { guest, forward, .. } in closed {
            let info = info(&vault.name, &guest, &forward);
            drop(forward);
            self.record_port(JournalEvent::PortRemove, &vault, &guest, info.host)?;
            gone.push(info);
        }
        Ok(gone)
    }

    fn record_port(
        &self,
        event: JournalEvent,
        vault: &Vault,
        guest: &Guest,
        host: SocketAddr,
    ) -> Result<()> {
        self.inner.vaults.record(NewJournalEntry {
            vault: Some(vault.id),
            exec: None,
            principal: self.principal(),
            operation: event.into(),
            details: json!({ "guest": guest.to_string(), "host": host.to_string() }),
        })?;
        Ok(())
    }
}

impl Runtime {
    /// Closes the ports of a vault that is gone.
    pub(crate) fn end_ports(&self, vault: VaultId) {
        drop(self.inner.forwards.close(vault, None));
    }
}

fn info(vault: &VaultName, guest: &Guest, forward: &Forward) -> PortInfo {
    PortInfo {
        vault: vault.clone(),
        guest: guest.clone(),
        host: forward.address(),
        connections: forward.connections(),
    }
}

fn at(address: ListenAddress) -> ListeningAt {
    match address {
        ListenAddress::Tcp(address) => ListeningAt::Tcp(address),
        ListenAddress::Unix(path) => ListeningAt::Unix(path.into_os_string().into_vec()),
    }
}

fn execs(network: &LiveNetwork, owners: Owners) -> Vec<ExecId> {
    let keys = match owners {
        Owners::One(key) => vec![key],
        Owners::AnyOf(keys) => keys,
        Owners::Unknown => Vec::new(),
    };
    keys.into_iter()
        .filter_map(|key| network.exec(key))
        .collect()
}

/// The way into whatever sandboxes a vault has when a connection is made.
struct IntoVault {
    runtime: Weak<Inner>,
    vault: VaultId,
    guest: Guest,
}

impl Inside for IntoVault {
    fn ways(&self) -> io::Result<Vec<Way>> {
        let inner = self.runtime.upgrade().ok_or(io::ErrorKind::NotConnected)?;
        let networks = inner.networks.of(self.vault);
        // The newest first: a view that rests has an older one.
        let sandboxes = networks.iter().rev().filter_map(|it| it.sandbox());
        let mut ways = Vec::new();
        for sandbox in sandboxes.take(SANDBOXES_MAX) {
            match &self.guest {
                Guest::Port(port) => ways.extend(to_port(&sandbox, *port)),
                Guest::Socket(path) => {
                    let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
                    if let Ok(stream) = sandbox.connect_unix(path) {
                        return Ok(vec![Way::Unix(stream)]);
                    }
                }
            }
        }
        Ok(ways)
    }
}

/// Sockets for a port of the sandbox's loopback, by IPv4 and IPv6; none if it has ended.
fn to_port(sandbox: &Sandbox, port: NonZeroU16) -> Vec<Way> {
    let kinds = [SocketKind::Tcp4, SocketKind::Tcp6];
    let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let known = 1 + usize::from(sandbox.has_ipv6());
    let sockets = sandbox.sockets(&kinds[..known]).unwrap_or_default();
    let sockets = sockets.into_iter().zip(addresses);
    let ways = sockets.map(|(socket, ip)| Way::Tcp(socket, SocketAddr::new(ip, port.get())));
    ways.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_a_port_or_a_path() {
        for text in ["1", "3000", "65535", "/run/app.sock", "/a b"] {
            let guest: Guest = text.parse().unwrap();
            assert_eq!(guest.to_string(), text);
        }
        let odd = [
            "",
            "0",
            "65536",
            "-1",
            "+80",
            " 80",
            "80 ",
            "0x50",
            "8080/tcp",
            "http",
            "app.sock",
            "./app.sock",
            "/",
            "//",
            "/..",
            "/a\0b",
        ];
        for text in odd {
            assert!(text.parse::<Guest>().is_err(), "{text:?}");
        }
        assert_eq!("080".parse::<Guest>().unwrap().to_string(), "80");
    }
}
