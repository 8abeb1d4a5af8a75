//! The daemon itself: its state, and stopping it.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Daemon {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DaemonState {
    pub pid: u32,
    pub version: String,
    pub home: String,
    pub socket: String,
    pub uptime_ms: u64,
    /// The daemon ends after this time without a request; null if never.
    pub idle_timeout_s: Option<u64>,
    pub running_execs: usize,
    pub live_views: usize,
    /// Number of mounts on the host.
    #[serde(default)]
    pub mounts: usize,
    #[serde(default)]
    pub running_jobs: usize,
    pub keeper_pid: Option<u32>,
    /// Whether the home is read-only, so that every change is refused.
    #[serde(default)]
    pub read_only: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonStop {
    /// Even if detached jobs run.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub force: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DaemonStopping {
    pub stopping: bool,
    pub pid: u32,
}
