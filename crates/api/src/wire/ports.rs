//! Ports of the host that lead into sandboxes, and where commands listen.

use super::Base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Opens a port of the host that leads into the vault's sandboxes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortForward {
    /// The port that a command listens on, or the absolute path of its Unix socket.
    pub guest: String,
    /// The port of the host; a free one is picked when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_port: Option<u16>,
    /// The address of the host to listen on; 127.0.0.1 when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub listen: Option<String>,
}

/// A port of the host that leads into a vault's sandboxes.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortItem {
    /// The name of the vault.
    pub vault: String,
    /// The port inside, or the path of a Unix socket.
    pub guest: String,
    /// The address of the host that it listens on.
    pub listen: String,
    /// The port of the host.
    pub host_port: u16,
    /// The connections that it has now.
    pub connections: usize,
}

/// Lists ports of the host that lead into sandboxes, and where commands listen.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortList {
    /// Only of this vault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vault: Option<String>,
}

/// The answer to [`PortList`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PortListing {
    /// The ports of the host.
    pub forwards: Vec<PortItem>,
    /// Where commands listen.
    pub listening: Vec<ListeningItem>,
    /// Whether commands listen at more places than are listed.
    pub listening_truncated: bool,
}

/// A socket on which a command listens.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListeningItem {
    /// The name of the vault.
    pub vault: String,
    /// The port, or the path of a Unix socket, as `port_forward` takes it.
    pub guest: String,
    /// The exact bytes of the path, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub guest_b64: Option<Base64>,
    /// The address inside; null for a Unix socket.
    pub address: Option<String>,
    /// The exec that listens; several if it is one of them, none if that is not known.
    pub execs: Vec<String>,
}

/// Closes ports of the host that lead into the vault's sandboxes, and cuts their connections.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortRemove {
    /// Those that lead to this port or Unix socket.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub guest: Option<String>,
    /// All of the vault's.
    #[serde(default)]
    pub all: bool,
}

/// The answer to [`PortRemove`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PortsRemoved {
    /// The ports that were closed, with the connections that were cut.
    pub removed: Vec<PortItem>,
}
