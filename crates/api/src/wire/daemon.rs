//! The daemon itself: its state, and stopping it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shows what the daemon is doing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Daemon {}

/// The answer to [`Daemon`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DaemonState {
    /// Its process.
    pub pid: u32,
    /// Its version, which is that of its clients.
    pub version: String,
    /// The home it serves.
    pub home: String,
    /// The socket it listens on.
    pub socket: String,
    /// For how long it has run, in milliseconds.
    pub uptime_ms: u64,
    /// The daemon ends after this time without a request; null if never.
    pub idle_timeout_s: Option<u64>,
    /// Commands that run.
    pub running_execs: usize,
    /// Vaults that have a view.
    pub live_views: usize,
    /// Number of mounts on the host.
    #[serde(default)]
    pub mounts: usize,
    /// Ports of the host that lead into vaults.
    #[serde(default)]
    pub forwards: usize,
    /// Jobs that run.
    #[serde(default)]
    pub running_jobs: usize,
    /// The process of its keeper, if it has one.
    pub keeper_pid: Option<u32>,
    /// Whether the home is read-only, so that every change is refused.
    #[serde(default)]
    pub read_only: bool,
    /// Addresses on the network that it listens on.
    #[serde(default)]
    pub listening: Vec<String>,
}

impl DaemonState {
    /// Whether it has work that only it can go on with, or is there for others.
    pub fn is_busy(&self) -> bool {
        let work = self.running_execs + self.running_jobs + self.mounts + self.forwards;
        work > 0 || !self.listening.is_empty()
    }
}

/// Counters for Prometheus.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricsRead {
    /// Also count the commands of each vault by its name, for the vaults that the caller may see.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub vaults: bool,
}

/// Stops the daemon.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DaemonStop {
    /// Even if detached jobs run.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub force: bool,
}

/// The answer to [`DaemonStop`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStopping {
    /// Always true.
    pub stopping: bool,
    /// Its process.
    pub pid: u32,
}
