//! Which hosts the commands of a vault may reach.

use super::Vault;
use crate::error::Result;
use avfs_api::wire::{
    InspectHow, NetworkAllow, NetworkDeny, NetworkInspect, NetworkLog, NetworkLogItem, NetworkSet,
    NetworkShow, NetworkState,
};

impl Vault {
    /// Which hosts its commands may reach.
    pub fn network(&self) -> Result<NetworkState> {
        self.ask(&NetworkShow {})
    }

    /// Sets which hosts its commands may reach, those that run included; none is no network. A wider network is for the
    /// owner alone.
    pub fn set_network<H: Into<String>>(
        &self,
        hosts: impl IntoIterator<Item = H>,
    ) -> Result<NetworkState> {
        self.ask(&NetworkSet {
            network: None,
            hosts: hosts.into_iter().map(Into::into).collect(),
        })
    }

    /// Adds a host to those that its commands may reach, as `example.com` or `*.example.com:8080`. For the owner alone.
    pub fn allow_host(&self, host: impl Into<String>) -> Result<NetworkState> {
        self.ask(&NetworkAllow {
            hosts: vec![host.into()],
        })
    }

    /// Takes a host from those that its commands may reach, as it is listed.
    pub fn deny_host(&self, host: impl Into<String>) -> Result<NetworkState> {
        self.ask(&NetworkDeny {
            hosts: vec![host.into()],
        })
    }

    /// Opens a host's TLS, and says which requests it may be sent, as `GET,HEAD /org/repo`. For the owner alone, but for fewer
    /// requests than before.
    pub fn inspect_host<R: Into<String>>(
        &self,
        host: impl Into<String>,
        rules: impl IntoIterator<Item = R>,
    ) -> Result<NetworkState> {
        self.ask(&NetworkInspect {
            host: host.into(),
            rules: rules.into_iter().map(Into::into).collect(),
            how: InspectHow::Set,
        })
    }

    /// What its commands tried to reach, the newest first.
    pub fn network_log(&self) -> Result<Vec<NetworkLogItem>> {
        Ok(self.ask(&NetworkLog::default())?.execs)
    }
}
