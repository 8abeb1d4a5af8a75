//! Names to addresses, on the host.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use avfs_policy::HostName;

/// Resolves names. Calls may block.
pub trait Resolve: Send + Sync {
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>>;
}

/// The host's own resolver, with its `/etc/hosts` and its search domains.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostResolver;

impl Resolve for HostResolver {
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        let found = (name.as_str(), 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
