//! The network of a live sandbox: its sockets are made in the sandbox and served by `avfs_net`, outside of it.
//!
//! A sandbox with a namespace of its own has this from the beginning, so that names are answered at once. What may be
//! reached is said for each exec, and can change while it runs.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use avfs_net::{
    Attempts, Attribution, AuthorityMaker, Cache, CachePlace, Ends, Fetched, Forward, HostsFile,
    Inside, Net, Served, Sockets, Terms, Transport, Upstream,
};
use avfs_policy::{AddressRange, HostPort};
use avfs_sandbox::{ExecKey, Owners, Sandbox};
use avfs_vault::{ExecId, VaultId};
use avfs_view::Layer;

use crate::live::authorities::Bundle;
use crate::live::host::HostProxies;
use crate::live::network_teller::{Journal, Left, Others, Teller, Told};
use crate::live::reserve::reserve_of;
use crate::runtime::lock;
use crate::{Error, Result};

/// Those that are served now, the oldest first.
pub(super) type Open = Arc<Mutex<Vec<Weak<LiveNetwork>>>>;
/// Below the home: what package registries answered.
const DOWNLOADS: &str = "downloads";
const DOWNLOADS_MAX: u64 = 5 << 30;

/// Where a home keeps what package registries answered.
pub fn downloads_place(home: &Path) -> CachePlace {
    CachePlace {
        directory: home.join(DOWNLOADS),
        max_bytes: DOWNLOADS_MAX,
        keep_free: reserve_of(home).unwrap_or(DOWNLOADS_MAX),
    }
}

/// The networks of all live sandboxes.
pub(crate) struct Networks {
    net: Net,
    /// Takes the keys of commands that have attempted something new.
    teller: Teller,
    /// What package registries answered.
    downloads: Cache,
    /// The authorities that the host trusts.
    bundle: Arc<Bundle>,
    /// Why nothing can be reached: the host names a proxy that cannot be used.
    fault: Option<Arc<str>>,
    open: Open,
    /// Keys of execs, which are never used twice.
    next: AtomicU64,
    /// Held while what a vault says about its network is compared and changed.
    pub changing: Mutex<()>,
}

impl Networks {
    /// The owner's own names are in the file `hosts` of the home. Proxies that cannot be used keep no command from running
    /// that needs none.
    pub fn new(proxies: &HostProxies, home: &Path) -> Networks {
        let (upstream, fault) = match proxies.upstream() {
            Ok(upstream) => (upstream, None),
            Err(error) => (Upstream::default(), Some(error.to_string().into())),
        };
        let downloads = Cache::new(downloads_place(home));
        let config = avfs_net::Config {
            cache: Some(downloads.clone()),
            resolver: Arc::new(HostsFile::new(home.join("hosts"))),
            upstream,
            ..avfs_net::Config::default()
        };
        Networks {
            net: Net::new(config),
            teller: Teller::default(),
            downloads,
            bundle: Arc::default(),
            fault,
            open: Open::default(),
            next: AtomicU64::new(1),
            changing: Mutex::default(),
        }
    }

    /// Serves a new sandbox, if it has a network of its own. `trust` is the directory in which it finds the authorities that it is to
    /// trust, once there are any ([`crate::live::authorities`]).
    pub fn serve(
        &self,
        vault: VaultId,
        sandbox: &Arc<Sandbox>,
        trust: PathBuf,
    ) -> Result<Option<Arc<LiveNetwork>>> {
        if !sandbox.has_own_network() {
            return Ok(None);
        }
        let inside = Arc::new(InSandbox(Arc::downgrade(sandbox)));
        let bundle = Arc::clone(&self.bundle);
        let authority: AuthorityMaker = Box::new(move || bundle.authority_in(&trust));
        let served = self.net.serve(
            inside.clone(),
            inside,
            self.teller.of(&self.open)?,
            Some(authority),
        )?;
        let network = Arc::new(LiveNetwork {
            vault,
            sandbox: Arc::downgrade(sandbox),
            served,
            fault: self.fault.clone(),
            online: Mutex::default(),
        });
        let mut open = lock(&self.open);
        open.retain(|network| network.strong_count() > 0);
        open.push(Arc::downgrade(&network));
        Ok(Some(network))
    }

    /// The directory that a new sandbox with this layer finds its authorities in.
    pub fn trust_beside(&self, layer: &Layer) -> Result<PathBuf> {
        let directory = layer.make_shown()?;
        let shown = self.bundle.show_in(&directory);
        shown.map_err(Error::io(
            "showing a sandbox the authorities that it trusts",
        ))?;
        Ok(directory)
    }

    pub fn next_key(&self) -> ExecKey {
        ExecKey(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Has every exec of every sandbox reach what it may reach now.
    pub fn refresh_all(&self) -> Result<()> {
        let open: Vec<_> = lock(&self.open).iter().filter_map(Weak::upgrade).collect();
        open.iter().try_for_each(|network| network.refresh())
    }

    /// The networks of a vault's sandboxes, the oldest first.
    pub fn of(&self, vault: VaultId) -> Vec<Arc<LiveNetwork>> {
        let mut live = self.all();
        live.retain(|network| network.vault == vault);
        live
    }

    /// The networks of all sandboxes, the oldest first.
    pub fn all(&self) -> Vec<Arc<LiveNetwork>> {
        lock(&self.open).iter().filter_map(Weak::upgrade).collect()
    }

    /// What package registries answered.
    pub fn downloads(&self) -> &Cache {
        &self.downloads
    }

    /// Gets a small file of a host, for the daemon itself. Blocks.
    pub fn fetch(
        &self,
        at: &HostPort,
        secure: bool,
        path: &str,
        authorization: Option<&str>,
    ) -> std::result::Result<Fetched, String> {
        if let Some(fault) = &self.fault {
            return Err(fault.to_string());
        }
        let fetched = self.net.fetch(at, secure, path, authorization);
        fetched.map_err(|error| error.to_string())
    }

    /// Has an address of the host lead to what `inside` says, until the answer is dropped.
    pub fn forward(&self, host: SocketAddr, inside: Arc<dyn Inside>) -> Result<Forward> {
        Ok(self.net.forward(host, inside)?)
    }
}

/// The network of one sandbox.
pub(crate) struct LiveNetwork {
    vault: VaultId,
    /// Not held: the network ends with the view that has both.
    sandbox: Weak<Sandbox>,
    served: Served,
    fault: Option<Arc<str>>,
    online: Mutex<BTreeMap<ExecKey, Present>>,
}

/// An exec whose network is served.
#[derive(Clone)]
struct Present {
    exec: ExecId,
    now: TermsNow,
    told: Arc<Told>,
}

/// The terms of an exec as its vault's settings are now; none to leave them as they are.
pub(crate) type TermsNow = Arc<dyn Fn() -> Result<Option<Terms>> + Send + Sync>;

impl LiveNetwork {
    /// Lets an exec reach what its terms say, until the answer is dropped. `now` gives its terms after a change.
    pub fn enter(
        self: &Arc<Self>,
        key: ExecKey,
        exec: ExecId,
        terms: Terms,
        now: TermsNow,
        journal: Journal,
    ) -> Result<Online> {
        let reaches = terms.observe || !terms.list.is_empty();
        if let Some(reason) = self.fault.as_ref().filter(|_| reaches) {
            return Err(Error::Invalid {
                what: "proxy of the host",
                reason: format!("{reason}; set HTTP_PROXY and HTTPS_PROXY, and restart the daemon"),
            });
        }
        let guard = self.served.enter(outside(key), terms)?;
        let told = Arc::new(Told::new(journal));
        let present = Present {
            exec,
            now,
            told: Arc::clone(&told),
        };
        lock(&self.online).insert(key, present);
        Ok(Online {
            network: Arc::clone(self),
            key,
            guard: Some(guard),
            told,
        })
    }

    /// Journals what an exec has attempted by now, if it still runs.
    pub(super) fn tell(&self, key: avfs_net::ExecKey) {
        let inner = u64::try_from(key.0).map(ExecKey);
        let present = inner
            .ok()
            .and_then(|key| lock(&self.online).get(&key).cloned());
        if let Some(present) = present {
            let others = |attempts: &Attempts| self.others(key, attempts);
            present.told.tell(|| self.served.take_attempts(key), others);
        }
    }

    /// The execs beside `own` that may have made these attempts.
    fn others(&self, own: avfs_net::ExecKey, attempts: &Attempts) -> Others {
        let candidates = attempts.list.iter().flat_map(|it| it.candidates.clone());
        let others = candidates.filter(|key| *key != own);
        let others = others.filter_map(|key| Some((key, self.exec_of(key)?)));
        others.collect()
    }

    /// Has every exec reach what it may reach now. Connections beyond that are cut.
    pub fn refresh(&self) -> Result<()> {
        let online = lock(&self.online).clone();
        for (key, present) in online {
            if let Some(terms) = (present.now)()? {
                self.served.update(outside(key), terms)?;
            }
        }
        Ok(())
    }

    fn exec_of(&self, key: avfs_net::ExecKey) -> Option<ExecId> {
        self.exec(ExecKey(u64::try_from(key.0).ok()?))
    }

    /// The exec with this key, while it runs.
    pub fn exec(&self, key: ExecKey) -> Option<ExecId> {
        lock(&self.online).get(&key).map(|present| present.exec)
    }

    pub fn vault(&self) -> VaultId {
        self.vault
    }

    /// None if it has ended.
    pub fn sandbox(&self) -> Option<Arc<Sandbox>> {
        self.sandbox.upgrade()
    }
}

/// An exec whose network is served.
pub(crate) struct Online {
    network: Arc<LiveNetwork>,
    key: ExecKey,
    /// There until it leaves.
    guard: Option<avfs_net::Guard>,
    told: Arc<Told>,
}

impl Online {
    /// Ends its network, and gives what it tried to reach, with the other execs that may have tried it.
    pub fn leave(mut self) -> Left {
        let own = outside(self.key);
        let guard = self.guard.take();
        let end = || guard.map(avfs_net::Guard::leave).unwrap_or_default();
        let (all, untold) = self.told.end(end);
        let others = self.network.others(own, &all);
        Left {
            all,
            untold,
            others,
        }
    }
}

impl Drop for Online {
    fn drop(&mut self) {
        lock(&self.network.online).remove(&self.key);
    }
}

fn outside(key: ExecKey) -> avfs_net::ExecKey {
    avfs_net::ExecKey(u128::from(key.0))
}

/// A sandbox, as its network needs it. Not held: the network ends with the view that has both.
struct InSandbox(Weak<Sandbox>);

impl InSandbox {
    fn get(&self) -> io::Result<Arc<Sandbox>> {
        let gone = || io::Error::new(io::ErrorKind::NotConnected, "the sandbox has ended");
        self.0.upgrade().ok_or_else(gone)
    }
}

/// With the kind that the kernel gave, by which a port that a command has is told from other failures.
fn as_io(error: avfs_sandbox::Error) -> io::Error {
    match error {
        avfs_sandbox::Error::System(fault) => {
            io::Error::new(io::Error::from_raw_os_error(fault.errno).kind(), fault)
        }
        other => io::Error::other(other),
    }
}

impl Sockets for InSandbox {
    fn tcp_listener(&self, address: SocketAddr) -> io::Result<TcpListener> {
        self.get()?.listener(address).map_err(as_io)
    }

    fn tcp_listeners(&self, addresses: &[SocketAddr]) -> Vec<io::Result<TcpListener>> {
        let made = self.get();
        let made = made.and_then(|sandbox| sandbox.listeners(addresses).map_err(as_io));
        match made {
            Ok(made) => made.into_iter().map(|one| one.map_err(as_io)).collect(),
            Err(error) => {
                let failed = |_| Err(io::Error::new(error.kind(), error.to_string()));
                addresses.iter().map(failed).collect()
            }
        }
    }

    fn has_ipv6(&self) -> bool {
        self.get().is_ok_and(|sandbox| sandbox.has_ipv6())
    }

    fn udp(&self, address: SocketAddr) -> io::Result<UdpSocket> {
        self.get()?.udp(address).map_err(as_io)
    }

    fn udp_and_listener(&self, address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
        match address {
            SocketAddr::V4(v4) => {
                let made = self.get()?.udp_and_listener(v4);
                made.map_err(as_io)
            }
            SocketAddr::V6(_) => Ok((self.udp(address)?, self.tcp_listener(address)?)),
        }
    }

    fn route(&self, range: AddressRange) -> io::Result<()> {
        let (first, bits) = range.parts();
        let range = avfs_sandbox::AddressRange::new(first, bits).map_err(io::Error::other)?;
        self.get()?.route_locally(range).map_err(as_io)
    }
}

impl Attribution for InSandbox {
    fn candidates(&self, ends: Ends) -> Vec<avfs_net::ExecKey> {
        let Ok(sandbox) = self.get() else {
            return Vec::new();
        };
        let transport = match ends.transport {
            Transport::Tcp => avfs_sandbox::Transport::Tcp,
            Transport::Udp => avfs_sandbox::Transport::Udp,
        };
        match sandbox.owners(transport, ends.client, ends.server) {
            Owners::One(key) => vec![outside(key)],
            Owners::AnyOf(keys) => keys.into_iter().map(outside).collect(),
            Owners::Unknown => Vec::new(),
        }
    }
}
