//! Ports of the host that lead into a vault.

use super::Vault;
use crate::error::Result;
use avfs_api::wire::{PortForward, PortItem, PortList, PortListing, PortRemove};

impl Vault {
    /// Opens a port of the host, on 127.0.0.1, that leads to `guest`: the port that a command listens on, or the absolute path of
    /// its Unix socket. A free port is picked if none is given. [`PortForward`] can listen on other addresses.
    pub fn forward_port(
        &self,
        guest: impl Into<String>,
        host_port: Option<u16>,
    ) -> Result<PortItem> {
        self.ask(&PortForward {
            guest: guest.into(),
            host_port,
            listen: None,
        })
    }

    /// The ports of the host that lead into it, and where its commands listen.
    pub fn ports(&self) -> Result<PortListing> {
        self.ask(&PortList {
            vault: Some(self.name.clone()),
        })
    }

    /// Closes the ports of the host that lead to `guest`, and cuts their connections.
    pub fn remove_port(&self, guest: impl Into<String>) -> Result<Vec<PortItem>> {
        let request = PortRemove {
            guest: Some(guest.into()),
            all: false,
        };
        Ok(self.ask(&request)?.removed)
    }

    /// Closes every port of the host that leads into it.
    pub fn remove_ports(&self) -> Result<Vec<PortItem>> {
        let request = PortRemove {
            guest: None,
            all: true,
        };
        Ok(self.ask(&request)?.removed)
    }
}
