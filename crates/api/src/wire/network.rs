//! The network of a vault's commands, and what they reached.

use super::exec_options::{NetworkName, NetworkWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a command tried to reach.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkUse {
    /// What it reached.
    pub allowed: Vec<AttemptItem>,
    /// What was refused.
    pub denied: Vec<AttemptItem>,
    /// Hosts and ports beyond those listed.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub more: u64,
    /// How much it may use, where the vault says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limits: Option<NetworkLimitsItem>,
    /// With the network `observe`: the smallest list that would have been enough.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub needs: Option<Vec<String>>,
}

/// How much network commands may use. What is null has no limit of the vault's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkLimitsItem {
    /// Connections of all commands of the vault at once (`vault set connections=…`).
    pub connections: Option<u32>,
    /// Bytes of all commands of the vault in a second, in both directions (`vault set bandwidth=…`).
    pub bytes_per_second: Option<u64>,
    /// Bytes of each command, in both directions (`vault set traffic=…`).
    pub bytes: Option<u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Connections and look-ups of one host and port with one result.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptItem {
    /// The name or address that the command gave.
    pub host: String,
    /// Null for a look-up of a name.
    pub port: Option<u16>,
    /// The rule that decided.
    pub rule: String,
    /// How often.
    pub count: u64,
    /// Bytes from the command.
    pub sent: u64,
    /// Bytes to the command.
    pub received: u64,
    /// How many of those had been downloaded before, from a package registry, and were kept.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub cached: u64,
    /// Other execs that may have made it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub or_by: Vec<String>,
}

/// Shows which hosts the commands of a vault may reach.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkShow {}

/// Sets which hosts the commands of a vault may reach. Wider than before is for the owner.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkSet {
    /// `host` for the host's network. Left out, or `none`: only the hosts beside it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub network: Option<NetworkName>,
    /// The hosts, as `example.com`, `*.example.com:8080`, `192.0.2.0/24` or `registries`. Without one there is no network.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hosts: Vec<String>,
}

/// Adds hosts to those that the commands of a vault may reach.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkAllow {
    /// As `example.com`, `*.example.com:8080`, `192.0.2.0/24` or `registries`.
    pub hosts: Vec<String>,
}

/// Takes rules from the list of a vault.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkDeny {
    /// As they are listed.
    pub hosts: Vec<String>,
}

/// Which hosts the commands of a vault may reach.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkState {
    /// The name of the vault.
    pub vault: String,
    /// `none`, `listed` or `host`.
    pub network: NetworkWord,
    /// The hosts on the list.
    pub hosts: Vec<String>,
    /// Hosts whose TLS is opened, and which requests they may be sent.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub requests: Vec<RequestsItem>,
    /// How much they may use, where the vault says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limits: Option<NetworkLimitsItem>,
    /// What `registries` stands for now, if it is on the list. Only `network_show` looks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub registries: Option<RegistriesItem>,
}

/// Which requests a host may be sent.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestsItem {
    /// A name, `*.example.com`, `*`, an address or a range of addresses.
    pub host: String,
    /// As `GET,HEAD /org/repo`. A request must match one of them.
    pub allow: Vec<String>,
}

/// Says which requests the commands of a vault may make of a host, and opens its TLS for that. Allowing fewer than before is for
/// everybody, all else for the owner.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkInspect {
    /// A name, `*.example.com`, `*`, an address or a range of addresses; without a port.
    pub host: String,
    /// As `GET,HEAD /org/repo`, the path and all below it; `* /` is every request.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rules: Vec<String>,
    /// What becomes of the rules.
    #[serde(default)]
    pub how: InspectHow,
}

/// What becomes of the rules of a host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InspectHow {
    /// They replace those that are there.
    #[default]
    Set,
    /// They are added to those that are there.
    Add,
    /// The host has none any more, and its TLS is not opened.
    Off,
}

/// The package registries of the host.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegistriesItem {
    /// The hosts that package managers read from.
    pub hosts: Vec<RegistryItem>,
    /// What could not be found out, or cannot be used.
    pub problems: Vec<RegistryProblemItem>,
}

/// One host that a package manager reads from.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegistryItem {
    /// The host with its port.
    pub host: String,
    /// `pip`, `npm` or `cargo`.
    pub tool: String,
    /// Who names it: `default` (the package manager itself), `configuration` (the owner's), or `index` (of a registry).
    pub from: String,
    /// Whether requests get credentials of the configuration.
    pub credentials: bool,
}

/// What could not be found out, or cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegistryProblemItem {
    /// `pip`, `npm` or `cargo`.
    pub tool: String,
    /// What it is.
    pub problem: String,
}

/// Says how much of what package registries answered is kept for all vaults.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkCache {}

/// Removes what package registries answered. It is downloaded again when it is needed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkCacheClear {}

/// What is kept of the answers of package registries; after clearing, what was removed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DownloadsItem {
    /// How many answers.
    pub answers: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The most bytes that are kept. Answers that were used longest ago go first.
    pub max_bytes: u64,
}

/// Lists what commands of a vault tried to reach, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkLog {
    /// Only of this exec.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exec: Option<String>,
    /// Only what was refused.
    #[serde(default)]
    pub denied: bool,
    /// The most execs, up to 1,000; 100 when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<usize>,
}

/// The answer to [`NetworkLog`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NetworkLogged {
    /// Each exec that tried to reach something.
    pub execs: Vec<NetworkLogItem>,
}

/// What one exec tried to reach.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NetworkLogItem {
    /// The id of the exec.
    pub exec: String,
    /// When it was noted.
    pub at: String,
    /// Who asked for the exec.
    pub by: String,
    /// What it tried to reach.
    #[serde(flatten)]
    pub used: NetworkUse,
}
