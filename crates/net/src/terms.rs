//! On which terms a command has a network.

use std::num::NonZeroU64;

use avfs_policy::HostList;

use crate::requests::{Inspect, Secret};

/// The terms of one command. They can be changed while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// What may be reached. The empty list is no network.
    pub list: HostList,
    /// Let through what the list does not allow, and record it. Special addresses stay refused.
    pub observe: bool,
    /// How many bytes may be moved, in both directions together.
    pub max_bytes: Option<u64>,
    /// How many bytes all commands of the sandbox may move in a second, in both directions together. The lowest rate of those that
    /// are present holds for all.
    pub bytes_per_second: Option<NonZeroU64>,
    /// How many connections all commands of the sandbox may have at once. The lowest number of those that are present holds.
    pub connections: Option<u32>,
    /// Hosts whose requests are seen and held to rules.
    pub inspect: Vec<Inspect>,
    /// Headers that requests get on their way out: on port 443 where the host is inspected, on port 80 where that is allowed.
    pub secrets: Vec<Secret>,
    /// Hosts of the list that are package registries. What they answer to GET is kept for all sandboxes.
    pub registries: HostList,
    /// Hosts that speak TLS on other ports than 443, and HTTP on others than 80. They are held to it there as on those.
    pub tls_ports: HostList,
    pub http_ports: HostList,
}

impl Terms {
    pub fn of(list: HostList) -> Terms {
        Terms {
            list,
            ..Terms::default()
        }
    }

    /// Whether nothing can be reached, so that only names need an answer.
    pub(crate) fn is_none(&self) -> bool {
        self.list.is_empty() && !self.observe
    }
}
