//! One sandbox as it is served: what all doors share.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use avfs_policy::{AddressRange, HostName, HostPattern, Ports};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::authority::{Authority, AuthorityMaker, OwnAuthority};
use crate::config::{Bounds, Config};
use crate::error::Error;
use crate::execs::Execs;
use crate::names::{Addresses, Names};
use crate::sandbox::Sockets;
use crate::terms::Terms;
use crate::trust::Trust;

/// What all sandboxes share.
pub(crate) struct Common {
    pub(crate) config: Config,
    pub(crate) trust: Trust,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) resolutions: Arc<Semaphore>,
    /// Connections from the host into sandboxes.
    pub(crate) forwarded: Arc<Semaphore>,
    /// Sockets being made for these.
    pub(crate) forward_dials: Arc<Semaphore>,
}

/// One sandbox.
pub(crate) struct Service {
    pub(crate) common: Arc<Common>,
    pub(crate) execs: Arc<Execs>,
    authority: Option<OwnAuthority>,
    pub(crate) names: Names,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) questions: Arc<Semaphore>,
    pub(crate) stop: CancellationToken,
    pub(crate) sockets: Arc<dyn Sockets>,
    pub(crate) handle: Handle,
    /// Whether somebody has asked for the IPv6 address of a name. Nobody knows one before that, so nothing listens there.
    asked_v6: AtomicBool,
    /// Set once all that is listed listens there.
    open_v6: OnceLock<()>,
    opened: Mutex<Opened>,
}

#[derive(Default)]
struct Opened {
    listeners: HashSet<SocketAddr>,
    routes: HashSet<AddressRange>,
}

/// Wildcard listeners are below this port only: above it they would take the port from commands.
pub(crate) const COMMANDS_PORTS: u16 = 1024;
/// Where connections to names are expected under rules that name no port.
const USUAL_PORTS: [u16; 3] = [22, 80, 443];

impl Service {
    pub(crate) fn new(
        common: Arc<Common>,
        execs: Arc<Execs>,
        authority: Option<AuthorityMaker>,
        sockets: Arc<dyn Sockets>,
        handle: Handle,
        stop: CancellationToken,
    ) -> Service {
        let bounds = common.config.bounds;
        Service {
            common,
            execs,
            authority: authority.map(OwnAuthority::new),
            names: Names::new(bounds.names_per_sandbox),
            connections: Arc::new(Semaphore::new(bounds.connections_per_sandbox)),
            questions: Arc::new(Semaphore::new(bounds.questions)),
            stop,
            sockets,
            handle,
            asked_v6: AtomicBool::new(false),
            open_v6: OnceLock::new(),
            opened: Mutex::default(),
        }
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.common.config.bounds
    }

    /// The authority of the sandbox, which is made if it is not there. Blocks.
    pub(crate) fn authority(&self) -> Result<Arc<Authority>, Error> {
        let own = self.authority.as_ref().ok_or(Error::NoAuthority)?;
        own.get()
    }

    /// That authority, if it is there.
    pub(crate) fn made_authority(&self) -> Result<Arc<Authority>, Error> {
        let made = self.authority.as_ref().and_then(OwnAuthority::made);
        made.ok_or(Error::NoAuthority)
    }

    /// Has names reached by IPv6 as well. `open` opens what all terms list by then. Blocks while another thread does it.
    pub(crate) fn open_v6(&self, open: impl FnOnce()) {
        self.open_v6.get_or_init(|| {
            self.asked_v6.store(true, Ordering::Release);
            open();
        });
    }

    pub(crate) fn is_open_v6(&self) -> bool {
        self.open_v6.get().is_some()
    }

    fn has_asked_v6(&self) -> bool {
        self.asked_v6.load(Ordering::Acquire)
    }

    /// Notes that an address is listened on. `false` when it is already, or when there are too many.
    pub(crate) fn claim(&self, address: SocketAddr) -> bool {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let room = opened.listeners.len() < self.bounds().listeners_per_sandbox;
        room && opened.listeners.insert(address)
    }

    pub(crate) fn is_claimed(&self, address: SocketAddr) -> bool {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.listeners.contains(&address)
    }

    pub(crate) fn unclaim(&self, address: SocketAddr) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.listeners.remove(&address);
    }

    /// Makes the ranges that the terms list the sandbox's own, so that connections to them arrive here. Loopback is the
    /// sandbox's own already, and means the sandbox.
    pub(crate) fn open_routes(&self, terms: &Terms) -> Result<(), Error> {
        for rule in terms.list.rules() {
            let HostPattern::Range(range) = &rule.pattern else {
                continue;
            };
            let (first, bits) = range.parts();
            // A route for everything would make the sandbox answer for addresses that no rule lists.
            if first.is_loopback() || bits == 0 {
                continue;
            }
            let new = {
                let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
                opened.routes.insert(*range)
            };
            if new {
                let made = self.sockets.route(*range);
                made.map_err(|error| Error::Route(*range, error))?;
            }
        }
        Ok(())
    }

    /// The addresses to listen on for what the terms list, as far as they name it.
    pub(crate) fn listed_addresses(&self, terms: &Terms) -> Vec<SocketAddr> {
        let mut addresses: Vec<SocketAddr> = Vec::new();
        let any = terms.observe
            || terms
                .list
                .rules()
                .iter()
                .any(|rule| rule.ports == Ports::Any);
        if any {
            addresses.extend(USUAL_PORTS.iter().flat_map(|port| self.wildcards(*port)));
        }
        for rule in terms.list.rules() {
            for port in rule.ports.named() {
                let own = match &rule.pattern {
                    HostPattern::Range(range) if port < COMMANDS_PORTS && range.is_v6() => {
                        vec![wildcard_v6(port)]
                    }
                    _ if port < COMMANDS_PORTS => self.wildcards(port),
                    HostPattern::Name(name) => self.own_addresses(name, port),
                    HostPattern::Range(range) => {
                        let own = single(range).map(|ip| SocketAddr::new(ip, port));
                        own.into_iter().collect()
                    }
                    HostPattern::Below(_) | HostPattern::AnyName | HostPattern::Registries => {
                        Vec::new()
                    }
                };
                addresses.extend(own);
            }
        }
        addresses.sort();
        addresses.dedup();
        addresses
    }

    /// The addresses to listen on for a name that a client has just asked for, under rules that match it.
    pub(crate) fn addresses_of_name(&self, name: &HostName) -> Vec<SocketAddr> {
        let host = avfs_policy::Host::Name(name.clone());
        let all = self.execs.all_terms();
        let rules = all.iter().flat_map(|terms| terms.list.rules());
        let ports = rules
            .filter(|rule| rule.pattern.matches(&host))
            .flat_map(|rule| rule.ports.named());
        let high = ports.filter(|port| *port >= COMMANDS_PORTS);
        high.flat_map(|port| self.own_addresses(name, port))
            .collect()
    }

    fn own_addresses(&self, name: &HostName, port: u16) -> Vec<SocketAddr> {
        let Some(Addresses { v4, v6 }) = self.names.addresses_of(name) else {
            return Vec::new();
        };
        let v6 = self.has_asked_v6().then_some(IpAddr::V6(v6));
        let both = [IpAddr::V4(v4)].into_iter().chain(v6);
        both.map(|address| SocketAddr::new(address, port)).collect()
    }

    fn wildcards(&self, port: u16) -> Vec<SocketAddr> {
        let v6 = self.has_asked_v6().then(|| wildcard_v6(port));
        [wildcard(port)].into_iter().chain(v6).collect()
    }
}

fn wildcard(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)
}

fn wildcard_v6(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)
}

/// The address of a range of one, unless it is the sandbox's own loopback.
fn single(range: &AddressRange) -> Option<IpAddr> {
    let (first, _) = range.parts();
    let one = AddressRange::single(first) == *range;
    (one && !first.is_loopback()).then_some(first)
}
